//! [`Client`]: the MCP client for applications, in every revision, with all client policies on.
//!
//! - `builder`: settings and functions of the application. `opening`, `connect`, `spawn`: the transports.
//! - `client`, `call_builder`, `result`: calls and lists.
//! - `group`: clients of several servers as one.
//! - `skills`: skills and their files.
//! - `task_handle`: tasks of a server. `manual_input`: input requests that the application answers later.
//! - `rounds`: retries of a call until it has an outcome. `input_responder`: answers to the server's input requests.
//! - `form_elicitation`, `url_elicitation`, `sampling`: the kinds of input requests.
//! - `model`: tools, calls and results in the formats of model APIs.
//! - `server_process`: the process of a spawned server.

mod builder;
mod call_builder;
mod call_observation;
mod client;
mod confirmation;
#[cfg(feature = "http-client")]
mod connect;
mod errors;
mod form_elicitation;
mod group;
mod in_process;
mod input_responder;
mod listed_item;
mod manual_input;
mod model;
mod opening;
mod result;
mod roots;
mod rounds;
mod sampling;
#[cfg(feature = "spawn")]
mod server_process;
mod skills;
#[cfg(feature = "spawn")]
mod spawn;
mod task_handle;
mod unlisted_resources;
mod url_elicitation;

pub use builder::ClientBuilder;
pub use call_builder::ToolCallBuilder;
pub use call_observation::{CallEvent, CallState};
pub use client::Client;
pub use confirmation::CallConfirmation;
pub use form_elicitation::FormElicitation;
pub use group::ClientGroup;
pub use in_process::IntoServer;
pub use listed_item::ListedItem;
pub use manual_input::{CallProgress, InputAnswer, InputKind, InputQuestion, PendingCall};
pub use model::{ModelCall, ModelFunction, ModelTools, ToolCaller, ToolList};
pub use result::CallResult;
pub use sampling::{SamplingRequest, SamplingResponse};
pub use task_handle::{TaskHandle, TaskState, TaskTicket};
pub use url_elicitation::UrlElicitation;

use std::sync::Arc;
use toolgate_core::BoxFuture;

/// Asynchronous function of the application.
type AsyncCallback<I, O> = Arc<dyn Fn(I) -> BoxFuture<'static, O> + Send + Sync>;
/// Function of the application that receives a notification.
type EventCallback<I> = Arc<dyn Fn(I) + Send + Sync>;
