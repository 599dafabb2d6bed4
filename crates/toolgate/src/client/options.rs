//! Options for opening a server, and limits on its messages.

use super::{
    ClientHandler, Discovery,
    era::{EraPreference, RevisionSetting, builder_setting},
};
use std::{sync::Arc, time::Duration};
use toolgate_core::{ClientCapabilities, OperationObserver, Origin};
use toolgate_protocol::{
    dialect::{self, Dialect},
    json::JsonLimits,
    memory_budget::BudgetScope,
    method::initialize::Implementation,
};

/// Options for connecting to an MCP server as a client: protocol revisions, time-outs, and limits on its messages.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RemoteOptions {
    /// Origin of the server's items: configured server id, and whether its annotations are trusted.
    pub origin: Origin,
    /// Client name and version (`clientInfo`) that are sent to the server.
    pub client: Implementation,
    /// Time-out of connecting to the server, handshake included. Default: 30 s.
    pub open_timeout: Duration,
    /// Time-out of the first request (the probe `server/discover`), after which the handshake is tried. It is within
    /// [`RemoteOptions::open_timeout`]. Default: 5 s.
    pub probe_timeout: Duration,
    /// True to probe for the stateless revision (`server/discover`) before the handshake. Some old servers exit on any
    /// request before `initialize`. Default: true.
    pub probe: bool,
    /// Allowed MCP protocol revisions, in order of preference. Default: all.
    pub revisions: Vec<&'static Dialect>,
    /// Preferred era (stateless or with sessions) for a server that supports both. Default: the newest revision.
    pub era: EraPreference,
    /// Function with which error messages name the setting that restricts the protocol revision. Default: that of
    /// [`ClientBuilder`](super::ClientBuilder).
    pub revision_setting: RevisionSetting,
    /// Client capabilities (elicitation, sampling, roots) that the server may use; a caller's own are cut down to
    /// these. Default: all.
    pub capabilities: ClientCapabilities,
    /// Handler of a legacy server's input requests, if one application has the server to itself. Then
    /// [`RemoteOptions::capabilities`] are declared with the handshake and with every request. Default: none.
    pub client_handler: Option<Arc<dyn ClientHandler>>,
    /// Discovery of an earlier connection to this server, which saves the requests that it answers. Default: none.
    pub discovery: Option<Arc<Discovery>>,
    /// True if the server may answer calls with tasks for callers that do not support tasks (2026-07-28). Such callers
    /// just wait. The server sends no progress notifications for tasks. Default: true.
    pub tasks: bool,
    /// Maximum number of parked calls (suspended by an input request) of a legacy server that several callers share.
    /// With 0, the server's input requests are rejected. Default: 64.
    pub max_parked_calls: usize,
    /// Maximum number of parked calls (suspended by an input request) per caller. Default: 16.
    pub max_parked_calls_per_caller: usize,
    /// Time after which a parked call (suspended by an input request) is cancelled. Default: 10 minutes.
    pub parked_call_timeout: Duration,
    /// Idle time after which a legacy server is sent a `ping`. The connection counts as lost if the server answered
    /// pings before and misses two in a row. Default: no pings.
    pub ping_interval: Option<Duration>,
    /// Time-out of listing all pages of one kind of item, such as tools. Default: 30 s.
    pub list_timeout: Duration,
    /// Maximum length of a message line from the server over stdio, in bytes; a longer one is dropped. Default: 16 MiB.
    pub max_line_bytes: usize,
    /// Limits on the size and nesting of JSON messages from the server.
    pub json_limits: JsonLimits,
    /// Scope of the memory budget that the server's messages are charged to. Default: none.
    pub budget_scope: BudgetScope,
    /// Observer of the requests to the server, for metrics and traces. Default: none.
    pub operation_observer: Option<Arc<dyn OperationObserver>>,
    /// Address of the server for the observer: host and port. Default: none.
    pub observed_address: Option<(Arc<str>, u16)>,
    /// Maximum length of the server's `instructions` that are stored, in bytes. Twice as many are read, so that a
    /// secret across the cut is still recognized. Default: 32 KiB.
    pub max_instructions_bytes: usize,
    /// Maximum number of items of one kind, such as tools, that the server may list. Default: 10,000.
    pub max_items: usize,
    /// Maximum number of pages of one list of the server. Default: 100.
    pub max_pages: usize,
    /// Maximum total size of the server's items of one kind, such as tools, in bytes. Default: 16 MiB.
    pub max_list_bytes: usize,
    /// Maximum time that a list of the server is cached, whatever TTL the server allows. Default: 24 h.
    pub max_list_ttl: Duration,
}

impl RemoteOptions {
    /// Returns the default options for a server whose items have that origin.
    pub fn new(origin: Origin) -> RemoteOptions {
        RemoteOptions {
            origin,
            client: Implementation::new("toolgate", env!("CARGO_PKG_VERSION")),
            open_timeout: Duration::from_secs(30),
            probe_timeout: Duration::from_secs(5),
            probe: true,
            revisions: dialect::ALL.to_vec(),
            era: EraPreference::default(),
            revision_setting: builder_setting,
            capabilities: ClientCapabilities::ALL,
            client_handler: None,
            discovery: None,
            tasks: true,
            max_parked_calls: 64,
            max_parked_calls_per_caller: 16,
            parked_call_timeout: Duration::from_secs(10 * 60),
            ping_interval: None,
            list_timeout: Duration::from_secs(30),
            max_line_bytes: 16 << 20,
            json_limits: JsonLimits::default(),
            budget_scope: BudgetScope::default(),
            operation_observer: None,
            observed_address: None,
            max_instructions_bytes: 32 << 10,
            max_items: 10_000,
            max_pages: 100,
            max_list_bytes: 16 << 20,
            max_list_ttl: Duration::from_secs(24 * 60 * 60),
        }
    }

    /// Returns whether a legacy server's input requests go to the callers that share it.
    pub(super) fn passes_input_requests(&self) -> bool {
        let handler = self.client_handler.as_ref();
        handler.is_none_or(|handler| handler.defers_input())
            && self.max_parked_calls > 0
            && self.max_parked_calls_per_caller > 0
    }

    /// Returns the capabilities declared to a legacy server for the session. If callers share the server, each answers
    /// only within its own calls, so roots, which are requested outside of calls, are not declared.
    pub(super) fn session_capabilities(&self) -> ClientCapabilities {
        match self.passes_input_requests() && self.client_handler.is_none() {
            true => {
                let mut capabilities = self.capabilities.clone();
                capabilities.roots = false;
                capabilities
            }
            false => self.standing_capabilities(),
        }
    }

    /// Returns the capabilities declared with requests outside of calls.
    pub(super) fn standing_capabilities(&self) -> ClientCapabilities {
        match &self.client_handler {
            Some(_) => self.capabilities.clone(),
            None => {
                let mut capabilities = ClientCapabilities::default();
                capabilities.extensions = self.capabilities.extensions.clone();
                capabilities
            }
        }
    }
}
