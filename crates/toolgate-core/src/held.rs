//! What is held for a call until its answer has left.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};
use toolgate_wire::{json::Json, room::Claim};

/// The claims to room of the messages that a call is made of. Clones are one.
#[derive(Clone, Default)]
pub struct Held(Arc<Mutex<Vec<Arc<Claim>>>>);

impl Held {
    /// Holds the claim of this text, where it has one.
    pub fn hold(&self, json: &Json) {
        if let Some(claim) = json.claim() {
            let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            held.push(claim);
        }
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Held")
    }
}
