//! Where bytes become calls and outcomes become bytes. Only here there are ids, headers, cursors and revisions.

mod answer;
mod ask;
mod batch;
mod call;
mod changes;
pub mod http;
mod legacy;
mod lists;
mod local;
mod modern;
mod outlet;
mod server;
pub mod stdio;
mod telling;
mod working;

pub use local::call_here;
pub use server::{Instructs, Offers, Refused, Server, ServerLimits, Witness};
