//! Binding of an approval: the exact call that it authorizes.

use crate::digest;
use std::sync::Arc;
use toolgate_core::{Call, Caller, Item};

/// Everything about a call that must match for a person's approval to authorize it: caller, item, definition,
/// arguments.
///
/// Standard: [canonical JSON, RFC 8785](https://www.rfc-editor.org/rfc/rfc8785).
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ApprovalBinding {
    /// Caller whose call the approval authorizes.
    pub caller: Caller,
    /// Key generation of the caller: distinguishes successive owners of one caller name.
    pub generation: Option<u64>,
    /// Configured id of the server that the approved call goes to.
    pub server: Arc<str>,
    /// Item of the approved call: the server's own name of a tool, `resource:URI` or `prompt:NAME`.
    pub tool: String,
    /// SHA-256 of the item definition that the caller sees.
    pub definition: String,
    /// SHA-256 of the approved arguments as canonical JSON.
    pub arguments: String,
    /// Hash of the operator's policy in force when the approval was requested.
    pub policy: Arc<str>,
}

impl ApprovalBinding {
    /// Returns the binding of a call.
    pub(crate) fn of(call: &Call, item: &Item, policy: &Arc<str>) -> ApprovalBinding {
        ApprovalBinding {
            caller: call.caller.clone(),
            generation: call.caller.generation(),
            server: item.origin.server.clone(),
            tool: item.local_key(),
            definition: digest::definition(item).as_str().to_owned(),
            arguments: digest::of_json(call.arguments().raw()),
            policy: policy.clone(),
        }
    }
}
