//! Calls of a model.

use super::ModelApi;
use crate::client::app::{call_builder::object, errors::invalid_arguments};
use toolgate_core::{Error, Json};
use toolgate_protocol::json::{JsonKind, JsonLimits};

/// Tool call of a model, with the tool's own name and arguments. It is not checked yet: a client checks it before it
/// is sent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ModelCall {
    /// Id that the model gave its call, for the response.
    pub id: String,
    /// Name of the tool, as the client lists it.
    pub tool: String,
    /// Arguments of the call, a JSON object.
    pub arguments: Json,
}

/// Call of a model as its API wrote it.
pub(super) struct RawModelCall {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: Result<Json, Error>,
}

impl RawModelCall {
    /// Reads an item of `tool_calls` (Chat Completions), a `function_call` item (Responses) or a `tool_use` block
    /// (Anthropic). `None` if it has no id or no name.
    pub(super) fn read(api: ModelApi, call: &Json) -> Option<RawModelCall> {
        let text = |json: &Json, key: &str| json.get(key)?.string();
        Some(match api {
            ModelApi::OpenAiChat => {
                let function = call.get("function")?;
                RawModelCall {
                    id: text(call, "id")?,
                    name: text(&function, "name")?,
                    arguments: read_arguments(function.get("arguments")),
                }
            }
            ModelApi::OpenAiResponses => RawModelCall {
                id: text(call, "call_id")?,
                name: text(call, "name")?,
                arguments: read_arguments(call.get("arguments")),
            },
            ModelApi::Anthropic => RawModelCall {
                id: text(call, "id")?,
                name: text(call, "name")?,
                arguments: read_arguments(call.get("input")),
            },
        })
    }
}

/// Reads arguments: an object, JSON text of one, or nothing.
pub(super) fn read_arguments(arguments: Option<Json>) -> Result<Json, Error> {
    let Some(arguments) = arguments else {
        return object(());
    };
    match arguments.kind() {
        JsonKind::String => read_text(&arguments.string().unwrap_or_default()),
        _ => object(&arguments),
    }
}

/// Reads the arguments that a model wrote as text. Models write nothing where a function has no parameters.
fn read_text(text: &str) -> Result<Json, Error> {
    if text.trim().is_empty() {
        return object(());
    }
    let json = Json::read(text.as_bytes().to_vec(), &JsonLimits::default())
        .map_err(|error| invalid_arguments("the text of a JSON object", error.to_string()))?;
    object(&json)
}
