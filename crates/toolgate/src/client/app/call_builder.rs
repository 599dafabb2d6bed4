//! Tool calls with options.

use super::{
    CallProgress, CallResult, Client, ClientGroup, errors::invalid_arguments, rounds::CallOptions,
};
use serde::Serialize;
use std::{
    future::{Future, IntoFuture},
    pin::Pin,
    sync::Arc,
    time::Duration,
};
use toolgate_core::{Error, Json, Op, PendingInputGuard, Progress};
use toolgate_protocol::json::{JsonKind, JsonLimits, ObjectWriter};

/// Limits on arguments of the application, which are trusted: only the nesting is bounded.
const UNLIMITED: JsonLimits = JsonLimits {
    bytes: usize::MAX,
    depth: JsonLimits::MAX_DEPTH,
    keys: usize::MAX,
    elements: usize::MAX,
};

/// Builder of one tool call (`tools/call`) with options, which `.await` sends. Dropping the future then cancels the
/// call, also at the server.
///
/// ```no_run
/// use serde_json::json;
/// use std::time::Duration;
/// use toolgate::{Client, client::ToolCallBuilder};
///
/// # async fn f(client: Client) -> Result<(), toolgate::Error> {
/// let call: ToolCallBuilder<'_> = client
///     .call_with("index", json!({"folder": "docs"}))
///     .progress(|progress| println!("{:?}", progress.message))
///     .timeout(Duration::from_secs(60));
/// let result = call.await?;
/// println!("{}", result.model_text());
/// # Ok(())
/// # }
/// ```
#[must_use = "the call is only sent by .await"]
pub struct ToolCallBuilder<'a> {
    target: CallTarget<'a>,
    tool: String,
    arguments: Result<Json, Error>,
    options: CallOptions,
}

/// Client or group that makes a call.
enum CallTarget<'a> {
    Client(&'a Client),
    Group(&'a ClientGroup),
}

impl<'a> ToolCallBuilder<'a> {
    pub(super) fn new(
        client: &'a Client,
        tool: &str,
        arguments: impl Serialize,
    ) -> ToolCallBuilder<'a> {
        ToolCallBuilder::to(CallTarget::Client(client), tool, arguments)
    }

    pub(super) fn of_group(
        group: &'a ClientGroup,
        tool: &str,
        arguments: impl Serialize,
    ) -> ToolCallBuilder<'a> {
        ToolCallBuilder::to(CallTarget::Group(group), tool, arguments)
    }

    fn to(target: CallTarget<'a>, tool: &str, arguments: impl Serialize) -> ToolCallBuilder<'a> {
        ToolCallBuilder {
            target,
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

    /// Starts the call, and returns once it is done, needs input that the application answers by hand
    /// ([`ClientBuilder::manual_input`](super::ClientBuilder::manual_input)), or runs as a task of the server.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn start(self) -> Result<CallProgress, Error> {
        let (client, tool) = match self.target {
            CallTarget::Client(client) => (client.clone(), self.tool),
            CallTarget::Group(group) => group.route(&self.tool).await?,
        };
        let call = client.new_call(Op::Tool, &tool, self.arguments?, self.options);
        client.advance(call, PendingInputGuard::default()).await
    }

    async fn send(self) -> Result<CallResult, Error> {
        let arguments = self.arguments?;
        let (tool, options) = (&self.tool, self.options);
        let output = match self.target {
            CallTarget::Client(client) => client.run(Op::Tool, tool, arguments, options).await?,
            CallTarget::Group(group) => {
                Box::pin(group.run(Op::Tool, tool, arguments, options)).await?
            }
        };
        Ok(CallResult(output.into_tool().unwrap_or_default()))
    }
}

impl<'a> IntoFuture for ToolCallBuilder<'a> {
    type Output = Result<CallResult, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

/// Converts a value of the application to JSON. The raw text of a [`Json`] stays.
pub(super) fn any_json(value: impl Serialize) -> Result<Json, Error> {
    let text = serde_json::to_vec(&value)
        .map_err(|error| invalid_arguments("a value that JSON can represent", error.to_string()))?;
    Json::read(text, &UNLIMITED).map_err(|error| invalid_arguments("valid JSON", error.to_string()))
}

/// Converts arguments to JSON: an object, or `()` for none. The raw text of a [`Json`] stays.
pub(super) fn object(arguments: impl Serialize) -> Result<Json, Error> {
    let json = any_json(arguments)?;
    match json.kind() {
        JsonKind::Object => Ok(json),
        JsonKind::Null => Ok(ObjectWriter::new().finish()),
        other => Err(invalid_arguments("an object", kind_name(other))),
    }
}

fn kind_name(kind: JsonKind) -> &'static str {
    match kind {
        JsonKind::Object => "an object",
        JsonKind::Array => "an array",
        JsonKind::String => "a string",
        JsonKind::Number => "a number",
        JsonKind::Bool => "true or false",
        JsonKind::Null => "null",
    }
}
