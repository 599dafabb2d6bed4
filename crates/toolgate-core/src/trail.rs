//! What was decided on the way of a call, for the record and for whoever asks why.

use crate::Item;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

/// One decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Which duty decided.
    pub by: &'static str,
    /// `allow`, `ask`, `refuse`, `approved` and the like.
    pub verdict: &'static str,
    /// The rule or the reason.
    pub why: String,
}

/// Why nobody waits for a call any more.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum GivenUp {
    /// Its caller cancelled it, with a reason where it gave one: foreign text.
    Caller(Option<Arc<str>>),
    /// The connection or the session that it belonged to ended.
    Link,
    /// It took too long.
    Late,
    /// An operator stopped it.
    Operator,
    /// The program stops.
    Stop,
}

impl GivenUp {
    /// Who gave it up, in the word of the record.
    pub fn by(&self) -> &'static str {
        match self {
            GivenUp::Caller(_) => "caller",
            GivenUp::Link => "link",
            GivenUp::Late => "deadline",
            GivenUp::Operator => "operator",
            GivenUp::Stop => "stop",
        }
    }

    /// The reason that its caller gave: foreign text.
    pub fn reason(&self) -> Option<&str> {
        match self {
            GivenUp::Caller(reason) => reason.as_deref(),
            _ => None,
        }
    }

    /// The reason for whoever works on it. Nothing of what its caller said is in it.
    pub fn words(&self) -> &'static str {
        match self {
            GivenUp::Caller(_) => "the caller cancelled it",
            GivenUp::Link => "the caller is gone",
            GivenUp::Late => "it took too long",
            GivenUp::Operator => "an operator stopped it",
            GivenUp::Stop => "the client stops",
        }
    }
}

/// The decisions about one call, in their order, and counts of what was done to its answers; shared by all its rounds.
#[derive(Clone, Debug, Default)]
pub struct Trail(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    steps: Vec<Step>,
    counts: BTreeMap<String, u64>,
    item: Option<Arc<Item>>,
    given_up: Option<GivenUp>,
}

impl Trail {
    /// Adds a decision.
    pub fn add(&self, by: &'static str, verdict: &'static str, why: impl Into<String>) {
        self.taken().steps.push(Step {
            by,
            verdict,
            why: why.into(),
        });
    }

    /// Counts something that may happen often, for example a redaction by the name of its rule.
    pub fn count(&self, what: &str, times: u64) {
        let mut taken = self.taken();
        match taken.counts.get_mut(what) {
            Some(count) => *count += times,
            None => _ = taken.counts.insert(what.to_owned(), times),
        }
    }

    /// What was counted, by name.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        self.taken().counts.clone()
    }

    /// Nobody waits for the call any more. Said before its future is dropped: what it opened then knows why it closes.
    pub fn give_up(&self, why: GivenUp) {
        self.taken().given_up = Some(why);
    }

    /// Why nobody waits for the call any more, where that was said.
    pub fn given_up(&self) -> Option<GivenUp> {
        self.taken().given_up.clone()
    }

    /// Forgets what was decided: a new round is judged anew.
    pub fn clear(&self) {
        let mut taken = self.taken();
        taken.steps.clear();
        taken.counts.clear();
        taken.item = None;
    }

    /// Takes down which item is behind the name.
    pub fn found(&self, item: Arc<Item>) {
        self.taken().item = Some(item);
    }

    /// The item behind the name, once the pipeline has looked it up.
    pub fn item(&self) -> Option<Arc<Item>> {
        self.taken().item.clone()
    }

    /// All decisions so far.
    pub fn steps(&self) -> Vec<Step> {
        self.taken().steps.clone()
    }

    /// Whether some decision so far is such a one.
    pub fn any(&self, is: impl FnMut(&Step) -> bool) -> bool {
        self.taken().steps.iter().any(is)
    }

    fn taken(&self) -> std::sync::MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
