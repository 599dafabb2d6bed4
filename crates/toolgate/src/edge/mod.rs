//! Protocol servers: stdio and HTTP. They turn bytes into calls and outcomes into bytes. JSON-RPC ids, headers, cursors
//! and protocol revisions exist only here.

mod answer;
mod ask;
mod batch;
mod call;
mod changes;
mod front;
mod given;
pub mod http;
mod legacy;
mod lists;
mod local;
mod modern;
mod outlet;
mod pages;
mod pinging;
mod queue;
mod skills;
pub mod standard;
pub mod stdio;
mod tasks;
mod telling;
mod working;

pub use front::{
    InstructionsProvider, MissedPings, ProtocolServer, Rejection, RejectionLog, ServerCapabilities,
    ServerLimits,
};
pub use local::call_in_process;
pub use outlet::QueueLimits;
pub use tasks::{TaskLimits, TaskOffer, TaskView};
