//! Memory budget for all messages that are held at the same time, in bytes.
//!
//! A permit is granted or refused at once, never waited for, and a refusal leaves earlier permits unchanged. So holders
//! of permits cannot deadlock.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Number of copies of a message in memory: received, changed, forwarded and serialized.
pub const COPIES_PER_MESSAGE: u64 = 4;
/// Maximum weight of a message that is not counted, in bytes. Most messages weigh less and take no lock.
pub const MAX_UNCOUNTED_BYTES: u64 = 16 << 10;
/// Memory of one value of a JSON text in a tree, in bytes, with its key and its share of the object.
pub const BYTES_PER_VALUE: u64 = 176;
/// Additional memory of one object in a tree, in bytes.
pub const BYTES_PER_OBJECT: u64 = 640;

/// Memory budget in bytes. No single scope may use more than half of it.
pub struct MemoryBudget {
    limit: u64,
    taken: Mutex<BudgetUsage>,
}

#[derive(Default)]
struct BudgetUsage {
    all: u64,
    by: HashMap<Arc<str>, u64>,
}

impl MemoryBudget {
    /// Creates a budget of `limit` bytes.
    pub fn new(limit: u64) -> Arc<MemoryBudget> {
        Arc::new(MemoryBudget {
            limit,
            taken: Mutex::default(),
        })
    }

    /// Memory in use, in bytes.
    pub fn used(&self) -> u64 {
        self.taken().all
    }

    fn add(&self, who: &Arc<str>, bytes: u64, anyway: bool) -> Result<(), BudgetExceeded> {
        let mut taken = self.taken();
        let own = taken
            .by
            .get(who)
            .copied()
            .unwrap_or(0)
            .saturating_add(bytes);
        let all = taken.all.saturating_add(bytes);
        if !anyway && own > self.limit / 2 {
            return Err(BudgetExceeded { own: true });
        }
        if !anyway && all > self.limit {
            return Err(BudgetExceeded { own: false });
        }
        taken.all = all;
        taken.by.insert(who.clone(), own);
        Ok(())
    }

    fn sub(&self, who: &Arc<str>, bytes: u64) {
        let mut taken = self.taken();
        taken.all = taken.all.saturating_sub(bytes);
        if let Some(own) = taken.by.get_mut(who) {
            *own = own.saturating_sub(bytes);
            if *own == 0 {
                taken.by.remove(who);
            }
        }
    }

    fn taken(&self) -> MutexGuard<'_, BudgetUsage> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Error of an exhausted memory budget. The message may be sent again once other calls have ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BudgetExceeded {
    own: bool,
}

impl fmt::Display for BudgetExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.own {
            true => {
                "too many bytes are in flight for one caller or server; try again when a call has ended"
            }
            false => "too many bytes are in flight; try again when a call has ended",
        })
    }
}

impl std::error::Error for BudgetExceeded {}

/// Scope of a memory budget: one caller or one server. The default scope has no budget and counts nothing.
#[derive(Clone, Default)]
pub struct BudgetScope(Option<(Arc<MemoryBudget>, Arc<str>)>);

impl BudgetScope {
    /// Creates the scope of this name.
    pub fn of(room: &Arc<MemoryBudget>, who: Arc<str>) -> BudgetScope {
        BudgetScope(Some((room.clone(), who)))
    }

    /// Creates an empty permit.
    pub fn claim(&self) -> MemoryPermit {
        MemoryPermit {
            account: self.clone(),
            taken: 0,
        }
    }
}

impl PartialEq for BudgetScope {
    fn eq(&self, other: &BudgetScope) -> bool {
        match (&self.0, &other.0) {
            (Some((room, who)), Some((other, name))) => Arc::ptr_eq(room, other) && who == name,
            (None, None) => true,
            _ => false,
        }
    }
}

impl Eq for BudgetScope {}

impl fmt::Debug for BudgetScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = self.0.as_ref().map(|(_, who)| who);
        f.debug_tuple("BudgetScope").field(&who).finish()
    }
}

/// Memory permit of one message. Dropping it releases the memory.
#[derive(Debug, Default)]
pub struct MemoryPermit {
    account: BudgetScope,
    taken: u64,
}

