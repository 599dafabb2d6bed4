//! One approval from the question to its end.

use super::Binding;
use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::{sync::watch, time::Instant};
use toolgate_core::{Item, Json, Seen};
use toolgate_journal::{Entry, Event};

/// On which channel a person decided.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum By {
    /// The console.
    Console,
    /// The command line.
    Terminal,
    /// The caller's own client: its agent may have answered for its user.
    Client,
}

impl By {
    /// The word of the record.
    pub fn as_str(self) -> &'static str {
        match self {
            By::Console => "console",
            By::Terminal => "terminal",
            By::Client => "client",
        }
    }
}

/// Where an approval stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Standing {
    /// Nobody decided yet.
    Open,
    /// Good for one use of exactly this call.
    Approved(By),
    /// Denied, with the reason that the model reads.
    Denied(By, Option<String>),
    /// Nobody decided, or nobody used it, in time.
    Expired,
    /// Used by the call of that id; it holds for the later rounds of that call.
    Spent {
        /// The id of the call.
        call: Arc<str>,
        /// The last round that it was used in.
        round: u32,
        /// Who had approved.
        by: By,
    },
}

impl Standing {
    /// The word of the record.
    pub fn as_str(&self) -> &'static str {
        match self {
            Standing::Open => "asked",
            Standing::Approved(_) => "approved",
            Standing::Denied(..) => "denied",
            Standing::Expired => "expired",
            Standing::Spent { .. } => "spent",
        }
    }
}

/// When something is over: by either clock, so that neither a suspended machine nor a set clock prolongs it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expiry {
    pub(super) steady: Instant,
    pub(super) wall: SystemTime,
}

impl Expiry {
    pub(super) fn after(life: Duration) -> Expiry {
        Expiry {
            steady: Instant::now() + life,
            wall: SystemTime::now() + life,
        }
    }

    pub(super) fn past(&self) -> bool {
        self.past_by(Duration::ZERO)
    }

    pub(super) fn past_by(&self, more: Duration) -> bool {
        Instant::now() >= self.steady + more || SystemTime::now() >= self.wall + more
    }
}

/// One approval.
pub(super) struct Slip {
    pub(super) id: Arc<str>,
    pub(super) binding: Binding,
    pub(super) item: Arc<Item>,
    pub(super) arguments: Json,
    pub(super) reasons: Vec<String>,
    pub(super) seen: Arc<Seen>,
    pub(super) asked: SystemTime,
    pub(super) expiry: Expiry,
    pub(super) standing: Standing,
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
    /// Moves on, and wakes whoever waits.
    pub(super) fn set(&mut self, standing: Standing) {
        self.standing = standing;
        self.decided.send_replace(true);
    }

    /// Whether it can still turn out either way, or be used.
    pub(super) fn alive(&self) -> bool {
        matches!(self.standing, Standing::Open | Standing::Approved(_))
    }

    /// An `approval` record of where it stands.
    pub(super) fn record(&self) -> Entry {
        Entry::new(Event::APPROVAL)
            .with("approval", &*self.id)
            .with("state", self.standing.as_str())
            .with("caller", self.binding.caller.name())
            .with("srv", &*self.binding.server)
            .with("tool", self.item.full_name())
            .with("tool_hash", self.binding.definition.as_str())
            .with("policy_hash", &*self.binding.policy)
    }
}
