//! Upstream servers: one supervised process or connection each, restarted when it ends.
//!
//! - [`ServerSupervisor`]: all servers.
//! - `supervised`: one server, as a service and as a status in the console.
//! - `seat`: state of its process or connection, and waiting for it.
//! - `lists`: its lists, also while it is down.
//! - `life`: lifecycle loop of a process or connection.
//! - `per_caller`: a server to which each caller has a connection of its own.
//! - `own_sign_ins`: callers with a sign-in of their own, and callers that need one.
//! - `revision`: change of the protocol revision of a server.
//! - `launch`: start of a process, by the guardian or by a test.

mod backoff;
mod down_reason;
mod hearing;
mod launch;
mod lease;
mod life;
mod lists;
mod own_sign_ins;
mod per_caller;
mod reach;
mod revision;
mod seat;
mod spec;
mod status;
mod supervised;
mod supervisor;
mod tail;
#[cfg(test)]
mod tests;

pub(crate) use lease::ServerLease;
pub(crate) use lists::LastLists;
pub(crate) use spec::ServerSpec;
pub(crate) use status::ServerState;
use status::ServerStatus;
use supervised::SupervisedServer;
pub(crate) use supervisor::ServerSupervisor;
