//! Early exit of a handler, without a result.

use std::{error, fmt};
use toolgate_core::{Error, Kind, Questions};
use toolgate_wire::message::code;

/// Early exit of a handler, without a result: it needs input first, or it failed.
///
/// Every error converts to it with `?`, as a tool error whose text the model sees. To hide the text of an error from
/// the model, use [`Stop::new`] with a text of your own.
pub struct Stop(pub(crate) Why);

pub(crate) enum Why {
    /// Input is required first.
    Ask(Questions),
    /// The tool failed; the model sees the text.
    Failed(String),
    /// The call failed.
    Error(Error),
}

impl Stop {
    /// Returns a tool error; the model sees the text.
    pub fn new(text: impl Into<String>) -> Stop {
        Stop(Why::Failed(text.into()))
    }

    /// Returns an error of the call, with a kind that programs can distinguish.
    pub fn error(error: Error) -> Stop {
        Stop(Why::Error(error))
    }

    /// Returns a "not found" error.
    pub fn not_found(text: impl Into<String>) -> Stop {
        Stop::error(Error::new(Kind::NotFound, text.into()))
    }

    /// Returns a JSON-RPC error with this code, for prompts and resources; for tools use [`Stop::new`], which the model
    /// sees. Codes from -32768 to -32000 are reserved by JSON-RPC and become an internal error, except -32602 and
    /// -32002.
    pub fn code(code: i64, text: impl Into<String>) -> Stop {
        let code = match code {
            code::INVALID_PARAMS | code::RESOURCE_NOT_FOUND => code,
            -32768..=-32000 => code::INTERNAL,
            own => own,
        };
        Stop::error(Error::new(Kind::Answered(code), text.into()))
    }

    pub(crate) fn ask(questions: Questions) -> Stop {
        Stop(Why::Ask(questions))
    }
}

impl<E: error::Error + 'static> From<E> for Stop {
    fn from(error: E) -> Stop {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        Stop(Why::Failed(text))
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Why::Ask(questions) => write!(f, "Stop(asks {} questions)", questions.asks.len()),
            Why::Failed(text) => write!(f, "Stop({text:?})"),
            Why::Error(error) => write!(f, "Stop({error:?})"),
        }
    }
}
