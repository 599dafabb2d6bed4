//! What an approval is good for: this one use and no other.

use crate::digest;
use std::sync::Arc;
use toolgate_core::{Call, Caller, Item};

/// All that must be the same for an approval to count.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Binding {
    /// Who calls.
    pub caller: Caller,
    /// Which of those it is that have that name one after the other.
    pub holder: Option<u64>,
    /// The configured id of the server.
    pub server: Arc<str>,
    /// The tool under the server's own name, `resource:URI` or `prompt:NAME`.
    pub tool: String,
    /// SHA-256 of the definition that the caller sees.
    pub definition: String,
    /// SHA-256 of the arguments in canonical form.
    pub arguments: String,
    /// The policy in force.
    pub policy: Arc<str>,
}

impl Binding {
    /// The binding of a call.
    pub(crate) fn of(call: &Call, item: &Item, policy: &Arc<str>) -> Binding {
        Binding {
            caller: call.caller.clone(),
            holder: call.caller.holder(),
            server: item.origin.server.clone(),
            tool: item.own_name(),
            definition: digest::definition(item).as_str().to_owned(),
            arguments: digest::of(call.arguments().raw()),
            policy: policy.clone(),
        }
    }
}
