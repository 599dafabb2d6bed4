//! MCP tools of a Toolgate client, or of a group of clients, as a toolbox of [swiftide](swiftide_core).
//!
//! Every call goes through the client: rules, confirmation, validation of arguments and results, limits, sanitizing and
//! the audit log.
//!
//! ```no_run
//! # async fn f() -> Result<(), Box<dyn std::error::Error>> {
//! use toolgate::Client;
//! use toolgate_swiftide::ClientToolBox;
//!
//! let weather = Client::builder()
//!     .confirm(|call| async move { Err(format!("nobody confirmed {}", call.tool.name())) })
//!     .spawn(["weather-server"])
//!     .await?;
//! let toolbox = ClientToolBox::new(weather);
//! // Give the toolbox to an agent of swiftide.
//! # drop(toolbox);
//! # Ok(())
//! # }
//! ```

use anyhow::Context;
use async_trait::async_trait;
use std::{borrow::Cow, sync::Arc};
use swiftide_core::{
    AgentContext, Tool, ToolBox,
    chat_completion::{ToolCall, ToolOutput, ToolSpec, errors::ToolError},
};
use toolgate::{
    Client,
    client::{ClientGroup, ModelTools, ToolCaller, ToolList},
    core::{BoxFuture, Error},
};

/// Client or group that lists its tools.
pub trait ToolSource: ToolCaller + 'static {
    /// Lists the tools.
    fn list_tools(&self) -> BoxFuture<'_, Result<ToolList, Error>>;
}

impl ToolSource for Client {
    fn list_tools(&self) -> BoxFuture<'_, Result<ToolList, Error>> {
        Box::pin(self.tools())
    }
}

impl ToolSource for ClientGroup {
    fn list_tools(&self) -> BoxFuture<'_, Result<ToolList, Error>> {
        Box::pin(self.tools())
    }
}

/// Toolbox with the tools of a client or a group. It lists them each time an agent asks, so it follows their changes.
pub struct ClientToolBox<C>(Arc<C>);

impl<C: ToolSource> ClientToolBox<C> {
    /// Creates a toolbox of a client or a group.
    pub fn new(client: C) -> ClientToolBox<C> {
        ClientToolBox(Arc::new(client))
    }
}

impl<C> Clone for ClientToolBox<C> {
    fn clone(&self) -> ClientToolBox<C> {
        ClientToolBox(self.0.clone())
    }
}

#[async_trait]
impl<C: ToolSource> ToolBox for ClientToolBox<C> {
    async fn available_tools(&self) -> anyhow::Result<Vec<Box<dyn Tool>>> {
        let tools = Arc::new(self.0.list_tools().await?.to_openai());
        let names: Vec<String> = tools.functions().map(|f| f.name.to_owned()).collect();
        let made = names.into_iter().map(|name| {
            let tool = ClientTool {
                client: self.0.clone(),
                spec: spec(&tools, &name)?,
                tools: tools.clone(),
            };
            Ok(tool.boxed())
        });
        made.collect()
    }

    fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed("MCP")
    }
}

fn spec(tools: &ModelTools, name: &str) -> anyhow::Result<ToolSpec> {
    let mut functions = tools.functions();
    let function = functions.find(|function| function.name == name);
    let function = function.context("the function is in the list")?;
    let schema = schemars::Schema::try_from(function.parameters.to_value())?;
    Ok(ToolSpec::builder()
        .name(name)
        .description(function.description)
        .parameters_schema(schema)
        .build()?)
}

/// One tool of a client.
struct ClientTool<C> {
    client: Arc<C>,
    tools: Arc<ModelTools>,
    spec: ToolSpec,
}

impl<C> Clone for ClientTool<C> {
    fn clone(&self) -> ClientTool<C> {
        ClientTool {
            client: self.client.clone(),
            tools: self.tools.clone(),
            spec: self.spec.clone(),
        }
    }
}

#[async_trait]
impl<C: ToolSource> Tool for ClientTool<C> {
    async fn invoke(&self, _: &dyn AgentContext, call: &ToolCall) -> Result<ToolOutput, ToolError> {
        let arguments = call.args().unwrap_or_default();
        let read = self.tools.read_parts(call.id(), &self.spec.name, arguments);
        let result = match read {
            Ok(call) => self.client.call_tool(&call.tool, call.arguments).await,
            Err(error) => Err(error),
        };
        // What the model can read and mend is no error of the agent.
        Ok(match result {
            Ok(result) if result.is_error() => ToolOutput::fail(result.model_text()),
            Ok(result) => ToolOutput::text(result.model_text()),
            Err(error) => ToolOutput::fail(error.public_message()),
        })
    }

    fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.spec.name)
    }

    fn tool_spec(&self) -> ToolSpec {
        self.spec.clone()
    }
}
