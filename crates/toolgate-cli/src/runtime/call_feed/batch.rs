//! Changes of calls in batches, for one open page of the console.

use super::{CallFeed, displayed_call::DisplayedCall, recent_calls::RecentCalls};
use crate::timestamp::millis;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::{sync::watch, time::Instant};

/// Minimum time between two batches for one page.
const MIN_BATCH_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum number of rows in a batch. Further calls are only counted.
const MAX_BATCH_ROWS: usize = 40;

/// Follows the changes of calls for one page.
pub(crate) struct CallFollower {
    changes: watch::Receiver<u64>,
    /// Version up to which changes were sent.
    seen: u64,
    /// Calls that the page has and that did not end yet: their changes are always sent.
    open: HashSet<Arc<str>>,
    last: Instant,
}

/// Counter of the ended calls of one kind in a batch.
#[derive(Eq, Ord, PartialEq, PartialOrd)]
struct CountKey {
    server: Arc<str>,
    tool: String,
    caller: String,
    outcome: &'static str,
    refusal: Option<&'static str>,
    approved: bool,
}

impl CallFollower {
    /// Follows the changes from now on. The page has the rows of [`CallFeed::rows`] already.
    pub(crate) fn new(feed: &CallFeed) -> CallFollower {
        let mut changes = feed.version.subscribe();
        let seen = *changes.borrow_and_update();
        let calls = feed.lock_calls();
        let open = calls.iter().filter(|call| call.state != "done");
        CallFollower {
            seen,
            open: open.map(|call| call.id.clone()).collect(),
            changes,
            last: Instant::now(),
        }
    }

    /// Waits for changes, and returns them as one batch. A single change is returned at once; a flood is returned in
    /// intervals.
    pub(crate) async fn next(&mut self, feed: &CallFeed) -> Value {
        // A change that a cancelled wait saw already counts as well.
        if *self.changes.borrow() <= self.seen {
            // The sender lives in the feed, so it cannot be closed.
            let _ = self.changes.changed().await;
        }
        tokio::time::sleep_until(self.last + MIN_BATCH_INTERVAL).await;
        self.last = Instant::now();
        self.collect(feed)
    }

    fn collect(&mut self, feed: &CallFeed) -> Value {
        let before = self.seen;
        self.seen = *self.changes.borrow_and_update();
        let (changed, lost) = {
            let calls = feed.lock_calls();
            let new = calls.iter().filter(|call| call.version > before);
            let changed: Vec<DisplayedCall> = new.cloned().collect();
            (changed, self.take_lost(&calls))
        };
        let mut counts = BTreeMap::<CountKey, (u64, u64)>::new();
        let mut rows: Vec<Value> = lost
            .iter()
            .map(|id| json!({"id": id, "state": "lost"}))
            .collect();
        for call in &changed {
            if call.state == "done" {
                let (count, took) = counts.entry(CountKey::of(call)).or_default();
                *count += 1;
                *took += u64::try_from(call.duration_ms.unwrap_or_default()).unwrap_or_default();
            }
            let known = self.open.contains(&call.id);
            if known || rows.len() < MAX_BATCH_ROWS {
                rows.push(call.row());
                match call.state {
                    "done" => self.open.remove(&call.id),
                    _ => self.open.insert(call.id.clone()),
                };
            }
        }
        let counts: Vec<Value> = counts.iter().map(|(key, n)| key.json(*n)).collect();
        json!({"at": millis(SystemTime::now()), "rows": rows, "counts": counts})
    }
}

impl CallFollower {
    /// Removes the open calls that newer ones have pushed out of the list, and returns them.
    fn take_lost(&mut self, calls: &RecentCalls) -> Vec<Arc<str>> {
        if !calls.is_full() {
            return Vec::new();
        }
        self.open.extract_if(|id| !calls.contains(id)).collect()
    }
}

impl CountKey {
    fn of(call: &DisplayedCall) -> CountKey {
        CountKey {
            server: call.server.clone(),
            tool: call.tool.clone(),
            caller: call.caller.name().to_owned(),
            outcome: call.outcome.unwrap_or_default(),
            refusal: call.refusal(),
            approved: call.is_approved(),
        }
    }

    fn json(&self, (count, took): (u64, u64)) -> Value {
        json!({
            "server": self.server, "tool": self.tool, "caller": self.caller, "outcome": self.outcome,
            "refusal": self.refusal, "approved": self.approved, "n": count, "took_ms": took,
        })
    }
}
