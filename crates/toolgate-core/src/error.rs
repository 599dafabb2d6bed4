//! Errors of calls and lists: a kind for code, a public message for people, and a cause for the log.

use crate::OperatorDetail;
use std::{borrow::Cow, fmt, sync::Arc, time::Duration};
use toolgate_protocol::json::{Json, ObjectWriter};

/// Boxed cause of an [`Error`].
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Error of a call or a list request: a kind for code, a public message, and a cause for the log.
///
/// ```
/// use toolgate_core::{Error, ErrorKind, NotSent, OperatorDetail, RefusalReason, SchemaViolation};
///
/// let wrong = SchemaViolation::new("/days", "an integer from 1 to 7", "the number 9");
/// let mut error = Error::new(ErrorKind::InvalidArguments(vec![wrong]), "invalid arguments: /days");
/// assert!(matches!(error.kind(), ErrorKind::InvalidArguments(found) if found.len() == 1));
/// error.set_public_message("days is 9; send 1 to 7".to_owned());
/// assert_eq!(error.public_message(), "days is 9; send 1 to 7");
///
/// // The caller does not see the detail. A call that never left may be sent again.
/// let lost = Error::new(ErrorKind::Upstream, "the server files is not running")
///     .with_source(NotSent)
///     .with_detail(OperatorDetail::new("exit code 1"));
/// assert!(lost.was_not_sent());
/// assert_eq!(ErrorKind::Refused(RefusalReason::Rule).class(), "refused_rule");
/// ```
pub struct Error {
    kind: ErrorKind,
    public_message: Cow<'static, str>,
    source: Option<BoxError>,
    detail: Option<OperatorDetail>,
    starting_servers: Vec<Arc<str>>,
}

/// Error kind, by which code decides how to react.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The upstream server or a handler returned a JSON-RPC error with this code.
    JsonRpc(i64),
    /// The upstream server's response exceeds a limit or cannot be parsed.
    BadResponse,
    /// A bug in this program, or a panic in a handler.
    Bug,
    /// Too many concurrent calls or requests; with the time to retry after, if known.
    Busy(Option<Duration>),
    /// The caller disconnected, or the call was cancelled.
    Cancelled,
    /// The arguments do not match the input schema.
    InvalidArguments(Vec<SchemaViolation>),
    /// The call timed out before it had a result.
    TimedOut,
    /// The item does not exist, or this caller may not see it; the error does not say which.
    NotFound,
    /// A policy or an approver refused the call; with the reason.
    Refused(RefusalReason),
    /// The caller's access token lacks these scopes, which the call needs.
    InsufficientScope(Vec<String>),
    /// The client lacks a capability that the call needs.
    MissingCapability(RequiredCapability),
    /// The upstream server failed, for example because it stopped.
    Upstream,
}

impl ErrorKind {
    /// Returns the class of the error in audit records and metrics, for example `refused_rule`. Classes never change.
    pub fn class(&self) -> &'static str {
        match self {
            ErrorKind::BadResponse => "bad_answer",
            ErrorKind::Bug => "bug",
            ErrorKind::Busy(_) => "busy",
            ErrorKind::Cancelled => "cancelled",
            ErrorKind::InvalidArguments(_) => "invalid",
            ErrorKind::TimedOut => "late",
            ErrorKind::NotFound => "not_found",
            ErrorKind::Refused(RefusalReason::Rule) => "refused_rule",
            ErrorKind::Refused(RefusalReason::Approver) => "refused_person",
            ErrorKind::Refused(RefusalReason::Expired) => "refused_expired",
            ErrorKind::Refused(RefusalReason::AuditUnavailable) => "refused_record",
            ErrorKind::Refused(RefusalReason::BlockedResult) => "refused_result",
            ErrorKind::Refused(RefusalReason::Withheld) => "refused_withheld",
            ErrorKind::InsufficientScope(_) => "scope",
            ErrorKind::MissingCapability(_) => "unsupported",
            ErrorKind::JsonRpc(_) => "answered",
            ErrorKind::Upstream => "upstream",
        }
    }
}

/// Cause of an error of a call that was never sent to its server, for example because the server is not running.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NotSent;

impl fmt::Display for NotSent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the call was not sent")
    }
}

impl std::error::Error for NotSent {}

