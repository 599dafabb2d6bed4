//! What was decided on the way of a call, for the record and for whoever asks why.

use std::sync::{Arc, Mutex, PoisonError};

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

/// The decisions about one call, in their order; shared by all its rounds.
#[derive(Clone, Debug, Default)]
pub struct Trail(Arc<Mutex<Vec<Step>>>);

impl Trail {
    /// Adds a decision.
    pub fn add(&self, by: &'static str, verdict: &'static str, why: impl Into<String>) {
        self.steps_mut().push(Step {
            by,
            verdict,
            why: why.into(),
        });
    }

    /// Forgets them: a new round is judged anew.
    pub fn clear(&self) {
        self.steps_mut().clear();
    }

    /// All decisions so far.
    pub fn steps(&self) -> Vec<Step> {
        self.steps_mut().clone()
    }

    fn steps_mut(&self) -> std::sync::MutexGuard<'_, Vec<Step>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
