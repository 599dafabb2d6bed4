//! Options for opening a server, and limits on its messages.

use super::{
    ClientHandler,
    era::{EraPreference, RevisionSetting, builder_setting},
};
use std::{sync::Arc, time::Duration};
use toolgate_core::{ClientCapabilities, Origin};
use toolgate_wire::{
    dialect::{self, Dialect},
    json::JsonLimits,
    method::initialize::Implementation,
    room::BudgetScope,
};

/// Options for opening a server, and limits on its messages.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RemoteOptions {
    /// Origin of its items: configured server id and trust.
    pub origin: Origin,
    /// Client name and version sent to the server.
    pub client: Implementation,
    /// Time-out of opening, handshake included. Default: 30 s.
    pub start: Duration,
    /// Time that the probe waits for an answer before the handshake is tried, within [`RemoteOptions::start`]. Default:
    /// 5 s.
    pub probe_wait: Duration,
    /// True to probe for the stateless revision first. Some old servers exit on any request before `initialize`.
    /// Default: true.
    pub probe: bool,
    /// Allowed revisions, in order of preference. Default: all.
    pub revisions: Vec<&'static Dialect>,
    /// Preference for servers that support legacy and stateless revisions. Default: the newest.
    pub era: EraPreference,
    /// Formatter that error messages use to name the setting for the revision. Default: that of
    /// [`ClientBuilder`](super::ClientBuilder).
    pub revision_setting: RevisionSetting,
    /// Client capabilities that the server may use; a caller's own capabilities are cut down to these. Default: all.
    pub abilities: ClientCapabilities,
    /// Application that answers a legacy server's input requests, if one application has the server to itself. Then
    /// [`RemoteOptions::abilities`] are declared with the handshake and with every request. Default: none.
    pub answerer: Option<Arc<dyn ClientHandler>>,
    /// True if the server may answer calls with tasks although the callers do not support tasks and just wait
    /// (2026-07-28). The server sends no progress notifications for tasks. Default: true.
    pub tasks: bool,
    /// Maximum number of parked calls of a legacy server that several callers share. With 0, the server's input
    /// requests are rejected. Default: 64.
    pub parked: usize,
    /// Maximum number of parked calls per caller. Default: 16.
    pub parked_per_caller: usize,
    /// Time after which a parked call is cancelled. Default: 10 minutes.
    pub parked_for: Duration,
    /// Idle time after which a legacy server is pinged. The connection counts as lost if the server answered pings
    /// before and misses two in a row. Default: no pings.
    pub ping: Option<Duration>,
    /// Time-out of one complete list. Default: 30 s.
    pub list: Duration,
    /// Maximum length of a line, in bytes; a longer one is dropped. Default: 16 MiB.
    pub line: usize,
    /// Limits on JSON messages.
    pub json: JsonLimits,
    /// Memory account that the server's messages are charged to. Default: none.
    pub account: BudgetScope,
    /// Maximum length of the instructions that are stored, in bytes. Twice as many are read, so that a secret across
    /// the cut is still recognized. Default: 32 KiB.
    pub instructions: usize,
    /// Maximum number of items of one kind. Default: 10,000.
    pub tools: usize,
    /// Maximum number of pages of a list. Default: 100.
    pub pages: usize,
    /// Maximum size of all items of one kind, in bytes. Default: 16 MiB.
    pub list_bytes: usize,
    /// Maximum time that a list is cached, whatever the server allows. Default: 24 h.
    pub keep: Duration,
}

impl RemoteOptions {
    /// Returns the defaults for a server of that origin.
    pub fn new(origin: Origin) -> RemoteOptions {
        RemoteOptions {
            origin,
            client: Implementation::new("toolgate", env!("CARGO_PKG_VERSION")),
            start: Duration::from_secs(30),
            probe_wait: Duration::from_secs(5),
            probe: true,
            revisions: dialect::ALL.to_vec(),
            era: EraPreference::default(),
            revision_setting: builder_setting,
            abilities: ClientCapabilities::ALL,
            answerer: None,
            tasks: true,
            parked: 64,
            parked_per_caller: 16,
            parked_for: Duration::from_secs(10 * 60),
            ping: None,
            list: Duration::from_secs(30),
            line: 16 << 20,
            json: JsonLimits::default(),
            account: BudgetScope::default(),
            instructions: 32 << 10,
            tools: 10_000,
            pages: 100,
            list_bytes: 16 << 20,
            keep: Duration::from_secs(24 * 60 * 60),
        }
    }

    /// Returns whether a legacy server's input requests go to the callers that share it.
    pub(super) fn passes_questions(&self) -> bool {
        self.answerer.is_none() && self.parked > 0 && self.parked_per_caller > 0
    }

    /// Returns the capabilities declared to a legacy server for the session. If callers share the server, each answers
    /// only within its own calls, so roots, which are requested outside of calls, are not declared.
    pub(super) fn declared(&self) -> ClientCapabilities {
        match self.passes_questions() {
            true => ClientCapabilities {
                roots: false,
                ..self.abilities.clone()
            },
            false => self.standing(),
        }
    }

    /// Returns the capabilities declared with requests outside of calls.
    pub(super) fn standing(&self) -> ClientCapabilities {
        match &self.answerer {
            Some(_) => self.abilities.clone(),
            None => ClientCapabilities {
                extensions: self.abilities.extensions.clone(),
                ..ClientCapabilities::default()
            },
        }
    }
}