/// Reason why a call was refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum RefusalReason {
    /// A rule of the operator denies the call.
    Rule,
    /// An approver denied the call, with a reason that the model may read.
    Approver,
    /// The approval request expired without a decision.
    Expired,
    /// An audit record could not be written, so nothing may happen.
    AuditUnavailable,
    /// A sanitizer blocked the result of the call.
    BlockedResult,
    /// The item is withheld from all callers, and this caller may know that.
    Withheld,
}

/// Client capability that a call needs.
///
/// Specification: [`MissingRequiredClientCapabilityError`](https://modelcontextprotocol.io/specification/2026-07-28/schema#missingrequiredclientcapabilityerror).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum RequiredCapability {
    /// Capability for form elicitation (`elicitation/create`).
    Elicitation,
    /// Capability for URL elicitation (`elicitation/create`).
    ElicitationUrl,
    /// Capability for sampling (`sampling/createMessage`).
    Sampling,
    /// Capability for sampling with tools (`sampling/createMessage`).
    SamplingTools,
    /// Capability for roots (`roots/list`).
    Roots,
    /// Capability for tasks: the extension `io.modelcontextprotocol/tasks`, or tasks of 2025-11-25.
    Tasks,
}

/// Problem with the arguments of a call: they violate the input schema of a tool, the declared arguments of a prompt, or
/// the type of the handler.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SchemaViolation {
    /// Location of the invalid argument as a JSON pointer; empty for the arguments as a whole.
    pub path: String,
    /// Value that the schema expects, as a phrase.
    pub expected: String,
    /// Kind and size of the received value; never a secret.
    pub received: String,
}

impl SchemaViolation {
    /// Creates a violation at a JSON pointer, with the expected value and the received one as phrases.
    pub fn new(
        path: impl Into<String>,
        expected: impl Into<String>,
        received: impl Into<String>,
    ) -> SchemaViolation {
        SchemaViolation {
            path: path.into(),
            expected: expected.into(),
            received: received.into(),
        }
    }
}

impl SchemaViolation {
    /// Returns the violation as the JSON object `{path, expected, got}`.
    pub fn json(&self) -> Json {
        let mut o = ObjectWriter::new();
        o.str("path", &self.path);
        o.str("expected", &self.expected);
        o.str("got", &self.received);
        o.finish()
    }
}

impl Error {
    /// Creates an error with one public sentence: lower case, no full stop, fits after "failed to".
    pub fn new(kind: ErrorKind, public: impl Into<Cow<'static, str>>) -> Error {
        Error {
            kind,
            public_message: public.into(),
            source: None,
            detail: None,
            starting_servers: Vec::new(),
        }
    }

    /// Returns the same error with its cause, which only the log shows.
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Error {
        self.source = Some(source.into());
        self
    }

    /// Returns true if the call was never sent to its server: [`NotSent`] is among the causes.
    pub fn was_not_sent(&self) -> bool {
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            if error.is::<NotSent>() {
                return true;
            }
            cause = error.source();
        }
        false
    }

    /// Returns the same error with details that only the operator may read.
    pub fn with_detail(mut self, detail: OperatorDetail) -> Error {
        self.detail = Some(detail);
        self
    }

    /// Returns the details of the error that only the operator may read.
    pub fn detail(&self) -> Option<&OperatorDetail> {
        self.detail.as_ref()
    }

    /// Returns the same error with the servers that cause it because they are still starting, by configured id.
    #[doc(hidden)]
    pub fn caused_by_starting(mut self, servers: impl IntoIterator<Item = Arc<str>>) -> Error {
        self.starting_servers.extend(servers);
        self
    }

    /// Returns the servers that cause the error because they are still starting.
    #[doc(hidden)]
    pub fn starting_servers(&self) -> &[Arc<str>] {
        &self.starting_servers
    }

    /// Returns the kind of the error, by which code decides how to react.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// Returns the public message of the error, for people and models.
    pub fn public_message(&self) -> &str {
        &self.public_message
    }

    /// Replaces the public message of the error.
    pub fn set_public_message(&mut self, text: String) {
        self.public_message = Cow::Owned(text);
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.public_message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.kind)
            .field("public", &self.public_message)
            .finish_non_exhaustive()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|s| s.as_ref() as _)
    }
}
