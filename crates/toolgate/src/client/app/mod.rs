//! [`Client`]: the MCP client for applications, in every revision, with all client policies on.
//!
//! - `builder`: settings and functions of the application. `opening`: the transports.
//! - `client`, `calling`, `result`: calls and lists.
//! - `skills`: skills and their files.
//! - `rounds`: retries of a call until it has an outcome. `answers`: answers to the server's input requests.
//! - `form`, `page`, `sampling`: the kinds of input requests.
//! - `child`: the process of a spawned server.

mod answers;
mod builder;
mod calling;
mod child;
mod client;
mod confirming;
mod errors;
mod form;
mod in_process;
mod listed;
mod observing;
mod opening;
mod page;
mod result;
mod roots;
mod rounds;
mod sampling;
mod skills;
mod unlisted;

pub use builder::ClientBuilder;
pub use calling::ToolCallBuilder;
pub use client::Client;
pub use confirming::CallConfirmation;
pub use form::FormElicitation;
pub use in_process::IntoServer;
pub use listed::ListedItem;
pub use observing::{CallEvent, CallState};
pub use page::UrlElicitation;
pub use result::CallResult;
pub use sampling::{SamplingRequest, SamplingResponse};

use std::sync::Arc;
use toolgate_core::BoxFuture;

/// Asynchronous function of the application.
type AsyncCallback<I, O> = Arc<dyn Fn(I) -> BoxFuture<'static, O> + Send + Sync>;
/// Function of the application that receives a notification.
type EventCallback<I> = Arc<dyn Fn(I) + Send + Sync>;
