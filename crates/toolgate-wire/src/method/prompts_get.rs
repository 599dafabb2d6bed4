//! `prompts/get`: the messages of a prompt.

use super::{content::Content, meta};
use crate::json::{Json, Kind};

/// The method.
pub const NAME: &str = "prompts/get";

/// The messages of a prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PromptResult {
    /// What the prompt is for.
    pub description: Option<String>,
    /// The messages in their order.
    pub messages: Vec<PromptMessage>,
    /// The `_meta` of the result without the keys of the protocol.
    pub meta: Option<Json>,
}

/// One message of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptMessage {
    /// Whether the model says it; else the user.
    pub assistant: bool,
    /// What is said.
    pub content: Content,
}

impl PromptMessage {
    /// A message of the user.
    pub fn user(content: Content) -> PromptMessage {
        PromptMessage {
            assistant: false,
            content,
        }
    }

    /// A message of the model.
    pub fn assistant(content: Content) -> PromptMessage {
        PromptMessage {
            assistant: true,
            content,
        }
    }
}

impl PromptResult {
    /// Reads a complete result.
    ///
    /// # Errors
    /// Says what is missing or wrong.
    pub fn read(result: &Json) -> Result<PromptResult, &'static str> {
        let messages = result
            .get("messages")
            .filter(|m| m.kind() == Kind::Array)
            .ok_or("the result has no \"messages\" array")?;
        let messages: Option<Vec<PromptMessage>> = messages.items().map(message).collect();
        Ok(PromptResult {
            description: result.get("description").and_then(|d| d.string()),
            messages: messages
                .ok_or("a message has no \"role\", or no \"content\" with a \"type\"")?,
            meta: result.get("_meta").as_ref().and_then(meta::foreign),
        })
    }
}

fn message(json: Json) -> Option<PromptMessage> {
    let assistant = match json.get("role")?.str_cow()?.as_ref() {
        "assistant" => true,
        "user" => false,
        _ => return None,
    };
    Some(PromptMessage {
        assistant,
        content: Content::read(json.get("content")?)?,
    })
}
