//! Memory budget for all messages that are held at the same time, in bytes.
//!
//! A permit is granted or refused at once, never waited for, and a refusal leaves earlier permits unchanged. So holders
//! of permits cannot deadlock.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Number of copies of a message that a memory permit covers: received, changed, forwarded and serialized.
pub const COPIES_PER_MESSAGE: u64 = 4;
/// Maximum memory of a message that the memory budget does not count, in bytes. Most messages weigh less and take no
/// lock.
pub const MAX_UNCOUNTED_BYTES: u64 = 16 << 10;
/// Estimated memory of one JSON value in a parsed tree, in bytes, with its key and its share of the object.
pub const BYTES_PER_VALUE: u64 = 176;
/// Estimated additional memory of one JSON object in a parsed tree, in bytes.
pub const BYTES_PER_OBJECT: u64 = 640;

/// Memory budget for the messages in flight, in bytes, shared by all callers and servers. No single scope may use more
/// than half of it.
pub struct MemoryBudget {
    limit: u64,
    usage: Mutex<BudgetUsage>,
}

#[derive(Default)]
struct BudgetUsage {
    total: u64,
    by_scope: HashMap<Arc<str>, u64>,
}

impl MemoryBudget {
    /// Creates a memory budget of `limit` bytes.
    pub fn new(limit: u64) -> Arc<MemoryBudget> {
        Arc::new(MemoryBudget {
            limit,
            usage: Mutex::default(),
        })
    }

    /// Returns the limit of the memory budget, in bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Returns the memory that is in use, in bytes.
    pub fn used(&self) -> u64 {
        self.lock().total
    }

    fn add(&self, who: &Arc<str>, bytes: u64, anyway: bool) -> Result<(), BudgetExceeded> {
        let mut taken = self.lock();
        let own = taken
            .by_scope
            .get(who)
            .copied()
            .unwrap_or(0)
            .saturating_add(bytes);
        let all = taken.total.saturating_add(bytes);
        if !anyway && own > self.limit / 2 {
            return Err(BudgetExceeded { by_scope: true });
        }
        if !anyway && all > self.limit {
            return Err(BudgetExceeded { by_scope: false });
        }
        taken.total = all;
        taken.by_scope.insert(who.clone(), own);
        Ok(())
    }

    fn sub(&self, who: &Arc<str>, bytes: u64) {
        let mut taken = self.lock();
        taken.total = taken.total.saturating_sub(bytes);
        if let Some(own) = taken.by_scope.get_mut(who) {
            *own = own.saturating_sub(bytes);
            if *own == 0 {
                taken.by_scope.remove(who);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BudgetUsage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Error of an exhausted [`MemoryBudget`]. The message may be sent again once other calls have ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BudgetExceeded {
    by_scope: bool,
}

impl fmt::Display for BudgetExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.by_scope {
            true => {
                "the messages in flight of this caller or server exceed their memory budget; try again when one of its calls has ended"
            }
            false => "the messages in flight exceed their memory budget; try again when another call has ended",
        })
    }
}

impl std::error::Error for BudgetExceeded {}

/// Scope of a memory budget: the caller or server that a message counts for. The default scope has no budget and counts
/// nothing.
#[derive(Clone, Default)]
pub struct BudgetScope(Option<(Arc<MemoryBudget>, Arc<str>)>);

impl BudgetScope {
    /// Creates the scope of a caller or server, by its name, in a memory budget.
    pub fn of(budget: &Arc<MemoryBudget>, name: Arc<str>) -> BudgetScope {
        BudgetScope(Some((budget.clone(), name)))
    }

