//! Tools, calls and results in the formats of model APIs.
//!
//! - `tool_list`: the list of tools, and its conversion.
//! - `tools`: function definitions, and the way back from a model's call to a tool call.
//! - `schema`: input schemas that the APIs accept.
//! - `call`: calls of a model, as each API writes them.
//! - `result`: results, as each API reads them.
//! - `caller`: clients that can run the calls.

mod call;
mod caller;
mod result;
mod schema;
mod tool_list;
mod tools;

pub use call::ModelCall;
pub use caller::ToolCaller;
pub use tool_list::ToolList;
pub use tools::{ModelFunction, ModelTools};

use crate::aggregate::NameLimits;

/// API of a model provider, with its formats and limits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ModelApi {
    /// OpenAI Chat Completions, and the many APIs that are compatible with it.
    OpenAiChat,
    /// OpenAI Responses.
    OpenAiResponses,
    /// Anthropic Messages.
    Anthropic,
}

impl ModelApi {
    /// Returns the limits on names of functions: `^[a-zA-Z0-9_-]{1,64}$` of OpenAI, and up to 128 characters of
    /// Anthropic. Both reject the whole request if one name breaks them.
    fn name_limits(self) -> NameLimits {
        NameLimits {
            max_chars: match self {
                ModelApi::OpenAiChat | ModelApi::OpenAiResponses => 64,
                ModelApi::Anthropic => 128,
            },
            dots: false,
        }
    }

    /// Returns the limits on the keys of a schema's properties, if the API has any.
    fn key_limits(self) -> Option<NameLimits> {
        match self {
            ModelApi::OpenAiChat | ModelApi::OpenAiResponses => None,
            ModelApi::Anthropic => Some(NameLimits {
                max_chars: 64,
                dots: true,
            }),
        }
    }
}
