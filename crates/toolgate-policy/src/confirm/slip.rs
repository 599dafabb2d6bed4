//! One approval from the question to its end, as this process knows it.

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

/// When something is over: by either clock, so that neither a suspended machine nor a set clock prolongs it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expiry {
    pub(super) steady: Instant,
    pub(super) wall: SystemTime,
}

impl Expiry {
    /// At that time of the store's clock, which shows `now`; never later than a life from now.
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

/// One approval.
pub(super) struct Slip {
    pub(super) id: Arc<str>,
    /// What the store has, as of `version`; 0 while it is on its way there.
    pub(super) kept: Kept,
    pub(super) version: u64,
    /// A no that is on its way to the store: it counts at once.
    pub(super) no: Option<(Who, Option<String>)>,
    /// How it ended, where its time, its policy or the key of its caller is over.
    pub(super) over: Option<Standing>,
    pub(super) expiry: Expiry,
    /// Whether it was asked in this process.
    pub(super) own: bool,
    /// The calls that asked for it.
    pub(super) calls: BTreeSet<Arc<str>>,
    /// The calls that were told of a denial.
    pub(super) told: BTreeSet<Arc<str>>,
    /// How many callers wait right now.
    pub(super) waiters: usize,
    /// True once it is decided.
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

    /// Where it stands now. A no wins over an unused yes, and a use over everything.
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

    /// Whether it can still turn out either way, or be used.
    pub(super) fn alive(&self) -> bool {
        self.standing().alive()
    }

    /// Takes what the store has now.
    pub(super) fn take(&mut self, kept: Kept, version: u64) {
        // One whose end met a change of another process is judged anew.
        self.over = None;
        (self.kept, self.version) = (kept, version);
        self.wake();
    }

    /// Wakes whoever waits, if it is decided.
    pub(super) fn wake(&self) {
        if self.standing() != Standing::Open {
            self.decided.send_replace(true);
        }
    }

    /// Puts another standing into the store, if it is there as we know it.
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

    /// An `approval` record.
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

    /// The same, with who decided.
    pub(super) fn record_by(&self, state: &str, who: &Who) -> Entry {
        let record = self.record(state).with("by", who.by.as_str());
        match &who.name {
            Some(name) => record.with("who", &**name),
            None => record,
        }
    }
}
