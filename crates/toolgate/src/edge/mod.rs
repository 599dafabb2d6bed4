//! Protocol servers: stdio and HTTP. They turn bytes into calls and outcomes into bytes. JSON-RPC ids, headers, cursors
//! and protocol revisions exist only here.

mod batch;
mod call;
mod changes;
mod client_context;
mod connection;
mod handshake;
#[cfg(feature = "http-server")]
pub mod http;
mod in_flight;
mod in_process;
mod input_rounds;
mod keepalive;
mod lists;
mod message_transport;
mod notifications;
mod operation;
mod page_cache;
mod protocol_server;
mod queue;
mod received_lists;
mod responder;
mod response;
mod skills;
#[cfg(feature = "stdio")]
pub mod standard;
mod stateless;
pub mod stdio;
mod task_options;
#[cfg(feature = "tasks")]
mod tasks;
#[cfg(not(feature = "tasks"))]
#[path = "no_tasks.rs"]
mod tasks;

pub use in_process::call_in_process;
pub use message_transport::MessageTransport;
pub(crate) use message_transport::{serve_transport, serve_transport_until};
pub use protocol_server::{
    InstructionsProvider, MissedPings, ProtocolServer, Rejection, RejectionLog, ServerCapabilities,
    ServerLimits,
};
pub use responder::QueueLimits;
#[cfg(feature = "tasks")]
pub use task_options::TaskView;
pub use task_options::{TaskLimits, TaskOffer};
