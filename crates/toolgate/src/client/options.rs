//! How a server is opened, and what it may send.

use super::{
    Answerer,
    era::{EraPreference, RevisionSetting, builder_setting},
};
use std::{sync::Arc, time::Duration};
use toolgate_core::{Abilities, Origin};
use toolgate_wire::{
    dialect::{self, Dialect},
    json::Limits,
    method::initialize::Implementation,
    room::Account,
};

/// How a server is opened, and what it may send.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RemoteOptions {
    /// Where its tools come from, in the operator's words.
    pub origin: Origin,
    /// Who we say we are.
    pub client: Implementation,
    /// Longest time until the handshake is over; 30 s.
    pub start: Duration,
    /// Longest time that the probe waits for an answer before the handshake is tried; 5 s, within [`RemoteOptions::start`].
    pub probe_wait: Duration,
    /// Whether to ask for the modern era first. Some old servers exit on any request before `initialize`.
    pub probe: bool,
    /// The revisions that may be spoken, the best first; all.
    pub revisions: Vec<&'static Dialect>,
    /// Which revision is chosen where the server offers both eras; the newest.
    pub era: EraPreference,
    /// How errors write the setting for the revision; that of [`ClientBuilder`](super::ClientBuilder).
    pub revision_setting: RevisionSetting,
    /// What a caller's own abilities are cut down to before the server hears of them; all pass.
    pub abilities: Abilities,
    /// Who answers what a server of the legacy era asks in the middle of a call, where one application uses it alone.
    /// Then [`RemoteOptions::abilities`] are declared with the handshake and with every request. Nobody.
    pub answerer: Option<Arc<dyn Answerer>>,
    /// Whether calls may become tasks at the server, where their callers know none and just wait (2026-07-28). They may.
    /// Progress is not told of tasks.
    pub tasks: bool,
    /// Calls that may wait for an answer to a question of a legacy server, which several callers share; 64. With none, such
    /// a server is told that nobody can be asked.
    pub parked: usize,
    /// The same, of one caller; 16.
    pub parked_per_caller: usize,
    /// How long such a call waits before it is cancelled; 10 minutes.
    pub parked_for: Duration,
    /// After which time without a request a server with a handshake is asked whether it is there; never. One that answered
    /// such pings and leaves two in a row without an answer is gone.
    pub ping: Option<Duration>,
    /// Longest time for one whole list; 30 s.
    pub list: Duration,
    /// Longest line that is read, in bytes; 16 MiB. A longer one is dropped.
    pub line: usize,
    /// What JSON may be.
    pub json: Limits,
    /// What counts the bytes of its messages; nobody.
    pub account: Account,
    /// Longest instructions that are kept, in bytes; 32 KiB. Twice as many are read, so that a secret that their end would
    /// cut is found whole.
    pub instructions: usize,
    /// Most items of one kind that are accepted; 10,000.
    pub tools: usize,
    /// Most pages that a list may have; 100.
    pub pages: usize,
    /// Most bytes that all things of one kind may have together; 16 MiB.
    pub list_bytes: usize,
    /// How long a list is kept at most, whatever the server says; 24 h.
    pub keep: Duration,
}

impl RemoteOptions {
    /// The defaults, for a server of that origin.
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
            abilities: Abilities::ALL,
            answerer: None,
            tasks: true,
            parked: 64,
            parked_per_caller: 16,
            parked_for: Duration::from_secs(10 * 60),
            ping: None,
            list: Duration::from_secs(30),
            line: 16 << 20,
            json: Limits::default(),
            account: Account::default(),
            instructions: 32 << 10,
            tools: 10_000,
            pages: 100,
            list_bytes: 16 << 20,
            keep: Duration::from_secs(24 * 60 * 60),
        }
    }

    /// Whether questions of a legacy server go to the callers that share it.
    pub(super) fn passes_questions(&self) -> bool {
        self.answerer.is_none() && self.parked > 0 && self.parked_per_caller > 0
    }

    /// What is declared to a legacy server for its whole session. Where callers share it, each answers within its calls, so
    /// roots, which are asked for outside of them, are not declared.
    pub(super) fn declared(&self) -> Abilities {
        match self.passes_questions() {
            true => Abilities {
                roots: false,
                ..self.abilities.clone()
            },
            false => self.standing(),
        }
    }

    /// What is declared with requests that are no calls.
    pub(super) fn standing(&self) -> Abilities {
        match &self.answerer {
            Some(_) => self.abilities.clone(),
            None => Abilities {
                extensions: self.abilities.extensions.clone(),
                ..Abilities::default()
            },
        }
    }
}
