//! Why a function ends without a result.

use std::{error, fmt};
use toolgate_core::{Error, Kind, Questions};
use toolgate_wire::message::code;

/// Why a function ends without a result: it has to ask first, or it failed.
///
/// Every error converts into it by `?`, and is then a failure of the tool whose text the model reads. An error that
/// must not be read by a model is put into words with [`Stop::new`].
pub struct Stop(pub(crate) Why);

pub(crate) enum Why {
    /// Questions come first.
    Ask(Questions),
    /// The tool failed; the model reads why.
    Failed(String),
    /// The call failed.
    Error(Error),
}

impl Stop {
    /// The tool failed; the model reads this.
    pub fn new(text: impl Into<String>) -> Stop {
        Stop(Why::Failed(text.into()))
    }

    /// The call failed, in a kind that programs can tell.
    pub fn error(error: Error) -> Stop {
        Stop(Why::Error(error))
    }

    /// There is no such thing.
    pub fn not_found(text: impl Into<String>) -> Stop {
        Stop::error(Error::new(Kind::NotFound, text.into()))
    }

    /// An error of the protocol with this code. For prompts and resources; tools fail with [`Stop::new`], which models
    /// can read. Codes from -32768 to -32000 belong to the protocol and become an internal error, but for `-32602` and
    /// `-32002`.
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
