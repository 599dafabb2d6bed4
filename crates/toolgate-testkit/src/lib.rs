//! Test kit for MCP servers and clients: the other side, in memory, in any revision.
//!
//! - [`TestClient`] is a client of plain JSON: it opens a server, sends requests, responds to those of the server, and
//!   receives messages.
//! - [`ScriptedServer`] is a server that a test controls message by message, to test clients.
//! - [`Transcript`] is a text file with the messages that are sent and those that must come back.
//! - [`canary`] detects secrets that must not appear anywhere.
//! - [`hostile`] has servers that misbehave, each in one way.
//! - `postgres` starts a PostgreSQL server, kills it and stops it.
//! - [`SeededRng`] generates pseudo-random numbers, the same in every run.
//!
//! All of them panic if a test should fail, with the message received. Nothing waits longer than [`HANG_TIMEOUT`]; with
//! tokio's clock paused (`#[tokio::test(start_paused = true)]`) waiting costs no time at all.
//!
//! ```
//! use serde_json::json;
//! use toolgate::{HandlerExit, Server, Tool};
//! use toolgate_testkit::{REVISIONS, TestClient};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let hello = Tool::dynamic("hello", json!({"type": "object"}), |_, _| async {
//!     Ok::<_, HandlerExit>("hello")
//! });
//! let server = Server::new("greeter", "1.0.0").tool(hello).build().unwrap();
//! for revision in REVISIONS {
//!     let mut peer = TestClient::open(&server, revision, json!({})).await;
//!     let result = peer.result("tools/call", json!({"name": "hello"})).await;
//!     assert_eq!(result["content"][0]["text"], "hello");
//! }
//! # });
//! ```
#![allow(
    clippy::panic,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test fails by a panic, with words"
)]

pub mod canary;
mod client;
pub mod hostile;
mod line_stream;
#[cfg(unix)]
pub mod postgres;
mod random;
mod scripted;
mod transcript;

pub use client::TestClient;
pub use line_stream::{LineObserver, StreamSide};
pub use random::SeededRng;
pub use scripted::ScriptedServer;
pub use transcript::{Transcript, play};

use std::time::Duration;

/// Maximum time of any wait: 60 s. It bounds a hang and measures nothing.
pub const HANG_TIMEOUT: Duration = Duration::from_secs(60);

/// The newest revision, the one without a handshake.
pub const NEWEST_REVISION: &str = "2026-07-28";

/// All protocol revisions, oldest first.
pub const REVISIONS: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    NEWEST_REVISION,
];