    /// Creates an empty memory permit in this scope, which covers no bytes yet.
    pub fn permit(&self) -> MemoryPermit {
        MemoryPermit {
            scope: self.clone(),
            bytes: 0,
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

/// Permit of a [`MemoryBudget`] for the memory of one message. Dropping it releases the memory.
#[derive(Debug, Default)]
pub struct MemoryPermit {
    scope: BudgetScope,
    bytes: u64,
}

impl MemoryPermit {
    /// Grows the permit to cover a message of `bytes` bytes and its copies ([`COPIES_PER_MESSAGE`]).
    ///
    /// # Errors
    /// Returns an error if the budget is exhausted; the permit stays as it was.
    pub fn cover_message(&mut self, bytes: u64) -> Result<(), BudgetExceeded> {
        self.cover_if_large(bytes.saturating_mul(COPIES_PER_MESSAGE))
    }

    /// Grows the permit to cover `bytes` bytes, but only if they exceed [`MAX_UNCOUNTED_BYTES`].
    ///
    /// # Errors
    /// Returns an error if the budget is exhausted; the permit stays as it was.
    pub fn cover_if_large(&mut self, bytes: u64) -> Result<(), BudgetExceeded> {
        match bytes > MAX_UNCOUNTED_BYTES {
            true => self.cover_any_size(bytes),
            false => Ok(()),
        }
    }

    /// Grows the permit to cover `bytes` bytes, including amounts below [`MAX_UNCOUNTED_BYTES`].
    ///
    /// # Errors
    /// Returns an error if the budget is exhausted; the permit stays as it was.
    pub fn cover_any_size(&mut self, bytes: u64) -> Result<(), BudgetExceeded> {
        self.grow(bytes, false)
    }

    /// Grows the permit to cover `bytes` bytes, even beyond the memory budget. Use it for values derived from a message
    /// that is covered.
    pub fn cover_over_budget(&mut self, bytes: u64) {
        let _ = self.grow(bytes, true);
    }

    fn grow(&mut self, bytes: u64, anyway: bool) -> Result<(), BudgetExceeded> {
        let Some((room, who)) = &self.scope.0 else {
            return Ok(());
        };
        if bytes <= self.bytes {
            return Ok(());
        }
        room.add(who, bytes - self.bytes, anyway)?;
        self.bytes = bytes;
        Ok(())
    }

    /// Returns true if the permit covers no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }
}

impl Drop for MemoryPermit {
    fn drop(&mut self) {
        if let Some((room, who)) = self.scope.0.as_ref().filter(|_| self.bytes > 0) {
            room.sub(who, self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn limits_one_scope_to_half_of_the_budget() {
        let room = MemoryBudget::new(8 * MIB);
        let of = |who: &str| BudgetScope::of(&room, who.into()).permit();
        let (mut a, mut b, mut c) = (of("a"), of("b"), of("c"));
        assert_eq!(a.cover_message(MIB), Ok(()));
        assert_eq!(
            of("a").cover_message(5 << 10),
            Err(BudgetExceeded { by_scope: true })
        );
        assert_eq!(b.cover_if_large(3 * MIB), Ok(()));
        assert_eq!(
            c.cover_if_large(MIB + 1),
            Err(BudgetExceeded { by_scope: false }),
            "one over"
        );
        assert_eq!(c.cover_if_large(MIB), Ok(()));
        assert_eq!(room.used(), 8 * MIB);
        drop(a);
        assert_eq!(room.used(), 4 * MIB);
        assert_eq!(c.cover_if_large(4 * MIB), Ok(()));
        assert_eq!(c.cover_if_large(MIB), Ok(()), "it covers that already");
        drop((b, c));
        assert_eq!(room.used(), 0);
        assert!(room.lock().by_scope.is_empty(), "nobody is remembered");
    }

    #[test]
    fn counts_only_large_messages() {
        let room = MemoryBudget::new(MIB);
        let mut claim = BudgetScope::of(&room, "a".into()).permit();
        claim
            .cover_message(MAX_UNCOUNTED_BYTES / COPIES_PER_MESSAGE)
            .unwrap();
        assert_eq!((room.used(), claim.is_empty()), (0, true));
        claim
            .cover_message(MAX_UNCOUNTED_BYTES / COPIES_PER_MESSAGE + 1)
            .unwrap();
        assert_eq!(room.used(), MAX_UNCOUNTED_BYTES + COPIES_PER_MESSAGE);
        assert!(claim.cover_if_large(MIB).is_err());
        assert_eq!(
            room.used(),
            MAX_UNCOUNTED_BYTES + COPIES_PER_MESSAGE,
            "it keeps what it had"
        );
        claim.cover_over_budget(2 * MIB);
        assert_eq!(room.used(), 2 * MIB);
        drop(claim);
        assert_eq!(room.used(), 0);
        assert_eq!(
            BudgetScope::default().permit().cover_any_size(u64::MAX),
            Ok(())
        );
    }
}
