//! Early exit of a handler, without a result.

use super::ToolError;
use std::fmt;
use toolgate_core::{Error, InputRequests};

/// Early exit of a tool, resource or prompt handler: it needs input first, or it failed.
///
/// Every error converts to it with `?`, as a tool error whose text the model sees; a [`ToolError`] keeps its kind. The
/// model never sees the sources of an error. To hide its text too, use [`ToolError::new`] with a text of your own.
pub struct HandlerExit(pub(crate) ExitReason);

pub(crate) enum ExitReason {
    /// Input is required first.
    InputRequired(InputRequests),
    /// The handler failed.
    Failed(ToolError),
}

impl HandlerExit {
    /// Creates a tool error (`isError`) with this text, which the model sees.
    pub fn new(text: impl Into<String>) -> HandlerExit {
        HandlerExit(ExitReason::Failed(ToolError::new(text)))
    }

    /// Creates a failure of the call from an [`Error`], with a kind that programs can distinguish.
    pub fn error(error: Error) -> HandlerExit {
        HandlerExit(ExitReason::Failed(ToolError::error(error)))
    }

    /// Creates a "not found" failure of the call.
    pub fn not_found(text: impl Into<String>) -> HandlerExit {
        HandlerExit(ExitReason::Failed(ToolError::not_found(text)))
    }

    /// Creates a JSON-RPC error with this code; see [`ToolError::code`].
    pub fn code(code: i64, text: impl Into<String>) -> HandlerExit {
        HandlerExit(ExitReason::Failed(ToolError::code(code, text)))
    }

    pub(crate) fn input_required(questions: InputRequests) -> HandlerExit {
        HandlerExit(ExitReason::InputRequired(questions))
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
            ExitReason::Failed(error) => write!(f, "HandlerExit({error:?})"),
        }
    }
}
