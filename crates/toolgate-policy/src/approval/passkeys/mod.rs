//! Passkeys of approvers: WebAuthn signatures over the exact call that they approve.
//!
//! - `assertion`: verification of WebAuthn assertions.
//! - `public_key`: public keys of passkeys.
//! - `list`: the list of enrolled passkeys, each change of which an enrolled passkey signed.
//! - `change`: one change of the list, and its text.
//! - `registry`: the list in the store, and requests for enrollment.
//! - `signed_approval`: what a passkey signs for an approval.

mod assertion;
mod change;
mod list;
mod public_key;
mod registry;
mod signed_approval;

pub use assertion::{PasskeyAssertion, RelyingParty};
pub use change::{EnrolledPasskey, PasskeyChange, PasskeyRequest};
pub use list::{PasskeyList, PasskeyListError};
pub use public_key::PasskeyPublicKey;
pub use registry::{EnrollOutcome, PasskeyRegistry, PasskeySettings, PendingPasskeyRequest};
pub use signed_approval::SignedApproval;

use ring::digest::{SHA256, digest};
use serde_json::Value;
use toolgate_core::Json;

/// Returns JSON with sorted members. Its values are texts and booleans.
fn canonical(value: &Value) -> String {
    Json::from_value(value).canonical()
}

/// Returns the SHA-256 digest of a text, which is the challenge that a passkey signs for it.
#[must_use]
pub fn challenge_of(text: &str) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
    out
}
