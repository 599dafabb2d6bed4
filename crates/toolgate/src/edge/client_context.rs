//! Context that all requests of a client with a handshake share.

use super::{call::RequestContext, tasks::SessionTasks};
use std::sync::{Arc, OnceLock};
use toolgate_core::{Caller, ClientCapabilities, DecisionLog};
use toolgate_protocol::{dialect::Dialect, method::trace::TraceContext};

/// The part of a [`RequestContext`] that all requests of a client with a handshake share.
pub(super) struct ClientContext {
    pub(super) caller: Caller,
    pub(super) transport: &'static str,
    pub(super) dialect: &'static Dialect,
    pub(super) capabilities: ClientCapabilities,
    pub(super) client: Option<Arc<str>>,
    pub(super) connection: Option<u64>,
    /// The tasks of the client, if its revision has tasks.
    pub(super) session_tasks: Option<Arc<SessionTasks>>,
}

impl ClientContext {
    /// Returns the context of a request.
    pub(super) fn for_request(&self, caller: Caller, decision_log: DecisionLog) -> RequestContext {
        RequestContext {
            caller,
            transport: self.transport,
            dialect: self.dialect,
            capabilities: self.capabilities.clone(),
            client: self.client.clone(),
            log_level: None,
            progress_token: None,
            trace: TraceContext::default(),
            connection: self.connection,
            received_lists: None,
            session_tasks: self.session_tasks.clone(),
            decision_log,
            address: None,
            transport_parts: None,
            transport_trace: None,
            span: OnceLock::new(),
        }
    }
}
