//! MCP servers from plain functions.
//!
//! - [`Server`] collects the items and builds the server for an edge, with all policies on.
//! - [`Tool`], [`Prompt`], [`Resource`] and [`ResourceTemplate`] are a definition with its handler function.
//! - [`Skill`] is a folder of instructions for a model.
//! - [`Cx`] is the context of a call; [`ask`] contains the input requests that a handler can send.
//! - [`HandlerExit`] ends a handler without a result: for input, or with an error; [`ToolError`] is that error.
//!
//! ```
//! use toolgate::handlers::{Cx, Server, HandlerExit, Tool};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let echo = Tool::dynamic(
//!     "echo",
//!     serde_json::json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}),
//!     |args: serde_json::Value, _cx: Cx| async move {
//!         Ok::<_, HandlerExit>(args["text"].as_str().unwrap_or_default().to_owned())
//!     },
//! );
//! let server = Server::new("echo", "1.0.0").tool(echo.description("Says it again.")).build()?;
//! # let _ = server;
//! # Ok(())
//! # }
//! ```

mod app_page;
mod argument_error;
pub mod ask;
mod build;
mod cancellation;
mod complete;
mod contents;
mod cx;
mod definition;
mod handler_exit;
#[cfg(feature = "http-server")]
mod http_request;
mod icon;
mod item_set;
mod messages;
mod mount;
mod output;
mod prompt;
mod received_responses;
mod registry;
mod resource;
pub mod schema;
mod server;
mod service;
mod skill;
mod text_arguments;
mod tool;
mod tool_error;
mod tool_policy;
mod typed;

pub use app_page::{AppPage, AppPermission};
pub use build::BuildError;
pub use cancellation::CancellationToken;
pub use contents::{IntoContents, ResourceContents};
pub use cx::{Cx, LogLevel};
pub use handler_exit::HandlerExit;
pub use icon::{Icon, IconTheme};
pub use item_set::{ItemSet, ItemSource};
pub use messages::{IntoMessages, Message};
pub use output::{IntoOutput, Structured};
pub use prompt::{IntoPrompt, Prompt};
pub use registry::ItemRegistry;
pub use resource::{
    IntoResource, IntoResourceTemplate, Resource, ResourceTemplate, TemplateVariables,
};
pub use server::Server;
pub use skill::Skill;
pub use tool::{IntoTool, Tool};
pub use tool_error::{IntoHandlerExit, ToolError};
pub use toolgate_protocol::method::tasks::TaskSupport;