impl MemoryPermit {
    /// Grows the permit to cover a message of `bytes` bytes with its copies.
    ///
    /// # Errors
    /// Returns an error if the budget is exhausted; the permit stays as it was.
    pub fn message(&mut self, bytes: u64) -> Result<(), BudgetExceeded> {
        self.cover(bytes.saturating_mul(COPIES_PER_MESSAGE))
    }

    /// Grows the permit to cover `bytes` bytes, if they exceed [`MAX_UNCOUNTED_BYTES`].
    ///
    /// # Errors
    /// Returns an error if the budget is exhausted; the permit stays as it was.
    pub fn cover(&mut self, bytes: u64) -> Result<(), BudgetExceeded> {
        match bytes > MAX_UNCOUNTED_BYTES {
            true => self.count(bytes),
            false => Ok(()),
        }
    }

    /// Grows the permit to cover `bytes` bytes, however few.
    ///
    /// # Errors
    /// Returns an error if the budget is exhausted; the permit stays as it was.
    pub fn count(&mut self, bytes: u64) -> Result<(), BudgetExceeded> {
        self.grow(bytes, false)
    }

    /// Grows the permit to cover `bytes` bytes, even beyond the budget: for values derived from a message that is
    /// covered.
    pub fn count_anyway(&mut self, bytes: u64) {
        let _ = self.grow(bytes, true);
    }

    fn grow(&mut self, bytes: u64, anyway: bool) -> Result<(), BudgetExceeded> {
        let Some((room, who)) = &self.account.0 else {
            return Ok(());
        };
        if bytes <= self.taken {
            return Ok(());
        }
        room.add(who, bytes - self.taken, anyway)?;
        self.taken = bytes;
        Ok(())
    }

    /// Returns true if the permit covers nothing.
    pub fn is_empty(&self) -> bool {
        self.taken == 0
    }
}

impl Drop for MemoryPermit {
    fn drop(&mut self) {
        if let Some((room, who)) = self.account.0.as_ref().filter(|_| self.taken > 0) {
            room.sub(who, self.taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn one_holder_has_half_and_all_have_all_of_it() {
        let room = MemoryBudget::new(8 * MIB);
        let of = |who: &str| BudgetScope::of(&room, who.into()).claim();
        let (mut a, mut b, mut c) = (of("a"), of("b"), of("c"));
        assert_eq!(a.message(MIB), Ok(()));
        assert_eq!(of("a").message(5 << 10), Err(BudgetExceeded { own: true }));
        assert_eq!(b.cover(3 * MIB), Ok(()));
        assert_eq!(
            c.cover(MIB + 1),
            Err(BudgetExceeded { own: false }),
            "one over"
        );
        assert_eq!(c.cover(MIB), Ok(()));
        assert_eq!(room.used(), 8 * MIB);
        drop(a);
        assert_eq!(room.used(), 4 * MIB);
        assert_eq!(c.cover(4 * MIB), Ok(()));
        assert_eq!(c.cover(MIB), Ok(()), "it covers that already");
        drop((b, c));
        assert_eq!(room.used(), 0);
        assert!(room.taken().by.is_empty(), "nobody is remembered");
    }

    #[test]
    fn what_is_small_is_not_counted_and_what_grows_is() {
        let room = MemoryBudget::new(MIB);
        let mut claim = BudgetScope::of(&room, "a".into()).claim();
        claim
            .message(MAX_UNCOUNTED_BYTES / COPIES_PER_MESSAGE)
            .unwrap();
        assert_eq!((room.used(), claim.is_empty()), (0, true));
        claim
            .message(MAX_UNCOUNTED_BYTES / COPIES_PER_MESSAGE + 1)
            .unwrap();
        assert_eq!(room.used(), MAX_UNCOUNTED_BYTES + COPIES_PER_MESSAGE);
        assert!(claim.cover(MIB).is_err());
        assert_eq!(
            room.used(),
            MAX_UNCOUNTED_BYTES + COPIES_PER_MESSAGE,
            "it keeps what it had"
        );
        claim.count_anyway(2 * MIB);
        assert_eq!(room.used(), 2 * MIB);
        drop(claim);
        assert_eq!(room.used(), 0);
        assert_eq!(BudgetScope::default().claim().count(u64::MAX), Ok(()));
    }
}
