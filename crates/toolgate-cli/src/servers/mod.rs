//! Upstream servers: one supervised process or connection each, restarted when it ends.
//!
//! - [`ServerSupervisor`]: all servers.
//! - `supervised`: one server, as a service and as a status in the console.
//! - `connection_state`: state of its process or connection, and waiting for it.
//! - `lists`: its lists, also while it is down.
//! - `lifecycle`: lifecycle loop of a process or connection.
//! - `per_caller`: a server to which each caller has a connection of its own.
//! - `caller_sign_ins`: callers with a sign-in of their own, and callers that need one.
//! - `credential_revocation`: revocation of deleted credentials.
//! - `revision`: change of the protocol revision of a server.
//! - `server_event`: events of its lifecycle.
//! - `stderr_tail`, `stderr_files`: its last stderr lines, in memory and in files.
//! - `launch`: start of a process, by the guardian or by a test.

mod backoff;
mod caller_sign_ins;
mod connection_state;
mod credential_revocation;
mod down_reason;
mod launch;
mod lease;
mod lifecycle;
mod lists;
mod per_caller;
mod remote;
mod revision;
mod server_event;
mod spec;
mod status;
mod stderr_files;
mod stderr_tail;
mod subscriptions;
mod supervised;
mod supervisor;
#[cfg(test)]
mod tests;

pub(crate) use credential_revocation::revoke_credentials;
pub(crate) use lease::ServerLease;
pub(crate) use lists::LastLists;
pub(crate) use server_event::{ServerEvent, ServerObserver, ServerOutputs};
pub(crate) use spec::ServerSpec;
pub(crate) use status::{ServerState, ServerStatus};
pub(crate) use stderr_files::{StderrFiles, directory as stderr_directory, stderr_path};
use supervised::SupervisedServer;
pub(crate) use supervisor::ServerSupervisor;
