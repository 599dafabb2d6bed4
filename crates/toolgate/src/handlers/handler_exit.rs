//! Early exit of a handler, without a result.

use std::{error, fmt};
use toolgate_core::{Error, ErrorKind, InputRequests};
use toolgate_protocol::message::code;

/// Early exit of a handler, without a result: it needs input first, or it failed.
///
/// Every error converts to it with `?`, as a tool error whose text the model sees. To hide the text of an error from
/// the model, use [`HandlerExit::new`] with a text of your own.
pub struct HandlerExit(pub(crate) ExitReason);

pub(crate) enum ExitReason {
    /// Input is required first.
    InputRequired(InputRequests),
    /// The tool failed; the model sees the text.
    Failed(String),
    /// The call failed.
    Protocol(Error),
}

impl HandlerExit {
    /// Returns a tool error; the model sees the text.
    pub fn new(text: impl Into<String>) -> HandlerExit {
        HandlerExit(ExitReason::Failed(text.into()))
    }

    /// Returns an error of the call, with a kind that programs can distinguish.
    pub fn error(error: Error) -> HandlerExit {
        HandlerExit(ExitReason::Protocol(error))
    }

    /// Returns a "not found" error.
    pub fn not_found(text: impl Into<String>) -> HandlerExit {
        HandlerExit::error(Error::new(ErrorKind::NotFound, text.into()))
    }

    /// Returns a JSON-RPC error with this code, for prompts and resources; for tools use [`HandlerExit::new`], which the model
    /// sees. Codes from -32768 to -32000 are reserved by JSON-RPC and become an internal error, except -32602 and
    /// -32002.
    pub fn code(code: i64, text: impl Into<String>) -> HandlerExit {
        let code = match code {
            code::INVALID_PARAMS | code::RESOURCE_NOT_FOUND => code,
            -32768..=-32000 => code::INTERNAL_ERROR,
            own => own,
        };
        HandlerExit::error(Error::new(ErrorKind::JsonRpc(code), text.into()))
    }

    pub(crate) fn input_required(questions: InputRequests) -> HandlerExit {
        HandlerExit(ExitReason::InputRequired(questions))
    }
}

impl<E: error::Error + 'static> From<E> for HandlerExit {
    fn from(error: E) -> HandlerExit {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        HandlerExit(ExitReason::Failed(text))
    }
}

impl fmt::Debug for HandlerExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ExitReason::InputRequired(questions) => {
                write!(
                    f,
                    "HandlerExit(asks {} questions)",
                    questions.requests.len()
                )
            }
            ExitReason::Failed(text) => write!(f, "HandlerExit({text:?})"),
            ExitReason::Protocol(error) => write!(f, "HandlerExit({error:?})"),
        }
    }
}
