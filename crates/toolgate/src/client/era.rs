//! Servers that offer both eras: sessions (up to 2025-11-25) and requests without a session (2026-07-28).
//!
//! A question in mid-call is a request of the server in a session, and a result since 2026-07-28. Many SDKs offer both
//! eras, and let a tool ask in one of them only.

use super::options::RemoteOptions;
use std::fmt;
use toolgate_core::{Abilities, Error};
use toolgate_wire::{
    dialect::{self, Dialect},
    json::Json,
    message::{RpcError, code},
    method::{skills, tasks},
};

/// Which revision is chosen of a server that offers several.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum EraPreference {
    /// The newest that both sides know.
    #[default]
    Newest,
    /// The newest revision with a session, where the server keeps one; else the newest. Tools that ask in mid-call by
    /// `elicit()` and the like of most SDKs do so in a session only.
    Session,
}

/// The source of an error: in a session, the server put a question into a result, which only the newest revision has.
/// Open the server with [`EraPreference::Newest`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AsksByResult {
    /// Whether the call is known to have stopped at the question. A server must bear that it is sent again, because
    /// each answer to such a question sends the whole call again.
    pub at_question: bool,
}

impl fmt::Display for AsksByResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server asks by a result, which a session cannot carry")
    }
}

impl std::error::Error for AsksByResult {}

/// How the setting for the revision of a server is written; by the id of the server and the revision.
pub type RevisionSetting = fn(&str, &str) -> String;

/// The setting of [`ClientBuilder`](super::ClientBuilder).
pub(super) fn builder_setting(_: &str, revision: &str) -> String {
    format!("use ClientBuilder::revision({revision:?})")
}

/// Whether a server with this answer to `initialize` is used in the session.
pub(super) fn suits_session(keeps_session: bool, capabilities: &Json) -> bool {
    let extensions = capabilities.get("extensions");
    let has = |id| extensions.as_ref().is_some_and(|all| all.get(id).is_some());
    keeps_session && ![skills::EXTENSION, tasks::EXTENSION].into_iter().any(has)
}

/// What a failed call says about the connection that it was made over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum EraRefusal {
    /// In a session: the question was a result.
    AsksByResult { at_question: bool },
    /// Without a session: the question would be a request.
    AsksByRequest,
}

/// The error text of the Python SDK for any result that the revision of the session does not have.
const INVALID_RESULT: &str = "Handler returned an invalid result";

impl EraRefusal {
    /// Reads the error that a server answered. SDKs have no code for it, so their texts are recognized; these choose
    /// a connection, and decide nothing about what is allowed.
    pub(super) fn of_error(dialect: &Dialect, error: &RpcError) -> Option<EraRefusal> {
        if dialect.stateless {
            return EraRefusal::of_text(&error.message);
        }
        let text = error.message.to_ascii_lowercase();
        let names_result = [
            "inputrequiredresult",
            "input-required result",
            "input_required",
        ];
        if names_result.into_iter().any(|name| text.contains(name)) {
            return Some(EraRefusal::AsksByResult { at_question: true });
        }
        let unsure = error.code == code::INTERNAL && error.message == INVALID_RESULT;
        unsure.then_some(EraRefusal::AsksByResult { at_question: false })
    }

    /// Reads the text of a failed tool, where there is no session.
    pub(super) fn of_text(text: &str) -> Option<EraRefusal> {
        let text = text.to_ascii_lowercase();
        let says = [
            "server-initiated request",
            "server-to-client request",
            "back-channel",
        ];
        let found = says.into_iter().any(|says| text.contains(says));
        found.then_some(EraRefusal::AsksByRequest)
    }

    /// What to do about it.
    pub(super) fn advice(self, options: &RemoteOptions) -> String {
        let server = &options.origin.server;
        let (cause, stateless) = match self {
            EraRefusal::AsksByResult { .. } => ("in a session the server cannot ask this", true),
            EraRefusal::AsksByRequest => ("the server can ask this only in a session", false),
        };
        let newest = dialect::ALL.iter().find(|d| d.stateless == stateless);
        let revision = newest.map_or("", |d| d.revision);
        let setting = (options.revision_setting)(server, revision);
        format!("{cause}; {setting}")
    }

    /// The error, with what to do about it.
    pub(super) fn explain(self, mut error: Error, options: &RemoteOptions) -> Error {
        error.set_public(format!("{}; {}", error.public(), self.advice(options)));
        match self {
            EraRefusal::AsksByResult { at_question } => error.because(AsksByResult { at_question }),
            EraRefusal::AsksByRequest => error,
        }
    }
}

/// Whether the server may ask anything of the caller.
pub(super) fn asks_anything(granted: &Abilities) -> bool {
    granted.elicitation || granted.elicitation_url || granted.sampling || granted.roots
}
