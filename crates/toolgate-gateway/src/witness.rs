//! Audit of requests that the edges reject. More than 100 in 10 s are counted instead of listed.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use toolgate::{
    BoxFuture, Caller,
    edge::{Refused, Unheard, Witness},
};
use toolgate_journal::{Entry, Event, Journal};
use toolgate_policy::for_record;

/// Rejections within [`WINDOW`] that are audited one by one.
const EACH: u32 = 100;
/// Period in which rejections are counted.
const WINDOW: Duration = Duration::from_secs(10);

/// Audits the requests that the edges reject.
pub(crate) struct EdgeWitness {
    journal: Arc<Journal>,
    flood: Mutex<Flood>,
}

/// Counter of recent rejections, and of those that were not audited one by one.
struct Flood {
    since: Instant,
    count: u32,
    skipped: u64,
}

impl Flood {
    /// Returns the number of rejections skipped before this one; `None` if this one is skipped too.
    fn take(&mut self, now: Instant) -> Option<u64> {
        if now.duration_since(self.since) > WINDOW {
            (self.since, self.count) = (now, 0);
        }
        self.count = self.count.saturating_add(1);
        if self.count > EACH {
            self.skipped += 1;
            return None;
        }
        Some(std::mem::take(&mut self.skipped))
    }
}

impl EdgeWitness {
    pub(crate) fn new(journal: Arc<Journal>) -> EdgeWitness {
        let flood = Flood {
            since: Instant::now(),
            count: 0,
            skipped: 0,
        };
        EdgeWitness {
            journal,
            flood: Mutex::new(flood),
        }
    }
}

impl Witness for EdgeWitness {
    fn refused(&self, refused: Refused) -> BoxFuture<'_, ()> {
        let mut flood = self.flood.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = flood.take(Instant::now());
        drop(flood);
        Box::pin(async move {
            let Some(skipped) = taken else { return };
            if skipped > 0 {
                let entry = Entry::new(Event::OVERLOAD).with("by", "edge");
                let _ = self.journal.note(entry.with("skipped", skipped));
            }
            // The request is rejected whether or not the record can be written. An unhealthy journal is reported
            // elsewhere.
            let _ = self.journal.append(for_record(entry(refused))).await;
        })
    }

    fn unheard(&self, caller: &Caller, transport: &'static str, unheard: Unheard) {
        // An unhealthy journal is reported elsewhere.
        let _ = self.journal.note(gone(caller, transport, unheard));
    }
}

/// Builds the audit record of a client that stopped answering pings, with what ends for it.
fn gone(caller: &Caller, transport: &'static str, unheard: Unheard) -> Entry {
    Entry::new("client.unheard")
        .with("caller", caller.name())
        .with("transport", transport)
        .with("pings", unheard.missed)
        .with("ended", unheard.ends)
}

fn entry(refused: Refused) -> Entry {
    Entry::new(Event::DENY)
        .with("caller", refused.caller.name())
        .with("transport", refused.transport)
        .with("method", refused.method.unwrap_or_default())
        .with("name", refused.tool.unwrap_or_default())
        .with("dec", "deny")
        .with("out", "refused")
        .with("code", "edge")
        .with("why", refused.reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_told_afterwards() {
        let start = Instant::now();
        let mut flood = Flood {
            since: start,
            count: 0,
            skipped: 0,
        };
        assert!((0..EACH).all(|_| flood.take(start) == Some(0)));
        assert!((0..7).all(|_| flood.take(start).is_none()));
        let later = start + WINDOW + Duration::from_secs(1);
        assert_eq!(flood.take(later), Some(7));
        assert_eq!(flood.take(later), Some(0));
    }
}
