//! Memory permits that are held for a call until its response has been sent.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};
use toolgate_protocol::{json::Json, memory_budget::MemoryPermit};

/// Memory permits of a call's messages, held until the response has been sent. Clones share one set.
///
/// ```
/// use toolgate_core::{Call, Json};
/// use toolgate_protocol::{
///     json::{JsonLimits, ReadError},
///     memory_budget::MemoryPermit,
/// };
///
/// /// Reads the response of a server. It counts against the memory budget until the caller has the result.
/// fn read_response(call: &Call, bytes: Vec<u8>, permit: MemoryPermit) -> Result<Json, ReadError> {
///     let response = Json::read_with_permit(bytes, &JsonLimits::default(), permit)?;
///     call.held_permits.hold(&response);
///     Ok(response)
/// }
/// ```
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
