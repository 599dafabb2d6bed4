//! Tool calls with options.

use super::{CallResult, Client, errors::invalid_arguments, rounds::CallOptions};
use serde::Serialize;
use std::{
    future::{Future, IntoFuture},
    pin::Pin,
    sync::Arc,
    time::Duration,
};
use toolgate_core::{Error, Json, Op, Progress};
use toolgate_protocol::json::{JsonKind, ObjectWriter};

/// Builder of one tool call (`tools/call`) with options, which `.await` sends. Dropping the future then cancels the
/// call, also at the server.
#[must_use = "the call is only sent by .await"]
pub struct ToolCallBuilder<'a> {
    client: &'a Client,
    tool: String,
    arguments: Result<Json, Error>,
    options: CallOptions,
}

impl<'a> ToolCallBuilder<'a> {
    pub(super) fn new(
        client: &'a Client,
        tool: &str,
        arguments: impl Serialize,
    ) -> ToolCallBuilder<'a> {
        ToolCallBuilder {
            client,
            tool: tool.to_owned(),
            arguments: object(arguments),
            options: CallOptions::default(),
        }
    }

    /// Sets the function that receives this call's progress notifications. It must not block.
    pub fn progress(
        mut self,
        on_progress: impl Fn(Progress) + Send + Sync + 'static,
    ) -> ToolCallBuilder<'a> {
        self.options.progress = Some(Arc::new(on_progress));
        self
    }

    /// Sets the idle time-out of this call, in place of [`ClientBuilder::timeout`](super::ClientBuilder::timeout). The
    /// client's maximum time still applies.
    pub fn timeout(mut self, timeout: Duration) -> ToolCallBuilder<'a> {
        self.options.timeout = Some(timeout);
        self
    }

    /// Sets the arguments as raw JSON, sent byte for byte: numbers of any size, and the order of members.
    pub fn exact_arguments(mut self, arguments: Json) -> ToolCallBuilder<'a> {
        self.arguments = match arguments.kind() {
            JsonKind::Object => Ok(arguments),
            other => Err(invalid_arguments("an object", json_kind(other))),
        };
        self
    }

    async fn send(self) -> Result<CallResult, Error> {
        let arguments = self.arguments?;
        let used = self
            .client
            .run(Op::Tool, &self.tool, arguments, self.options);
        let result = used.await?.into_tool();
        Ok(CallResult(result.unwrap_or_default()))
    }
}

impl<'a> IntoFuture for ToolCallBuilder<'a> {
    type Output = Result<CallResult, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

/// Converts arguments to JSON: an object, or `()` for none.
pub(super) fn object(arguments: impl Serialize) -> Result<Json, Error> {
    let value = serde_json::to_value(arguments)
        .map_err(|error| invalid_arguments("a value that JSON can represent", error.to_string()))?;
    match value {
        serde_json::Value::Object(_) => Ok(Json::from_value(&value)),
        serde_json::Value::Null => Ok(ObjectWriter::new().finish()),
        other => Err(invalid_arguments("an object", kind(&other))),
    }
}

fn json_kind(kind: JsonKind) -> &'static str {
    match kind {
        JsonKind::Object => "an object",
        JsonKind::Array => "an array",
        JsonKind::String => "a string",
        JsonKind::Number => "a number",
        JsonKind::Bool => "true or false",
        JsonKind::Null => "null",
    }
}

fn kind(value: &serde_json::Value) -> &'static str {
    match value {
        serde_json::Value::Array(_) => "an array",
        serde_json::Value::String(_) => "a string",
        serde_json::Value::Bool(_) => "true or false",
        _ => "a number",
    }
}
