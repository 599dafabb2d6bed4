//! Servers that support both eras: legacy revisions with sessions (up to 2025-11-25), and the stateless revision
//! (2026-07-28).
//!
//! Input during a call is a request of the server in a session, and a result since 2026-07-28. Many SDKs support both
//! eras, but let a tool request input in only one of them.

use super::options::RemoteOptions;
use std::fmt;
use toolgate_core::{ClientCapabilities, Error};
use toolgate_protocol::{
    dialect::{self, Dialect},
    json::Json,
    message::{RpcError, code},
    method::{skills, tasks},
};

/// Preference between protocol eras for a server with both: stateless (2026-07-28) or with sessions (up to 2025-11-25).
///
/// Specification: [versioning](https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum EraPreference {
    /// The newest protocol revision that both sides support.
    #[default]
    Newest,
    /// The newest protocol revision with a session, if the server keeps one; else the newest. With most SDKs, tools
    /// that request input during a call (`elicit()` and similar) work only in a session.
    Session,
}

/// Error source: in a session, a server sent an `input_required` result, which only the newest revision supports. Open
/// the server with [`EraPreference::Newest`].
///
/// ```
/// use std::error::Error as _;
/// use toolgate::{Error, client::InputByResultError};
///
/// /// Reports whether the call can be sent again after the client was opened with the newest revision.
/// fn may_retry(error: &Error) -> bool {
///     let source = error.source().and_then(|source| source.downcast_ref());
///     source.is_some_and(|error: &InputByResultError| error.at_question)
/// }
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct InputByResultError {
    /// True if the failed call is known to have stopped at the server's input request. A retry is then safe, because
    /// each answer to such a request resends the whole call anyway.
    pub at_question: bool,
}

impl fmt::Display for InputByResultError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server requests input by an input_required result, which a session of an older protocol revision does not support")
    }
}

impl std::error::Error for InputByResultError {}

/// Function that formats the setting of a server's revision for error messages, from the server id and revision.
pub type RevisionSetting = fn(&str, &str) -> String;

/// Formats the setting of [`ClientBuilder`](super::ClientBuilder).
pub(super) fn builder_setting(_: &str, revision: &str) -> String {
    format!("use ClientBuilder::revision({revision:?})")
}

/// Allowed revisions by the beginning of a connection, each in order of preference.
pub(super) struct AllowedRevisions {
    /// Revisions without a handshake.
    pub(super) stateless: Vec<&'static Dialect>,
    /// Revisions with a handshake.
    pub(super) handshake: Vec<&'static Dialect>,
}

impl AllowedRevisions {
    /// Returns the revisions that the options allow.
    pub(super) fn of(options: &RemoteOptions) -> AllowedRevisions {
        let all = options.revisions.iter().copied();
        let (stateless, handshake) = all.partition(|dialect| dialect.stateless);
        AllowedRevisions {
            stateless,
            handshake,
        }
    }
}

/// Returns whether a session suits a server with these capabilities.
pub(super) fn suits_session(keeps_session: bool, capabilities: &Json) -> bool {
    let extensions = capabilities.get("extensions");
    let has = |id| extensions.as_ref().is_some_and(|all| all.get(id).is_some());
    keeps_session && ![skills::EXTENSION, tasks::EXTENSION].into_iter().any(has)
}

/// Reason why a call failed that depends on the era of the connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum EraMismatch {
    /// In a session: the server requested input by a result.
    InputByResult { at_question: bool },
    /// Without a session: the server wanted to send a request.
    InputByRequest,
}

/// Error text of the Python SDK for any result that the session's revision does not define.
const INVALID_RESULT: &str = "Handler returned an invalid result";

impl EraMismatch {
    /// Recognizes the error of a server. SDKs have no code for it, so their texts are matched. The result only selects
    /// a connection; it has no effect on what is allowed.
    pub(super) fn of_error(dialect: &Dialect, error: &RpcError) -> Option<EraMismatch> {
        if !dialect.server_requests {
            return EraMismatch::of_text(&error.message);
        }
        let text = error.message.to_ascii_lowercase();
        let names_result = [
            "inputrequiredresult",
            "input-required result",
            "input_required",
        ];
        if names_result.into_iter().any(|name| text.contains(name)) {
            return Some(EraMismatch::InputByResult { at_question: true });
        }
        let unsure = error.code == code::INTERNAL_ERROR && error.message == INVALID_RESULT;
        unsure.then_some(EraMismatch::InputByResult { at_question: false })
    }

    /// Recognizes the text of a failed tool on a stateless connection.
    pub(super) fn of_text(text: &str) -> Option<EraMismatch> {
        let text = text.to_ascii_lowercase();
        let says = [
            "server-initiated request",
            "server-to-client request",
            "back-channel",
        ];
        let found = says.into_iter().any(|says| text.contains(says));
        found.then_some(EraMismatch::InputByRequest)
    }

    /// Returns the advice for the caller.
    pub(super) fn advice(self, options: &RemoteOptions) -> String {
        let server = &options.origin.server;
        let (cause, newest) = match self {
            EraMismatch::InputByResult { .. } => (
                "the server can request this input only in a revision without sessions",
                dialect::MODERN,
            ),
            EraMismatch::InputByRequest => (
                "the server can request this input only in a revision with sessions",
                dialect::LEGACY,
            ),
        };
        let setting = (options.revision_setting)(server, newest.revision);
        format!("{cause}; {setting}")
    }

    /// Adds the advice to the error.
    pub(super) fn add_advice(self, mut error: Error, options: &RemoteOptions) -> Error {
        error.set_public_message(format!(
            "{}; {}",
            error.public_message(),
            self.advice(options)
        ));
        match self {
            EraMismatch::InputByResult { at_question } => {
                error.with_source(InputByResultError { at_question })
            }
            EraMismatch::InputByRequest => error,
        }
    }
}

/// Returns whether the server may request any input from the caller.
pub(super) fn may_request_input(granted: &ClientCapabilities) -> bool {
    granted.elicitation || granted.elicitation_url || granted.sampling || granted.roots
}
