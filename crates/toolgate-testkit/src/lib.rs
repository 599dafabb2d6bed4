//! What tests of MCP servers and clients need: the other side, in memory, in any revision.
//!
//! - [`Peer`] is a client of plain JSON: it opens a server, asks, answers questions, and hears what comes.
//! - [`ScriptedServer`] is a server that says what the test says, to test clients.
//! - [`Transcript`] is a text file of what is sent and what must come back.
//! - [`canary`] is for secrets that must be found nowhere.
//! - [`hostile`] are servers that misbehave, each in one way.
//! - [`Dice`] are numbers that look random, the same in every run.
//!
//! All of them panic where a test should fail, with what was said. Nothing waits longer than [`HANG`]; with tokio's
//! clock paused (`#[tokio::test(start_paused = true)]`) waiting costs no time at all.
//!
//! ```
//! use serde_json::json;
//! use toolgate::{Server, Tool};
//! use toolgate_testkit::{Peer, REVISIONS};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let hello = Tool::dynamic("hello", json!({"type": "object"}), |_, _| async { Ok("hello") });
//! let server = Server::new("greeter", "1.0.0").tool(hello).build().unwrap();
//! for revision in REVISIONS {
//!     let mut peer = Peer::open(&server, revision, json!({})).await;
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
mod dice;
pub mod hostile;
mod peer;
mod scripted;
mod transcript;
mod wire;

pub use dice::Dice;
pub use peer::Peer;
pub use scripted::ScriptedServer;
pub use transcript::{Transcript, play};
pub use wire::{Side, Watch};

use std::time::Duration;

/// How long anything is waited for: a bound on a hang, not a measurement.
pub const HANG: Duration = Duration::from_secs(60);

/// The newest revision, the one without a handshake.
pub const MODERN: &str = "2026-07-28";

/// All revisions, the oldest first.
pub const REVISIONS: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    MODERN,
];
