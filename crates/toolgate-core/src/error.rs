//! Why a call failed: one answer for code, one for people, and the cause for the log.

use crate::OperatorDetail;
use std::{borrow::Cow, fmt, sync::Arc, time::Duration};
use toolgate_wire::json::{Json, ObjectWriter};

/// The cause of an error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a call or a list failed.
pub struct Error {
    kind: Kind,
    public: Cow<'static, str>,
    source: Option<BoxError>,
    detail: Option<OperatorDetail>,
    starting: Vec<Arc<str>>,
}

/// What code should make of an error.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// The server behind, or a handler, answered with an error of the protocol; its code.
    Answered(i64),
    /// The server behind answered, and its answer exceeds a limit or cannot be read.
    BadAnswer,
    /// A fault of this program, or a panic in a handler.
    Bug,
    /// Too much at once; when to come again, where that is known.
    Busy(Option<Duration>),
    /// The caller went away, or somebody stopped the call.
    Cancelled,
    /// The arguments do not fit.
    Invalid(Vec<Problem>),
    /// The time was over.
    Late,
    /// There is no such thing, or none that this caller may see: the two are not told apart.
    NotFound,
    /// Somebody or something said no.
    Refused(Refusal),
    /// The token of the caller is not good for it; the scopes that the call needs.
    Scope(Vec<String>),
    /// The caller lacks an ability that the call needs.
    Unsupported(Need),
    /// The server behind failed.
    Upstream,
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

/// Who said no.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// A rule of the operator.
    Rule,
    /// A person, with a reason that the model may read.
    Person,
    /// The time to decide was over.
    Expired,
    /// A record could not be written, so nothing may happen.
    Record,
    /// What came back was not let through.
    Result,
    /// The item is withheld from all callers, and this one may know that.
    Withheld,
}

/// What a caller would have to be able to do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Need {
    /// To put a form to its user.
    Elicitation,
    /// To open a page for its user.
    ElicitationUrl,
    /// To ask its model.
    Sampling,
    /// To let its model use tools when it is asked.
    SamplingTools,
    /// To name its roots.
    Roots,
    /// To come back for the result: the extension `io.modelcontextprotocol/tasks`, or tasks of 2025-11-25.
    Tasks,
}

/// One thing that is wrong with the arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// Where, as a JSON pointer; empty for the arguments as a whole.
    pub path: String,
    /// What was expected.
    pub expected: String,
    /// What came, in kind and size; never a secret.
    pub got: String,
}

impl Problem {
    /// `{path, expected, got}`.
    pub fn json(&self) -> Json {
        let mut o = ObjectWriter::new();
        o.str("path", &self.path);
        o.str("expected", &self.expected);
        o.str("got", &self.got);
        o.finish()
    }
}

impl Error {
    /// An error with one public sentence: lower case, no full stop, fits after "failed to".
    pub fn new(kind: Kind, public: impl Into<Cow<'static, str>>) -> Error {
        Error {
            kind,
            public: public.into(),
            source: None,
            detail: None,
            starting: Vec::new(),
        }
    }

    /// The same error with its cause, for the log only.
    pub fn because(mut self, source: impl Into<BoxError>) -> Error {
        self.source = Some(source.into());
        self
    }

    /// Returns whether the call was never sent to its server: whether [`NotSent`] is among the causes.
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

    /// The same error with details that only the operator may read.
    pub fn with_detail(mut self, detail: OperatorDetail) -> Error {
        self.detail = Some(detail);
        self
    }

    /// What only the operator may read of it.
    pub fn detail(&self) -> Option<&OperatorDetail> {
        self.detail.as_ref()
    }

    /// The same error; it has this cause that these servers, by their configured ids, are still starting.
    pub fn while_starting(mut self, servers: impl IntoIterator<Item = Arc<str>>) -> Error {
        self.starting.extend(servers);
        self
    }

    /// The servers that are still starting, where that is the cause.
    pub fn starting(&self) -> &[Arc<str>] {
        &self.starting
    }

    /// What code should make of it.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// What a person or a model may read.
    pub fn public(&self) -> &str {
        &self.public
    }

    /// Puts another text in the place of the public one.
    pub fn set_public(&mut self, text: String) {
        self.public = Cow::Owned(text);
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.public)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.kind)
            .field("public", &self.public)
            .finish_non_exhaustive()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|s| s.as_ref() as _)
    }
}
