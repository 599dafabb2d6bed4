//! Errors of handlers.

use super::{HandlerExit, handler_exit::ExitReason};
use std::{error, fmt};
use toolgate_core::{BoxError, Call, Error, ErrorKind, Op, Outcome, ToolResult, escape_bidi};
use toolgate_policy::SecretRedactor;
use toolgate_protocol::message::code;

/// Error of a tool, resource or prompt handler: a text that the model sees, or a failure of the call with a kind.
///
/// The model sees only the text of the error, never its sources. The sources go to the operator, as an event of
/// `tracing`. [`ToolError::show_sources`] adds them to the text.
///
/// ```
/// use toolgate::{ToolError, tool};
///
/// /// Reads the note of a day.
/// #[tool(read_only)]
/// fn note(day: u8) -> Result<String, ToolError> {
///     std::fs::read_to_string(format!("/srv/notes/{day}"))
///         .map_err(|error| ToolError::new("there is no note of that day").with_source(error))
/// }
/// ```
pub struct ToolError(ToolErrorKind);

enum ToolErrorKind {
    /// The tool failed; the model sees the text.
    Failed {
        text: String,
        source: Option<BoxError>,
    },
    /// The call failed.
    Protocol(Error),
}

impl ToolError {
    /// Creates a tool error (`isError`) with this text, which the model sees.
    pub fn new(text: impl Into<String>) -> ToolError {
        ToolError(ToolErrorKind::Failed {
            text: text.into(),
            source: None,
        })
    }

    /// Creates a tool error (`isError`) with the texts of an error and of all its sources, joined with `: `. Without
    /// this, the model sees only the text of the error itself.
    ///
    /// ```
    /// use toolgate::ToolError;
    /// let missing = std::io::Error::other("no such file");
    /// let error = ToolError::new("the note cannot be read").with_source(missing);
    /// let shown = ToolError::show_sources(error);
    /// assert_eq!(shown.to_string(), "the note cannot be read: no such file");
    /// ```
    pub fn show_sources(error: impl Into<BoxError>) -> ToolError {
        let error = error.into();
        let text = source_texts(&*error).fold(error.to_string(), |text, source| {
            format!("{text}: {source}")
        });
        ToolError::new(text)
    }

    /// Creates a failure of the call from an [`Error`], with a kind that programs can distinguish.
    pub fn error(error: Error) -> ToolError {
        ToolError(ToolErrorKind::Protocol(error))
    }

    /// Creates a "not found" failure of the call.
    pub fn not_found(text: impl Into<String>) -> ToolError {
        ToolError::error(Error::new(ErrorKind::NotFound, text.into()))
    }

    /// Returns a JSON-RPC error with this code, for prompts and resources; for tools use [`ToolError::new`], which the
    /// model sees. Codes from -32768 to -32000 are reserved by JSON-RPC and become an internal error, except -32602 and
    /// -32002.
    pub fn code(code: i64, text: impl Into<String>) -> ToolError {
        let code = match code {
            code::INVALID_PARAMS | code::RESOURCE_NOT_FOUND => code,
            -32768..=-32000 => code::INTERNAL_ERROR,
            own => own,
        };
        ToolError::error(Error::new(ErrorKind::JsonRpc(code), text.into()))
    }

    /// Returns the same handler error with a source error, which only the operator sees.
    pub fn with_source(self, source: impl Into<BoxError>) -> ToolError {
        ToolError(match self.0 {
            ToolErrorKind::Failed { text, .. } => ToolErrorKind::Failed {
                text,
                source: Some(source.into()),
            },
            ToolErrorKind::Protocol(error) => ToolErrorKind::Protocol(error.with_source(source)),
        })
    }

    /// Converts an error of any type. A [`ToolError`] stays what it is.
    pub(super) fn from_error(error: BoxError) -> ToolError {
        match error.downcast::<ToolError>() {
            Ok(own) => *own,
            Err(error) => ToolError(ToolErrorKind::Failed {
                text: error.to_string(),
                source: error.source().is_some().then(|| SourcesOf(error).into()),
            }),
        }
    }

    /// Converts the error to the outcome of a call, and logs its sources.
    pub(super) fn into_outcome(self, call: &Call) -> Result<Outcome, Error> {
        if error::Error::source(&self).is_some() {
            log_sources(&self, call);
        }
        match self.0 {
            ToolErrorKind::Failed { text, .. } if call.op == Op::Tool => {
                Ok(Outcome::Done(ToolResult::error(&text).into()))
            }
            ToolErrorKind::Failed { text, source } => {
                let error = Error::new(ErrorKind::Upstream, text);
                Err(match source {
                    Some(source) => error.with_source(source),
                    None => error,
                })
            }
            ToolErrorKind::Protocol(error) => Err(error),
        }
    }
}

