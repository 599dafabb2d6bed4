//! Handover of the listeners to another process, so that an upgrade of the program loses no call.
//!
//! The new process, the *successor*, asks the running gateway over its control socket for its listeners. The running
//! gateway, its *predecessor*, goes on until the successor is ready. Then it stops accepting connections, hands over its
//! sessions, completes what runs, and ends.
//!
//! - [`ListenerHandover`]: the side of the predecessor.
//! - [`Predecessor`]: the side of the successor.
//! - [`TransferredSessions`]: sessions that a predecessor opened.
//! - `descriptors`: listeners in messages between processes.

mod descriptors;
mod predecessor;
mod sessions;
mod successor;

pub(crate) use predecessor::{OpenHandover, Predecessor};
pub(crate) use sessions::TransferredSessions;
pub(crate) use successor::ListenerHandover;

use serde::{Deserialize, Serialize};

/// Version of the messages of a handover. Raised with each change that an earlier version cannot handle.
const HANDOVER_VERSION: u64 = 1;

/// Listener of the gateway.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ListenerKind {
    /// Listener of the MCP endpoint and the console.
    Gateway,
    /// Listener of the health pages and metrics.
    Admin,
    /// Listener for other gateways of a shared store.
    Peers,
}

/// Message that a successor sends after it got the listeners.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum SuccessorMessage {
    /// It serves from now on.
    Ready,
}

/// Message that a predecessor sends after its successor is ready.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum PredecessorMessage {
    /// Digest of the id of an open session, and its record.
    Session(String, String),
    /// It accepts no more connections, and all sessions so far are sent.
    HandedOver,
}
