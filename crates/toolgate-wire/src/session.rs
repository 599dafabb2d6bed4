//! One peer as a table of requests in flight, both ways. A step machine: no I/O, no clock.

use crate::message::{Id, IdKey};
use std::collections::{BTreeMap, HashMap, btree_map::Entry};

/// The requests in flight with one peer. `T` is what waits for a reply, `R` what works on a request of the peer.
#[derive(Debug)]
pub struct Session<T, R> {
    next: u64,
    sent: HashMap<i64, T>,
    /// Bounded, so few that looking through them costs less than a hash.
    received: BTreeMap<IdKey, R>,
    limit: usize,
}

/// Why a request of the peer is not taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// The peer has a request of that id in flight already; the first one wins.
    Duplicate,
    /// The peer has as many requests in flight as it may.
    TooMany,
}

impl<T, R> Session<T, R> {
    /// An empty table that takes at most `limit` requests of the peer at once.
    pub fn new(limit: usize) -> Session<T, R> {
        Session {
            next: 1,
            sent: HashMap::new(),
            received: BTreeMap::new(),
            limit,
        }
    }

    /// We send a request: its fresh id. Ids are never used twice.
    pub fn open(&mut self, waiting: T) -> Id {
        let n = self.next;
        self.next += 1;
        self.sent.insert(n as i64, waiting);
        Id::number(n)
    }

    /// A reply came, or we gave up: what waited for it. `None` for a late or unknown one, which is dropped.
    pub fn settle(&mut self, id: &Id) -> Option<T> {
        self.sent.remove(&sent_number(id)?)
    }

    /// What waits for the reply to a request of ours.
    pub fn waiting(&self, id: &Id) -> Option<&T> {
        self.sent.get(&sent_number(id)?)
    }

    /// The same, to be changed.
    pub fn waiting_mut(&mut self, id: &Id) -> Option<&mut T> {
        self.sent.get_mut(&sent_number(id)?)
    }

    /// Everything that waits for a reply, in no order.
    pub fn all_waiting(&self) -> impl Iterator<Item = &T> {
        self.sent.values()
    }

    /// The one request of ours that waits for a reply; `None` where none or more do.
    pub fn only_waiting(&self) -> Option<Id> {
        let mut numbers = self.sent.keys();
        let first = u64::try_from(*numbers.next()?).ok()?;
        numbers.next().is_none().then(|| Id::number(first))
    }

    /// The peer is gone: everything that waited.
    pub fn lost(&mut self) -> Vec<T> {
        self.sent.drain().map(|(_, waiting)| waiting).collect()
    }

    /// The peer sent a request.
    ///
    /// # Errors
    /// [`Refusal`]: the request must not be worked on.
    pub fn accept(&mut self, id: &Id, working: R) -> Result<(), Refusal> {
        let full = self.received.len() >= self.limit;
        match self.received.entry(id.key()) {
            Entry::Occupied(_) => Err(Refusal::Duplicate),
            Entry::Vacant(_) if full => Err(Refusal::TooMany),
            Entry::Vacant(free) => {
                free.insert(working);
                Ok(())
            }
        }
    }

    /// The work on a request of the peer is over. `None` says that it was cancelled before: send nothing.
    pub fn finish(&mut self, id: &Id) -> Option<R> {
        self.received.remove(&id.key())
    }

    /// The peer cancels a request: what works on it. `None` for an unknown or finished one, which is ignored.
    pub fn cancel(&mut self, id: &Id) -> Option<R> {
        self.received.remove(&id.key())
    }

    /// We stop: everything that works on requests of the peer.
    pub fn stop(&mut self) -> Vec<R> {
        std::mem::take(&mut self.received).into_values().collect()
    }

    /// How many requests of the peer are in flight.
    pub fn working(&self) -> usize {
        self.received.len()
    }
}

/// The number of a request of ours. Some servers answer with the number in quotes; all our ids are numbers, so no other
/// request is meant.
fn sent_number(id: &Id) -> Option<i64> {
    match id.key() {
        IdKey::Number(n) => Some(n),
        IdKey::Text(text) => text.parse().ok().filter(|n: &i64| n.to_string() == text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All orders of a cancel, an answer and a time-out: exactly one of them ends the request.
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
            let mut ours: Session<&str, ()> = Session::new(8);
            let id = ours.open("call");
            let ended = order.iter().filter(|_| ours.settle(&id).is_some()).count();
            assert_eq!(ended, 1, "ours, {order:?}");

            let mut theirs: Session<(), &str> = Session::new(8);
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
            assert_eq!(theirs.working(), 0);
        }
    }

    /// Holds: BASE-05, BASE-06
    #[test]
    fn the_first_of_two_equal_ids_wins_and_the_id_is_free_afterwards() {
        let mut s: Session<(), &str> = Session::new(8);
        let id = Id::number(7);
        s.accept(&id, "first").unwrap();
        assert_eq!(s.accept(&id, "second"), Err(Refusal::Duplicate));
        assert_eq!(s.finish(&id), Some("first"));
        s.accept(&id, "third").unwrap();
    }

    #[test]
    fn one_over_the_limit_is_refused() {
        let mut s: Session<(), ()> = Session::new(2);
        assert!(s.accept(&Id::number(1), ()).is_ok());
        assert!(s.accept(&Id::number(2), ()).is_ok());
        assert_eq!(s.accept(&Id::number(3), ()), Err(Refusal::TooMany));
    }

    #[test]
    fn a_reply_to_nothing_is_dropped() {
        let mut s: Session<&str, ()> = Session::new(2);
        assert_eq!(s.settle(&Id::number(9)), None);
        let quoted = |text: &str| Id::read(&crate::json::Json::from_value(&text.into())).unwrap();
        let mut s: Session<&str, ()> = Session::new(2);
        s.open("call");
        for other in ["01", " 1", "1.0", "+1", "one", ""] {
            assert_eq!(s.settle(&quoted(other)), None, "{other}");
        }
        assert_eq!(s.settle(&quoted("1")), Some("call"));
        let mut s: Session<&str, ()> = Session::new(2);
        s.open("call");
        assert_eq!(s.lost(), vec!["call"]);
    }
}
