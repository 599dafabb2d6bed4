//! Operator's view of a running gateway, for the console and the control socket.

pub(crate) mod actions;
pub(crate) mod api;
mod audit_history;
mod console_sessions;
pub(crate) mod control;
mod grant_conditions;
pub(crate) mod item_view;
mod last_approved;
mod masked_arguments;
mod presence;

pub(crate) use audit_history::AuditHistory;
pub(crate) use console_sessions::{
    ConsoleSession, ConsoleSessions, NewConsoleSession, revoke_all_sessions,
};
pub(crate) use last_approved::LastApprovedCalls;
pub(crate) use presence::ConsolePresence;
