//! Memory permits that are held for a call until its response has been sent.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};
use toolgate_protocol::{json::Json, memory_budget::MemoryPermit};

/// Memory permits of the messages that a call consists of. Clones share one set.
#[derive(Clone, Default)]
pub struct HeldPermits(Arc<Mutex<Vec<Arc<MemoryPermit>>>>);

impl HeldPermits {
    /// Holds the memory permit of this JSON text, if it has one.
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
