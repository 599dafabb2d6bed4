//! Status of the shared database: connected or away, and the age of the copy in memory.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// Status of the shared database, as this gateway sees it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct StoreStatus {
    /// Reason for the outage, with addresses; `None` while the database answers.
    pub outage: Option<Arc<str>>,
    /// Number of outages so far.
    pub outages: u64,
}

/// Status that each call may read.
pub(crate) struct StatusCell {
    status: watch::Sender<StoreStatus>,
    started: Instant,
    /// Milliseconds from `started` to the last moment at which the copy was known to be complete.
    fresh_at: AtomicU64,
    stale_after: Duration,
}

impl StatusCell {
    pub(crate) fn new(stale_after: Duration) -> StatusCell {
        StatusCell {
            status: watch::Sender::default(),
            started: Instant::now(),
            fresh_at: AtomicU64::new(0),
            stale_after,
        }
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<StoreStatus> {
        self.status.subscribe()
    }

    /// Returns the reason of the outage, or `None` while the database answers.
    pub(crate) fn outage(&self) -> Option<Arc<str>> {
        self.status.borrow().outage.clone()
    }

    /// Notes that the copy had all changes at a time, which is that of the request, not of the answer.
    pub(crate) fn set_fresh(&self, asked: Instant) {
        let passed = asked.saturating_duration_since(self.started).as_millis();
        let passed = u64::try_from(passed).unwrap_or(u64::MAX);
        self.fresh_at.fetch_max(passed, Ordering::Relaxed);
        self.status
            .send_if_modified(|status| status.outage.take().is_some());
    }

    pub(crate) fn set_away(&self, reason: &Arc<str>) {
        self.status.send_if_modified(|status| {
            let before = status.outage.replace(reason.clone());
            status.outages += u64::from(before.is_none());
            before.as_ref() != Some(reason)
        });
    }

    /// Returns the reason why the copy no longer authenticates callers.
    pub(crate) fn stale_reason(&self) -> Option<Arc<str>> {
        let fresh_at = Duration::from_millis(self.fresh_at.load(Ordering::Relaxed));
        let age = self.started.elapsed().saturating_sub(fresh_at);
        if age <= self.stale_after {
            return None;
        }
        let outage = self.outage();
        let outage = outage.as_deref().unwrap_or("it does not answer");
        Some(
            format!(
                "the copy of the shared store is {} s old: {outage}",
                age.as_secs()
            )
            .into(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_stale_once_it_is_older_than_the_limit() {
        let status = StatusCell::new(Duration::from_secs(10));
        let started = status.started;
        assert_eq!(status.stale_reason(), None);
        let status = StatusCell {
            started: started
                .checked_sub(Duration::from_secs(11))
                .unwrap_or(started),
            ..status
        };
        let reason = status.stale_reason().unwrap();
        assert!(reason.contains("11 s old"), "{reason}");
        // The time of the request counts, not that of the answer.
        status.set_fresh(status.started + Duration::from_millis(500));
        assert!(status.stale_reason().is_some());
        status.set_fresh(Instant::now());
        assert_eq!(status.stale_reason(), None);
    }

    #[test]
    fn counts_an_outage_once_however_often_it_is_reported() {
        let status = StatusCell::new(Duration::from_secs(10));
        for reason in ["refused", "timed out"] {
            status.set_away(&reason.into());
        }
        assert_eq!(status.outage().as_deref(), Some("timed out"));
        assert_eq!(status.subscribe().borrow().outages, 1);
        status.set_fresh(Instant::now());
        assert_eq!(status.outage(), None);
        assert_eq!(status.subscribe().borrow().outage, None);
        status.set_away(&"refused".into());
        assert_eq!(status.subscribe().borrow().outages, 2);
    }
}
