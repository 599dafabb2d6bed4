//! Text that a passkey signs for an approval: the exact call.

use super::{canonical, challenge_of};
use serde_json::{Value, json};

/// Format of the text, so that a signature is for nothing else.
const FORMAT: &str = "toolgate-approval-v1";

/// Text that the passkey of an approver signs: the exact call. The challenge of the assertion is its SHA-256 digest.
///
/// The text is JSON with sorted members. It has keyed digests of the arguments, and no arguments.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SignedApproval(String);

impl SignedApproval {
    /// Creates the text from its members. Those that are null are left out.
    pub(crate) fn new(mut members: Value) -> SignedApproval {
        members["format"] = json!(FORMAT);
        members["decision"] = json!("approve");
        if let Some(members) = members.as_object_mut() {
            members.retain(|_, value| !value.is_null());
        }
        SignedApproval(canonical(&members))
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the challenge that the passkey signs.
    #[must_use]
    pub fn challenge(&self) -> [u8; 32] {
        challenge_of(&self.0)
    }
}
