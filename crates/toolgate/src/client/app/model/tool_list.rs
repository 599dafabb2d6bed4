//! List of a client's tools.

use super::{ModelApi, ModelTools};
use crate::client::ListedItem;
use std::ops::Deref;

/// Tools that a client or a group of clients lists. It dereferences to a slice of [`ListedItem`], and converts to the
/// function definitions of model APIs.
///
/// ```
/// # use serde_json::json;
/// # use toolgate::{Client, Server, tool};
/// /// Doubles a number.
/// #[tool(read_only)]
/// fn double(number: i64) -> String {
///     (number * 2).to_string()
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), toolgate::core::Error> {
/// let client = Client::in_process(Server::new("numbers", "1.0.0").tool(double)).await?;
/// let tools = client.tools().await?.to_openai();
/// let request = json!({"model": "gpt", "messages": [], "tools": tools.definitions()});
/// assert_eq!(request["tools"][0]["function"]["name"], "double");
///
/// // The model answers with calls. Each gets a response, also if it fails.
/// let call = json!({"id": "call_1", "type": "function",
///     "function": {"name": "double", "arguments": "{\"number\": 21}"}});
/// let message = tools.run(&client, &call).await?;
/// assert_eq!(message, json!({"role": "tool", "tool_call_id": "call_1", "content": "42"}));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct ToolList {
    items: Vec<ListedItem>,
    missing: Vec<String>,
}

impl ToolList {
    /// Returns the prefixes of the servers of a [group](crate::client::ClientGroup) that could not be listed, so that
    /// their tools are missing. Empty for a single client.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    pub(in crate::client::app) fn with_missing(mut self, missing: Vec<String>) -> ToolList {
        self.missing = missing;
        self
    }

    /// Converts the tools to function definitions of OpenAI's Chat Completions API, which many providers support.
    ///
    /// Names get the form `^[a-zA-Z0-9_-]{1,64}$`. Keywords that the API rejects at the top of a schema (`anyOf`,
    /// `oneOf`, `allOf`, `enum`, `not`) move into the description; the client still checks them.
    pub fn to_openai(&self) -> ModelTools {
        ModelTools::new(ModelApi::OpenAiChat, &self.items)
    }

    /// Converts the tools to function definitions of OpenAI's Responses API; otherwise as [`ToolList::to_openai`].
    pub fn to_openai_responses(&self) -> ModelTools {
        ModelTools::new(ModelApi::OpenAiResponses, &self.items)
    }

    /// Converts the tools to tool definitions of Anthropic's Messages API.
    ///
    /// Names get the form `^[a-zA-Z0-9_-]{1,128}$`, and keys of arguments the form `^[a-zA-Z0-9_.-]{1,64}$`. Schemas
    /// change as in [`ToolList::to_openai`].
    pub fn to_anthropic(&self) -> ModelTools {
        ModelTools::new(ModelApi::Anthropic, &self.items)
    }
}

impl Deref for ToolList {
    type Target = [ListedItem];

    fn deref(&self) -> &[ListedItem] {
        &self.items
    }
}

impl From<Vec<ListedItem>> for ToolList {
    fn from(items: Vec<ListedItem>) -> ToolList {
        ToolList {
            items,
            missing: Vec::new(),
        }
    }
}

impl FromIterator<ListedItem> for ToolList {
    fn from_iter<I: IntoIterator<Item = ListedItem>>(items: I) -> ToolList {
        ToolList::from(items.into_iter().collect::<Vec<_>>())
    }
}

impl IntoIterator for ToolList {
    type Item = ListedItem;
    type IntoIter = std::vec::IntoIter<ListedItem>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

impl<'a> IntoIterator for &'a ToolList {
    type Item = &'a ListedItem;
    type IntoIter = std::slice::Iter<'a, ListedItem>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}