impl From<String> for ToolError {
    fn from(text: String) -> ToolError {
        ToolError::new(text)
    }
}

impl From<&str> for ToolError {
    fn from(text: &str) -> ToolError {
        ToolError::new(text)
    }
}

impl From<BoxError> for ToolError {
    fn from(error: BoxError) -> ToolError {
        ToolError::from_error(error)
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ToolErrorKind::Failed { text, .. } => f.write_str(text),
            ToolErrorKind::Protocol(error) => error.fmt(f),
        }
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ToolErrorKind::Failed { text, .. } => write!(f, "ToolError({text:?})"),
            ToolErrorKind::Protocol(error) => write!(f, "ToolError({error:?})"),
        }
    }
}

impl error::Error for ToolError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match &self.0 {
            ToolErrorKind::Failed { source, .. } => source.as_ref().map(|s| s.as_ref() as _),
            ToolErrorKind::Protocol(error) => error.source(),
        }
    }
}

/// The source of an error, which owns the error.
struct SourcesOf(BoxError);

impl SourcesOf {
    fn first(&self) -> &(dyn error::Error + 'static) {
        self.0.source().unwrap_or(&*self.0)
    }
}

impl fmt::Display for SourcesOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.first(), f)
    }
}

impl fmt::Debug for SourcesOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.first(), f)
    }
}

impl error::Error for SourcesOf {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.first().source()
    }
}

/// Returns the texts of the sources of an error, the direct source first.
fn source_texts(error: &dyn error::Error) -> impl Iterator<Item = String> {
    std::iter::successors(error.source(), |source| source.source()).map(ToString::to_string)
}

/// Logs the sources of an error for the operator, with secrets redacted. The arguments of the call are not logged.
fn log_sources(error: &ToolError, call: &Call) {
    if !tracing::enabled!(target: "toolgate::handlers", tracing::Level::WARN) {
        return;
    }
    let sources = source_texts(error).collect::<Vec<_>>().join(": ");
    let sources = SecretRedactor::redact_for_display(&sources);
    tracing::warn!(
        target: "toolgate::handlers",
        call = &*call.id,
        method = call.op.method(),
        sources = &*escape_bidi(&sources),
        "a handler failed",
    );
}

/// Error types that a tool, resource or prompt handler may return: [`HandlerExit`] and all that convert to a boxed `dyn
/// Error + Send + Sync`.
///
/// These are errors of the standard library and of other crates, boxed errors, [`ToolError`], `String` and `&str`. You
/// never implement it; the parameter `Conversion` is inferred.
///
/// ```
/// # use toolgate::tool;
/// /// Adds two numbers, given as text.
/// #[tool(read_only)]
/// fn add(a: String, b: String) -> Result<String, std::num::ParseIntError> {
///     Ok((a.parse::<i64>()? + b.parse::<i64>()?).to_string())
/// }
/// ```
///
/// ```compile_fail,E0277
/// # use toolgate::tool;
/// enum NotAnError {}
///
/// #[tool]
/// fn fail() -> Result<String, NotAnError> {
///     Ok(String::new())
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the error type of a handler",
    label = "this error type has no text for the model",
    note = "implement `std::error::Error` for `{Self}`, which must be `Send + Sync`, or return a `ToolError`, a `HandlerExit`, a `String` or a boxed error"
)]
pub trait IntoHandlerExit<Conversion> {
    /// Converts the handler's error to the early exit of the handler.
    fn into_handler_exit(self) -> HandlerExit;
}

impl<E: Into<HandlerExit>> IntoHandlerExit<conversion::FromError> for E {
    fn into_handler_exit(self) -> HandlerExit {
        self.into()
    }
}

/// Never applies. With one implementation only, the compiler would report the bound of that implementation instead of
/// the message above.
impl<E: conversion::Never> IntoHandlerExit<conversion::NoConversion> for E {
    fn into_handler_exit(self) -> HandlerExit {
        HandlerExit::new(String::new())
    }
}

/// Parameters of [`IntoHandlerExit`] that tell its implementations apart.
pub(super) mod conversion {
    /// Conversion of an error type to `HandlerExit`: marker type for `IntoHandlerExit`.
    #[derive(Debug)]
    pub enum FromError {}

    /// Conversion that does not exist: marker type for `IntoHandlerExit`.
    #[derive(Debug)]
    pub enum NoConversion {}

    /// Trait without implementations, so that the second implementation of `IntoHandlerExit` never applies.
    pub trait Never {}
}

impl<E: Into<BoxError>> From<E> for HandlerExit {
    fn from(error: E) -> HandlerExit {
        HandlerExit(ExitReason::Failed(ToolError::from_error(error.into())))
    }
}
