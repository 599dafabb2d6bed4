//! MCP tools of a Toolgate client, or of a group of clients, as tools of [rig](rig_core).
//!
//! Every call goes through the client: rules, confirmation, validation of arguments and results, limits, sanitizing and
//! the audit log.
//!
//! ```no_run
//! # async fn f() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use toolgate::Client;
//!
//! let weather = Client::builder()
//!     .confirm(|call| async move { Err(format!("nobody confirmed {}", call.tool.name())) })
//!     .spawn(["weather-server"])
//!     .await?;
//! let tools = toolgate_rig::tools(Arc::new(weather.clone()), &weather.tools().await?);
//! // Give the tools to an agent or a registry of rig.
//! # drop(tools);
//! # Ok(())
//! # }
//! ```

use rig_core::{
    message::{ImageMediaType, MimeType, ToolName, ToolResultContent},
    tool::{DynamicTool, ToolExecutionError, ToolOutput},
};
use serde_json::Value;
use std::sync::Arc;
use toolgate::{
    client::{CallResult, ModelTools, ToolCaller, ToolList},
    core::{Content, ContentKind, Error, ErrorKind},
};

/// Returns the tools as tools of rig, with names that model APIs accept. `client` is the client or the group that listed
/// them.
pub fn tools<C: ToolCaller + 'static>(client: Arc<C>, tools: &ToolList) -> Vec<DynamicTool> {
    let model = Arc::new(tools.to_openai());
    let made = model.functions().filter_map(|function| {
        // A name of the model API is never empty.
        let name = ToolName::new(function.name).ok()?;
        let (client, model) = (client.clone(), model.clone());
        let own = function.name.to_owned();
        let run = move |arguments: Value| -> rig_core::wasm_compat::WasmBoxedFuture<'static, _> {
            let (client, model, own) = (client.clone(), model.clone(), own.clone());
            Box::pin(async move { run(&*client, &model, &own, arguments).await })
        };
        let parameters = function.parameters.to_value();
        Some(DynamicTool::new(
            name,
            function.description,
            parameters,
            run,
        ))
    });
    made.collect()
}

async fn run(
    client: &impl ToolCaller,
    tools: &ModelTools,
    name: &str,
    arguments: Value,
) -> Result<ToolOutput, ToolExecutionError> {
    // rig has an id for each call of its own.
    let call = tools
        .read_parts("", name, arguments)
        .map_err(|error| failure(&error))?;
    let result = client.call_tool(&call.tool, call.arguments).await;
    output(&result.map_err(|error| failure(&error))?)
}

/// Returns the result with images, which rig can pass on. A failed tool is an error that the model can read.
fn output(result: &CallResult) -> Result<ToolOutput, ToolExecutionError> {
    let mut blocks: Vec<ToolResultContent> = result.content().iter().map(block).collect();
    if blocks.is_empty() {
        let structured = result.structured_content().map(|json| json.to_value());
        blocks
            .push(structured.map_or_else(|| ToolResultContent::text(""), ToolResultContent::json));
    }
    let output = ToolOutput::content(blocks)?;
    match result.is_error() {
        true => {
            let text = result.text();
            Err(ToolExecutionError::other(text).with_model_output(output))
        }
        false => Ok(output),
    }
}

fn block(content: &Content) -> ToolResultContent {
    let mime = content.mime_type().unwrap_or_default();
    match (content.kind, ImageMediaType::from_mime_type(&mime)) {
        (ContentKind::Text, _) => ToolResultContent::text(content.as_text().unwrap_or_default()),
        (ContentKind::Image, Some(kind)) => {
            let data = content.json.get("data").and_then(|data| data.string());
            ToolResultContent::image_base64(data.unwrap_or_default(), Some(kind), None)
        }
        _ => ToolResultContent::json(content.json.to_value()),
    }
}

/// Returns the error of a call that was refused, invalid or not possible. The text is written for models.
fn failure(error: &Error) -> ToolExecutionError {
    let text = error.public_message();
    let failure = match error.kind() {
        ErrorKind::Refused(_) => ToolExecutionError::refused(text),
        ErrorKind::InvalidArguments(_) => ToolExecutionError::invalid_args(text),
        ErrorKind::NotFound => ToolExecutionError::not_found(text),
        ErrorKind::TimedOut => ToolExecutionError::timeout(text),
        ErrorKind::Cancelled => ToolExecutionError::cancelled(text),
        _ => ToolExecutionError::provider(text),
    };
    failure.with_model_feedback(text)
}
