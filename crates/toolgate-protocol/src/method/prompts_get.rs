//! `prompts/get`: messages of a prompt.

use super::{content::Content, meta};
use crate::json::{Json, JsonKind};

/// Method name `prompts/get`, which returns the messages of a prompt.
pub const NAME: &str = "prompts/get";

/// Result of `prompts/get`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PromptResult {
    /// Description of the prompt.
    pub description: Option<String>,
    /// Messages of the prompt, in their order.
    pub messages: Vec<PromptMessage>,
    /// `_meta` of the result without the protocol's keys.
    pub meta: Option<Json>,
}

/// Message of a prompt, with the role `user` or `assistant`.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptMessage {
    /// True for the role `assistant`, false for `user`.
    pub assistant: bool,
    /// Content block of the message.
    pub content: Content,
}

impl PromptMessage {
    /// Creates a prompt message of the role `user`.
    pub fn user(content: Content) -> PromptMessage {
        PromptMessage {
            assistant: false,
            content,
        }
    }

    /// Creates a prompt message of the role `assistant`.
    pub fn assistant(content: Content) -> PromptMessage {
        PromptMessage {
            assistant: true,
            content,
        }
    }
}

impl PromptResult {
    /// Reads the result of `prompts/get`.
    ///
    /// # Errors
    /// Returns the reason if a member is missing or wrong.
    pub fn read(result: &Json) -> Result<PromptResult, &'static str> {
        let messages = result
            .get("messages")
            .filter(|m| m.kind() == JsonKind::Array)
            .ok_or("\"messages\" is missing or not an array")?;
        let messages: Option<Vec<PromptMessage>> = messages.items().map(message).collect();
        Ok(PromptResult {
            description: result.get("description").and_then(|d| d.string()),
            messages: messages
                .ok_or("a message lacks a \"role\" of \"user\" or \"assistant\", or a \"content\" block with a \"type\"")?,
            meta: result
                .get("_meta")
                .as_ref()
                .and_then(meta::without_reserved_keys),
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
