//! Clients that can call a tool by name.

use crate::client::{CallResult, Client};
use toolgate_core::{BoxFuture, Error, Json};

/// Type that can call tools by name, for code that serves one client or a group of them alike: adapters for agent
/// frameworks, and [`ModelTools::run`](super::ModelTools::run).
///
/// ```
/// use toolgate::{Client, client::{CallResult, ToolCaller}, core::{Error, Json}};
///
/// async fn ping(server: &impl ToolCaller) -> Result<CallResult, Error> {
///     server.call_tool("ping", Json::from_value(&serde_json::json!({}))).await
/// }
/// # let _ = |client: Client| async move { ping(&client).await };
/// ```
pub trait ToolCaller: Send + Sync {
    /// Calls a tool with arguments that are a JSON object, with all checks of the client.
    fn call_tool<'a>(
        &'a self,
        tool: &'a str,
        arguments: Json,
    ) -> BoxFuture<'a, Result<CallResult, Error>>;
}

impl ToolCaller for Client {
    fn call_tool<'a>(
        &'a self,
        tool: &'a str,
        arguments: Json,
    ) -> BoxFuture<'a, Result<CallResult, Error>> {
        Box::pin(self.call(tool, arguments))
    }
}
