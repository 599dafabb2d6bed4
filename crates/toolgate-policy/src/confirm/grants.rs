//! "This tool, this caller, until the gateway stops."

use super::Binding;
use std::{sync::Arc, time::SystemTime};
use toolgate_core::Caller;

/// A remembered yes. It answers an ask and never lifts a deny.
#[derive(Clone, Debug)]
pub struct GrantView {
    /// Names it, `g-…`.
    pub id: Arc<str>,
    /// For whom.
    pub caller: Caller,
    /// The configured id of the server.
    pub server: Arc<str>,
    /// The tool, under the server's own name.
    pub tool: String,
    /// SHA-256 of the definition it was given for; another definition needs another yes.
    pub definition: String,
    /// When it was given.
    pub since: SystemTime,
    /// How many calls used it.
    pub used: u64,
    /// When it was used last.
    pub last: Option<SystemTime>,
}

impl GrantView {
    pub(super) fn new(id: Arc<str>, binding: &Binding) -> GrantView {
        GrantView {
            id,
            caller: binding.caller.clone(),
            server: binding.server.clone(),
            tool: binding.tool.clone(),
            definition: binding.definition.clone(),
            since: SystemTime::now(),
            used: 0,
            last: None,
        }
    }

    pub(super) fn covers(&self, binding: &Binding) -> bool {
        self.caller == binding.caller
            && self.server == binding.server
            && self.tool == binding.tool
            && self.definition == binding.definition
    }

    pub(super) fn use_once(&mut self) {
        self.used += 1;
        self.last = Some(SystemTime::now());
    }
}
