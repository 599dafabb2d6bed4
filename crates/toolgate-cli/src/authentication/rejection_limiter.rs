//! Rate limiter for rejected credentials, by client address.

use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher,
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Number of counters. Addresses share them by hash, so a flood of addresses takes no more memory.
const COUNTER_SLOTS: usize = 4096;
/// Period of a counter.
const REJECTION_WINDOW: Duration = Duration::from_secs(60);

/// Counters of rejected credentials within the last minute, by client address.
pub(crate) struct RejectionLimiter {
    hasher: RandomState,
    slots: Mutex<Box<[RejectionCounter]>>,
}

#[derive(Clone, Copy)]
struct RejectionCounter {
    since: Instant,
    count: u32,
}

/// Effect of one more rejection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum RejectionEffect {
    /// Within the limit: the rejection is answered in detail and audited.
    WithinLimit,
    /// The first rejection above the limit: the excess is audited.
    FirstAbove,
    /// A later rejection above the limit.
    Above,
}

impl RejectionLimiter {
    pub(crate) fn new() -> RejectionLimiter {
        let none = RejectionCounter {
            since: Instant::now(),
            count: 0,
        };
        RejectionLimiter {
            hasher: RandomState::new(),
            slots: Mutex::new(vec![none; COUNTER_SLOTS].into()),
        }
    }

    /// Counts one more rejection of a client address, with that limit per minute.
    pub(crate) fn count_rejection(&self, from: IpAddr, most: u32) -> RejectionEffect {
        self.count_at(from, most, Instant::now())
    }

    /// Returns whether the address has exceeded the limit.
    pub(crate) fn is_limited(&self, from: IpAddr, most: u32) -> bool {
        let at = self.hasher.hash_one(network(from)) as usize % COUNTER_SLOTS;
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.get(at);
        slot.is_none_or(|slot| slot.count > most && slot.since.elapsed() < REJECTION_WINDOW)
    }

    fn count_at(&self, from: IpAddr, most: u32, now: Instant) -> RejectionEffect {
        let at = self.hasher.hash_one(network(from)) as usize % COUNTER_SLOTS;
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(slot) = slots.get_mut(at) else {
            return RejectionEffect::Above;
        };
        if now.saturating_duration_since(slot.since) >= REJECTION_WINDOW {
            *slot = RejectionCounter {
                since: now,
                count: 0,
            };
        }
        slot.count = slot.count.saturating_add(1);
        match slot.count {
            count if count <= most => RejectionEffect::WithinLimit,
            count if count == most.saturating_add(1) => RejectionEffect::FirstAbove,
            _ => RejectionEffect::Above,
        }
    }
}

/// Reduces an IPv6 address to its /64 network, because the owner of one address usually has 2^64 of them.
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
    fn limits_rejections_of_one_network_only() {
        let (attempts, start) = (RejectionLimiter::new(), Instant::now());
        let of = |address: &str, after| {
            let now = start + Duration::from_secs(after);
            attempts.count_at(address.parse().unwrap(), 2, now)
        };
        let one = "2001:db8::1";
        assert_eq!(of(one, 0), RejectionEffect::WithinLimit);
        assert_eq!(
            of("2001:db8::2", 1),
            RejectionEffect::WithinLimit,
            "the same network"
        );
        assert_eq!(of(one, 2), RejectionEffect::FirstAbove);
        assert_eq!(of(one, 3), RejectionEffect::Above);
        assert_eq!(of(one, 70), RejectionEffect::WithinLimit, "a minute later");
        assert_eq!(of("192.0.2.1", 3), RejectionEffect::WithinLimit);
        assert_eq!(of("::ffff:192.0.2.1", 3), RejectionEffect::WithinLimit);
        assert_eq!(
            of("192.0.2.1", 3),
            RejectionEffect::FirstAbove,
            "the other spelling"
        );
    }
}
