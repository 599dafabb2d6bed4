//! Life cycle of one approval in this process.

use super::{
    Standing, Who,
    kept::{Kept, TABLE},
};
use crate::{Clock, Expect, Store, Written};
use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::{sync::watch, time::Instant};
use toolgate_core::{BoxFuture, Error};
use toolgate_journal::{Entry, Event};

/// Expiry by the monotonic or the wall clock, whichever comes first. Neither suspending the machine nor setting the
/// clock extends it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expiry {
    pub(super) steady: Instant,
    pub(super) wall: SystemTime,
}

impl Expiry {
    /// Creates an expiry at a time of the store's clock, which reads `now`; at most `life` from now.
    pub(super) fn at(wall: SystemTime, now: SystemTime, life: Duration) -> Expiry {
        let left = wall.duration_since(now).unwrap_or_default().min(life);
        Expiry {
            steady: Instant::now() + left,
            wall,
        }
    }

    pub(super) fn past(&self, clock: &Clock) -> bool {
        self.past_by(Duration::ZERO, clock)
    }

    pub(super) fn past_by(&self, more: Duration, clock: &Clock) -> bool {
        Instant::now() >= self.steady + more || clock.now() >= self.wall + more
    }
}

/// An approval as this process knows it.
pub(super) struct Slip {
    pub(super) id: Arc<str>,
    /// The stored row as of `version`; version 0 means that the first write is in flight.
    pub(super) kept: Kept,
    pub(super) version: u64,
    /// A denial that is being written to the store. It takes effect immediately.
    pub(super) no: Option<(Who, Option<String>)>,
    /// Final status, if the approval expired, the policy changed or the caller's key was revoked.
    pub(super) over: Option<Standing>,
    pub(super) expiry: Expiry,
    /// True if this process requested the approval.
    pub(super) own: bool,
    /// Ids of the calls that requested it.
    pub(super) calls: BTreeSet<Arc<str>>,
    /// Ids of the calls that received the denial.
    pub(super) told: BTreeSet<Arc<str>>,
    /// Number of callers that wait now.
    pub(super) waiters: usize,
    /// True once the approval is decided.
    pub(super) decided: watch::Sender<bool>,
}

impl Slip {
    pub(super) fn new(
        id: Arc<str>,
        version: u64,
        kept: Kept,
        (now, life): (SystemTime, Duration),
    ) -> Slip {
        let settled = kept.standing != Standing::Open;
        Slip {
            id,
            expiry: Expiry::at(kept.expires, now, life),
            calls: [kept.call.clone()].into(),
            kept,
            version,
            no: None,
            over: None,
            own: version == 0,
            told: BTreeSet::new(),
            waiters: 0,
            decided: watch::Sender::new(settled),
        }
    }

    /// Returns the status. A denial overrides an unspent approval, and a use overrides everything.
    pub(super) fn standing(&self) -> Standing {
        match (&self.kept.standing, &self.no) {
            (spent @ Standing::Spent { .. }, _) => spent.clone(),
            (_, Some((who, why))) => Standing::Denied(who.clone(), why.clone()),
            (Standing::Open | Standing::Approved(_), None) => {
                self.over.as_ref().unwrap_or(&self.kept.standing).clone()
            }
            (standing, None) => standing.clone(),
        }
    }

    /// Reports whether the approval can still be decided or spent.
    pub(super) fn alive(&self) -> bool {
        self.standing().alive()
    }

    /// Replaces the stored row with a newer version.
    pub(super) fn take(&mut self, kept: Kept, version: u64) {
        // Expiry is judged again after a change by another process.
        self.over = None;
        (self.kept, self.version) = (kept, version);
        self.wake();
    }

    /// Wakes the waiting callers, if the approval is decided.
    pub(super) fn wake(&self) {
        if self.standing() != Standing::Open {
            self.decided.send_replace(true);
        }
    }

    /// Writes a changed row to the store, if the stored version is still the known one.
    pub(super) fn write(
        &self,
        store: &dyn Store,
        change: impl FnOnce(&mut Kept),
    ) -> BoxFuture<'static, Result<Written, Error>> {
        let mut kept = self.kept.clone();
        change(&mut kept);
        let expect = match self.version {
            0 => Expect::Absent,
            version => Expect::Version(version),
        };
        store.write(TABLE, &self.id, Some(kept.json()), expect)
    }

    /// Returns an `approval` audit record.
    pub(super) fn record(&self, state: &str) -> Entry {
        let binding = &self.kept.binding;
        Entry::new(Event::APPROVAL)
            .with("approval", &*self.id)
            .with("state", state)
            .with("caller", binding.caller.name())
            .with("srv", &*binding.server)
            .with("tool", self.kept.item.full_name())
            .with("tool_hash", binding.definition.as_str())
            .with("policy_hash", &*binding.policy)
    }

    /// Returns an `approval` audit record with the approver.
    pub(super) fn record_by(&self, state: &str, who: &Who) -> Entry {
        let record = self.record(state).with("by", who.by.as_str());
        match &who.name {
            Some(name) => record.with("who", &**name),
            None => record,
        }
    }
}
