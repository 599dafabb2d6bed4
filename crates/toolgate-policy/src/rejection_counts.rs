//! Counts of calls that a limit rejected, for the audit log: a flood of them is counted instead of listed.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use toolgate_journal::{AuditEntry, AuditEvent};

/// Calls of one caller, rejected by one limit within [`COUNT_WINDOW`], that have records of their own.
const MAX_LISTED_REJECTIONS: u32 = 100;
/// Period in which rejected calls are counted.
const COUNT_WINDOW: Duration = Duration::from_secs(10);
/// Maximum number of callers and limits that are counted at the same time. Further ones have only records of their own.
const MAX_COUNTED: usize = 1024;

/// Counts of rejected calls by caller and limit.
#[derive(Default)]
pub(crate) struct RejectionCounts(Mutex<HashMap<RejectionKey, RejectionWindow>>);

/// The caller, and the part of the pipeline that rejected its call.
#[derive(Clone, Eq, Hash, PartialEq)]
struct RejectionKey {
    caller: Arc<str>,
    by: &'static str,
}

/// Rejected calls of one window.
struct RejectionWindow {
    since: Instant,
    listed: u32,
    counted: u64,
    /// Times of the first and the last counted call, in microseconds since the Unix epoch.
    first_us: u64,
    last_us: u64,
}

impl RejectionCounts {
    /// Counts a rejected call. Returns true if it has a record of its own. The second value is the record of the calls
    /// that were counted before, if they are in an earlier window.
    pub(crate) fn count(
        &self,
        caller: &str,
        by: &'static str,
        now: Instant,
    ) -> (bool, Option<AuditEntry>) {
        let key = RejectionKey {
            caller: caller.into(),
            by,
        };
        let mut windows = self.lock();
        if windows.len() >= MAX_COUNTED && !windows.contains_key(&key) {
            windows.retain(|_, window| window.counted > 0 || !window.is_over(now));
            if windows.len() >= MAX_COUNTED {
                return (true, None);
            }
        }
        let window = windows
            .entry(key.clone())
            .or_insert_with(|| RejectionWindow::new(now));
        let before = window.take_if_over(now);
        let is_listed = window.listed < MAX_LISTED_REJECTIONS;
        match is_listed {
            true => window.listed += 1,
            false => window.count(),
        }
        drop(windows);
        (is_listed, before.map(|before| record(&key, &before)))
    }

    /// Returns the records of all counted calls of windows that are over; with `all`, of all windows.
    pub(crate) fn take(&self, now: Instant, all: bool) -> Vec<AuditEntry> {
        let mut records = Vec::new();
        self.lock().retain(|key, window| {
            let is_over = all || window.is_over(now);
            if is_over && window.counted > 0 {
                records.push(record(key, window));
            }
            !is_over
        });
        records
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RejectionKey, RejectionWindow>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RejectionWindow {
    fn new(now: Instant) -> RejectionWindow {
        RejectionWindow {
            since: now,
            listed: 0,
            counted: 0,
            first_us: 0,
            last_us: 0,
        }
    }

    fn is_over(&self, now: Instant) -> bool {
        now.duration_since(self.since) > COUNT_WINDOW
    }

    /// Begins a new window if this one is over. Returns this one if calls were counted in it.
    fn take_if_over(&mut self, now: Instant) -> Option<RejectionWindow> {
        if !self.is_over(now) {
            return None;
        }
        let over = std::mem::replace(self, RejectionWindow::new(now));
        (over.counted > 0).then_some(over)
    }

    fn count(&mut self) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = u64::try_from(since.unwrap_or_default().as_micros()).unwrap_or(u64::MAX);
        if self.counted == 0 {
            self.first_us = now;
        }
        self.counted += 1;
        self.last_us = now;
    }
}

/// Returns the record of the counted calls of a window.
fn record(key: &RejectionKey, window: &RejectionWindow) -> AuditEntry {
    AuditEntry::new(AuditEvent::OVERLOAD)
        .with_text("by", key.by)
        .with_text("caller", &key.caller)
        .with_number("skipped", window.counted)
        .with_number("first", window.first_us)
        .with_number("last", window.last_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(record: &AuditEntry, name: &str) -> u64 {
        record.get(name).and_then(|value| value.as_u64()).unwrap()
    }

    #[test]
    fn counts_a_flood_by_caller_and_limit() {
        let (counts, start) = (RejectionCounts::default(), Instant::now());
        let listed = |caller, by| counts.count(caller, by, start).0;
        assert!((0..MAX_LISTED_REJECTIONS).all(|_| listed("ann", "rate")));
        assert!((0..7).all(|_| !listed("ann", "rate")));
        assert!(listed("ann", "concurrency") && listed("bob", "rate"));

        let later = start + COUNT_WINDOW + Duration::from_secs(1);
        let (is_listed, before) = counts.count("ann", "rate", later);
        let before = before.unwrap();
        assert!(is_listed);
        assert_eq!(before.event, AuditEvent::OVERLOAD);
        assert_eq!(before.get("caller"), Some("ann".into()));
        assert_eq!(before.get("by"), Some("rate".into()));
        assert_eq!(number(&before, "skipped"), 7);
        let (first, last) = (number(&before, "first"), number(&before, "last"));
        assert!(first > 1_600_000_000_000_000 && first <= last);
        assert!(counts.count("ann", "rate", later).1.is_none(), "once");
    }

    #[test]
    fn a_flood_that_has_ended_is_taken_after_its_window() {
        let (counts, start) = (RejectionCounts::default(), Instant::now());
        (0..=MAX_LISTED_REJECTIONS).for_each(|_| _ = counts.count("ann", "rate", start));
        assert!(counts.take(start, false).is_empty());
        let later = start + COUNT_WINDOW + Duration::from_secs(1);
        assert_eq!(counts.take(later, false).len(), 1);
        assert!(counts.take(later, true).is_empty());
        (0..=MAX_LISTED_REJECTIONS).for_each(|_| _ = counts.count("ann", "rate", later));
        assert_eq!(
            counts.take(later, true).len(),
            1,
            "at the end of the program"
        );
    }

    #[test]
    fn callers_beyond_the_limit_are_listed() {
        let (counts, start) = (RejectionCounts::default(), Instant::now());
        for caller in 0..MAX_COUNTED {
            counts.count(&format!("c{caller}"), "rate", start);
        }
        let listed = |now| counts.count("one-more", "rate", now).0;
        assert!((0..=MAX_LISTED_REJECTIONS).all(|_| listed(start)));
        let later = start + COUNT_WINDOW + Duration::from_secs(1);
        (0..MAX_LISTED_REJECTIONS).for_each(|_| assert!(listed(later)));
        assert!(!listed(later), "idle callers make room");
    }
}
