//! Operator's view of a running gateway, for the console and the control socket.

pub(crate) mod api;
mod console_sessions;
pub(crate) mod control;
pub(crate) mod item_view;

pub(crate) use console_sessions::{ConsoleSession, ConsoleSessions, revoke_all_sessions};
