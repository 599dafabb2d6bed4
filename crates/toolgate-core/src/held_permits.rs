//! Memory permits that are held for a call until its response has been sent.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};
use toolgate_protocol::{json::Json, memory_budget::MemoryPermit};

/// Memory permits of a call's messages, held until the response has been sent. Clones share one set.
#[derive(Clone, Default)]
pub struct HeldPermits(Arc<Mutex<Vec<Arc<MemoryPermit>>>>);

impl HeldPermits {
    /// Holds the memory permit of this JSON text, if it has one, until the call's response has been sent.
    pub fn hold(&self, json: &Json) {
        if let Some(claim) = json.permit() {
            let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            held.push(claim);
        }
    }
}

impl fmt::Debug for HeldPermits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeldPermits")
    }
}
