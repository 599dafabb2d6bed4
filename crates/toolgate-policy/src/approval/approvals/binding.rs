//! Binding of an approval: the exact call that it authorizes.

use crate::digest;
use std::sync::Arc;
use toolgate_core::{Call, Caller, Item};

/// Everything that must match for an approval to authorize a call.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ApprovalBinding {
    /// The caller.
    pub caller: Caller,
    /// Key generation: distinguishes successive owners of one caller name.
    pub generation: Option<u64>,
    /// Configured id of the server.
    pub server: Arc<str>,
    /// The item: the server's own name of a tool, `resource:URI` or `prompt:NAME`.
    pub tool: String,
    /// SHA-256 of the definition that the caller sees.
    pub definition: String,
    /// SHA-256 of the arguments as canonical JSON.
    pub arguments: String,
    /// Hash of the policy in force.
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
