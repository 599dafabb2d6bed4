//! Commands of the program, and what they print.

pub(crate) mod commands;
pub(crate) mod demo;
pub(crate) mod history;
mod host_tools;
pub(crate) mod output;
pub(crate) mod override_lint;
pub(crate) mod progress;
pub(crate) mod qr_code;
pub(crate) mod server_requirements;
pub(crate) mod server_start;
mod tool_server;
pub(crate) mod unmatched_lint;
pub(crate) mod unreachable_lint;
