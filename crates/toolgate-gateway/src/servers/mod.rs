//! The servers: one supervised child each, started again when it ends.
//!
//! - [`Supervisor`]: all of them.
//! - `supervised`: one of them, as a service and as a line in the console.
//! - `seat`: the state of its child or connection, and waiting for it.
//! - `lists`: what it lists, also while it cannot be asked.
//! - `life`: the loop that starts, opens, watches and ends a child.
//! - `per_caller`: a server to which each caller has a connection of its own.
//! - `own_sign_ins`: which callers have a sign-in of their own, and which wait for one.
//! - `revision`: a change of the revision that is used with a server.
//! - `launch`: how a child comes to be; by the guardian, or by a test.

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

pub(crate) use lease::Lease;
pub(crate) use lists::LastLists;
pub(crate) use spec::ServerSpec;
use status::ServerStatus;
pub(crate) use status::State;
use supervised::Supervised;
pub(crate) use supervisor::Supervisor;
