//! Return types of prompt handlers.

use super::HandlerExit;
use toolgate_core::{Content, PromptMessage, PromptResult};

/// Message of a prompt: a role (user or assistant) and a content block.
///
/// Specification: [prompts](https://modelcontextprotocol.io/specification/2026-07-28/server/prompts).
pub type Message = PromptMessage;

/// Types that a prompt handler can return: user text, messages, or a complete prompt result.
///
/// ```
/// use toolgate::{HandlerExit, core::{Content, PromptResult}, handlers::{IntoMessages, Message}, prompt};
///
/// /// A task for the model, with an example of a good answer.
/// struct WithExample {
///     task: String,
///     example: &'static str,
/// }
///
/// impl IntoMessages for WithExample {
///     fn into_messages(self) -> Result<PromptResult, HandlerExit> {
///         let example = format!("An example of a good answer: {}", self.example);
///         vec![Message::user(Content::text(&self.task)), Message::user(Content::text(&example))].into_messages()
///     }
/// }
///
/// /// Names a color.
/// #[prompt]
/// fn name_color(red: u8, green: u8, blue: u8) -> WithExample {
///     WithExample { task: format!("Name the color {red}, {green}, {blue}."), example: "dark sea green" }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the value of a prompt",
    label = "a prompt does not return this type",
    note = "return text, messages or a `PromptResult`"
)]
pub trait IntoMessages {
    /// Converts the handler's return value to a prompt result (`prompts/get`).
    ///
    /// # Errors
    /// The value cannot be serialized.
    fn into_messages(self) -> Result<PromptResult, HandlerExit>;
}

impl IntoMessages for PromptResult {
    fn into_messages(self) -> Result<PromptResult, HandlerExit> {
        Ok(self)
    }
}

impl IntoMessages for Vec<Message> {
    fn into_messages(self) -> Result<PromptResult, HandlerExit> {
        Ok(PromptResult {
            messages: self,
            ..PromptResult::default()
        })
    }
}

impl IntoMessages for Message {
    fn into_messages(self) -> Result<PromptResult, HandlerExit> {
        vec![self].into_messages()
    }
}

impl IntoMessages for String {
    fn into_messages(self) -> Result<PromptResult, HandlerExit> {
        self.as_str().into_messages()
    }
}

impl IntoMessages for &str {
    fn into_messages(self) -> Result<PromptResult, HandlerExit> {
        PromptMessage::user(Content::text(self)).into_messages()
    }
}
