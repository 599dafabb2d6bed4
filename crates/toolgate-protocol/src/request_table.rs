//! Requests in flight with one peer, in both directions. A state machine without I/O and clock.

use crate::message::{Id, IdKey};
use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

/// Table of the JSON-RPC requests in flight with one peer, sent and received. A `T` waits for a reply; an `R` executes
/// a request that the peer sent.
#[derive(Debug)]
pub struct RequestTable<T, R> {
    next_id: u64,
    sent: HashMap<i64, T, BuildHasherDefault<SentNumberHasher>>,
    /// Sorted by id. Bounded to so few entries that a search is faster than a hash table.
    received: Vec<(IdKey, R)>,
    max_received: usize,
}

/// Hasher of the numbers of sent requests. This program chooses them, so that no peer can make them collide.
#[derive(Debug, Default)]
struct SentNumberHasher(u64);

impl Hasher for SentNumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        let fold = |hash: u64, byte: &u8| (hash << 8) ^ u64::from(*byte);
        self.write_u64(bytes.iter().fold(self.0, fold));
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number.cast_unsigned());
    }

    fn write_u64(&mut self, number: u64) {
        // A prime spreads consecutive numbers over all bits, of which the table uses the highest and the lowest.
        let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = spread ^ (spread >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Reason why a request that the peer sent is rejected.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RequestTableError {
    /// The peer already has a request with this id in flight; the earlier request stays valid.
    Duplicate,
    /// The peer has reached its limit of requests in flight.
    TooMany,
}

impl<T, R> RequestTable<T, R> {
    /// Creates an empty table for at most `limit` concurrent requests that the peer sends.
    pub fn new(limit: usize) -> RequestTable<T, R> {
        RequestTable {
            next_id: 1,
            sent: HashMap::default(),
            received: Vec::new(),
            max_received: limit,
        }
    }

    /// Registers a request that is sent to the peer, and returns its new JSON-RPC id. Ids are never reused.
    pub fn register(&mut self, waiting: T) -> Id {
        let n = self.next_id;
        self.next_id += 1;
        self.sent.insert(n as i64, waiting);
        Id::number(n)
    }

    /// Removes a request to the peer after its reply or a time-out. Returns its waiter; `None` for a late or unknown
    /// reply, which the caller drops.
    pub fn take_waiter(&mut self, id: &Id) -> Option<T> {
        self.sent.remove(&sent_number(id)?)
    }

    /// Returns the waiter of a request to the peer.
    pub fn waiter(&self, id: &Id) -> Option<&T> {
        self.sent.get(&sent_number(id)?)
    }

    /// Returns the waiter of a request to the peer, for changes.
    pub fn waiter_mut(&mut self, id: &Id) -> Option<&mut T> {
        self.sent.get_mut(&sent_number(id)?)
    }

    /// Returns the waiters of all requests to the peer, in no order.
    pub fn waiters(&self) -> impl Iterator<Item = &T> {
        self.sent.values()
    }

    /// Returns the id of the only request in flight to the peer; `None` if there are none or several.
    pub fn only_sent_id(&self) -> Option<Id> {
        let mut numbers = self.sent.keys();
        let first = u64::try_from(*numbers.next()?).ok()?;
        numbers.next().is_none().then(|| Id::number(first))
    }

    /// Removes and returns the waiters of all requests to the peer, after it disconnected.
    pub fn drain_waiters(&mut self) -> Vec<T> {
        self.sent.drain().map(|(_, waiting)| waiting).collect()
    }

    /// Registers a request that the peer sent, with the worker that executes it.
    ///
    /// # Errors
    /// Returns a [`RequestTableError`] if the request must not be executed.
    pub fn accept(&mut self, id: &Id, working: R) -> Result<(), RequestTableError> {
        let full = self.received.len() >= self.max_received;
        let id = id.key();
        match self.position(&id) {
            Ok(_) => Err(RequestTableError::Duplicate),
            Err(_) if full => Err(RequestTableError::TooMany),
            Err(at) => {
                self.received.insert(at, (id, working));
                Ok(())
            }
        }
    }

    /// Removes a request that the peer sent, once its worker has completed. `None` means that the request was cancelled
    /// before, so no reply may be sent.
    pub fn finish(&mut self, id: &Id) -> Option<R> {
        self.remove(id)
    }

    /// Cancels a request that the peer sent, and returns its worker, to abort it. Returns `None` for an unknown or
    /// completed request, whose cancellation is ignored.
    pub fn cancel(&mut self, id: &Id) -> Option<R> {
        self.remove(id)
    }

    /// Removes all requests in flight that the peer sent, and returns their workers, to abort them in a shutdown.
    pub fn drain_workers(&mut self) -> Vec<R> {
        let received = std::mem::take(&mut self.received).into_iter();
        received.map(|(_, working)| working).collect()
    }

    /// Returns the number of requests in flight that the peer sent.
    pub fn received_count(&self) -> usize {
        self.received.len()
    }

    fn remove(&mut self, id: &Id) -> Option<R> {
        let at = self.position(&id.key()).ok()?;
        Some(self.received.remove(at).1)
    }

    /// Returns the position of a request that the peer sent, or the one at which it belongs.
    fn position(&self, id: &IdKey) -> Result<usize, usize> {
        self.received.binary_search_by(|(key, _)| key.cmp(id))
    }
}

/// Returns the number of a request to the peer. Some servers return the number as a string; all ids of this program are
/// numbers, so it is unambiguous.
fn sent_number(id: &Id) -> Option<i64> {
    match id.key() {
        IdKey::Number(n) => Some(n),
        IdKey::Text(text) => text.parse().ok().filter(|n: &i64| n.to_string() == text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests all orders of a cancellation, a reply and a time-out: exactly one of them ends the request.
    ///
    /// Holds: CANC-10
    #[test]
    fn a_request_ends_exactly_once() {
        for order in [
            [0, 1, 2],
            [0, 2, 1],
            [1, 0, 2],
            [1, 2, 0],
            [2, 0, 1],
            [2, 1, 0],
        ] {
            let mut ours: RequestTable<&str, ()> = RequestTable::new(8);
            let id = ours.register("call");
            let ended = order
                .iter()
                .filter(|_| ours.take_waiter(&id).is_some())
                .count();
            assert_eq!(ended, 1, "ours, {order:?}");

            let mut theirs: RequestTable<(), &str> = RequestTable::new(8);
            theirs.accept(&id, "work").unwrap();
            let mut ended = 0;
            for step in order {
                let over = if step == 0 {
                    theirs.cancel(&id)
                } else {
                    theirs.finish(&id)
                };
                ended += usize::from(over.is_some());
            }
            assert_eq!(ended, 1, "theirs, {order:?}");
            assert_eq!(theirs.received_count(), 0);
        }
    }

    /// Holds: BASE-05, BASE-06
    #[test]
    fn the_first_of_two_equal_ids_wins_and_the_id_is_free_afterwards() {
        let mut s: RequestTable<(), &str> = RequestTable::new(8);
        let id = Id::number(7);
        s.accept(&id, "first").unwrap();
        assert_eq!(s.accept(&id, "second"), Err(RequestTableError::Duplicate));
        assert_eq!(s.finish(&id), Some("first"));
        s.accept(&id, "third").unwrap();
    }

    #[test]
    fn one_over_the_limit_is_refused() {
        let mut s: RequestTable<(), ()> = RequestTable::new(2);
        assert!(s.accept(&Id::number(1), ()).is_ok());
        assert!(s.accept(&Id::number(2), ()).is_ok());
        assert_eq!(
            s.accept(&Id::number(3), ()),
            Err(RequestTableError::TooMany)
        );
    }

    #[test]
    fn ignores_an_unexpected_reply() {
        let mut s: RequestTable<&str, ()> = RequestTable::new(2);
        assert_eq!(s.take_waiter(&Id::number(9)), None);
        let quoted = |text: &str| Id::read(&crate::json::Json::from_value(&text.into())).unwrap();
        let mut s: RequestTable<&str, ()> = RequestTable::new(2);
        s.register("call");
        for other in ["01", " 1", "1.0", "+1", "one", ""] {
            assert_eq!(s.take_waiter(&quoted(other)), None, "{other}");
        }
        assert_eq!(s.take_waiter(&quoted("1")), Some("call"));
        let mut s: RequestTable<&str, ()> = RequestTable::new(2);
        s.register("call");
        assert_eq!(s.drain_waiters(), vec!["call"]);
    }
}
