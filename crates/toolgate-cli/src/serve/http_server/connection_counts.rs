//! Number of open connections by client address.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Number of open connections by client address. Clones share the numbers.
#[derive(Clone, Default)]
pub(super) struct ConnectionCounts(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// One counted connection of an address. Dropping it releases it.
pub(super) struct CountedConnection(ConnectionCounts, IpAddr);

impl ConnectionCounts {
    /// Counts one more connection of an address; `None` at the limit.
    pub(super) fn count(&self, from: IpAddr, most: usize) -> Option<CountedConnection> {
        // The same machine may connect over IPv4 and as an IPv4-mapped IPv6 address.
        let from = from.to_canonical();
        let mut all = self.lock();
        let count = all.entry(from).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(CountedConnection(self.clone(), from))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        let mut all = self.0.lock();
        if let Some(count) = all.get_mut(&self.1) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                all.remove(&self.1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_one_connection_too_many_of_an_address() {
        let addresses = ConnectionCounts::default();
        let (one, two) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let first = addresses.count(one, 2);
        let _second = addresses.count(one, 2).unwrap();
        assert!(addresses.count(one, 2).is_none(), "one over");
        assert!(addresses.count(two, 2).is_some(), "each by itself");
        drop(first);
        assert!(addresses.count(one, 2).is_some());
        let mapped = "::ffff:10.0.0.1".parse().unwrap();
        let _third = addresses.count(mapped, 2);
        assert!(
            addresses.count(mapped, 1).is_none(),
            "the same address in the other spelling"
        );
    }
}
