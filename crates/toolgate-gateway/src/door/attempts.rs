//! How often each address showed credentials that were refused.

use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher,
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Counters; addresses share them by chance, so that no flood of addresses takes more room.
const SLOTS: usize = 4096;
/// The time in which is counted.
const WINDOW: Duration = Duration::from_secs(60);

/// How often each address showed credentials that were refused, in the last minute.
pub(crate) struct Attempts {
    hasher: RandomState,
    slots: Mutex<Box<[Slot]>>,
}

#[derive(Clone, Copy)]
struct Slot {
    since: Instant,
    count: u32,
}

/// What becomes of one more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Attempt {
    /// It is told and recorded.
    Counted,
    /// The first above the limit: it is recorded that there were so many.
    First,
    /// One of many above it.
    Over,
}

impl Attempts {
    pub(crate) fn new() -> Attempts {
        let none = Slot {
            since: Instant::now(),
            count: 0,
        };
        Attempts {
            hasher: RandomState::new(),
            slots: Mutex::new(vec![none; SLOTS].into()),
        }
    }

    /// One more of this address, of which so many are counted in a minute.
    pub(crate) fn take(&self, from: IpAddr, most: u32) -> Attempt {
        self.take_at(from, most, Instant::now())
    }

    /// Whether this address showed too many already.
    pub(crate) fn is_over(&self, from: IpAddr, most: u32) -> bool {
        let at = self.hasher.hash_one(network(from)) as usize % SLOTS;
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.get(at);
        slot.is_none_or(|slot| slot.count > most && slot.since.elapsed() < WINDOW)
    }

    fn take_at(&self, from: IpAddr, most: u32, now: Instant) -> Attempt {
        let at = self.hasher.hash_one(network(from)) as usize % SLOTS;
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(slot) = slots.get_mut(at) else {
            return Attempt::Over;
        };
        if now.saturating_duration_since(slot.since) >= WINDOW {
            *slot = Slot {
                since: now,
                count: 0,
            };
        }
        slot.count = slot.count.saturating_add(1);
        match slot.count {
            count if count <= most => Attempt::Counted,
            count if count == most.saturating_add(1) => Attempt::First,
            _ => Attempt::Over,
        }
    }
}

/// Whoever has one address of version 6 mostly has 2^64 of them.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6((u128::from(v6) >> 64 << 64).into()),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_over_is_told_to_come_later_and_others_are_not() {
        let (attempts, start) = (Attempts::new(), Instant::now());
        let of = |address: &str, after| {
            let now = start + Duration::from_secs(after);
            attempts.take_at(address.parse().unwrap(), 2, now)
        };
        let one = "2001:db8::1";
        assert_eq!(of(one, 0), Attempt::Counted);
        assert_eq!(of("2001:db8::2", 1), Attempt::Counted, "the same network");
        assert_eq!(of(one, 2), Attempt::First);
        assert_eq!(of(one, 3), Attempt::Over);
        assert_eq!(of(one, 70), Attempt::Counted, "a minute later");
        assert_eq!(of("192.0.2.1", 3), Attempt::Counted);
        assert_eq!(of("::ffff:192.0.2.1", 3), Attempt::Counted);
        assert_eq!(of("192.0.2.1", 3), Attempt::First, "the other spelling");
    }
}
