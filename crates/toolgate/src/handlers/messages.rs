//! What a prompt may say.

use super::Stop;
use toolgate_core::{Content, PromptMessage, PromptResult};

/// One message of a prompt.
pub type Message = PromptMessage;

/// What the function behind a prompt may return: text of the user, messages, or a whole result.
pub trait IntoMessages {
    /// The result.
    ///
    /// # Errors
    /// It cannot be written.
    fn into_messages(self) -> Result<PromptResult, Stop>;
}

impl IntoMessages for PromptResult {
    fn into_messages(self) -> Result<PromptResult, Stop> {
        Ok(self)
    }
}

impl IntoMessages for Vec<Message> {
    fn into_messages(self) -> Result<PromptResult, Stop> {
        Ok(PromptResult {
            messages: self,
            ..PromptResult::default()
        })
    }
}

impl IntoMessages for Message {
    fn into_messages(self) -> Result<PromptResult, Stop> {
        vec![self].into_messages()
    }
}

impl IntoMessages for String {
    fn into_messages(self) -> Result<PromptResult, Stop> {
        self.as_str().into_messages()
    }
}

impl IntoMessages for &str {
    fn into_messages(self) -> Result<PromptResult, Stop> {
        PromptMessage::user(Content::text(self)).into_messages()
    }
}
