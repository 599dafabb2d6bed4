//! Where bytes become calls and outcomes become bytes. Only here there are ids, headers, cursors and revisions.

mod answer;
mod ask;
mod batch;
mod call;
mod changes;
mod front;
mod given;
pub mod http;
mod legacy;
mod lists;
mod local;
mod modern;
mod outlet;
mod pages;
mod pinging;
mod queue;
mod skills;
pub mod standard;
pub mod stdio;
mod tasks;
mod telling;
mod working;

pub use front::{Front, Instructs, Offers, Refused, ServerLimits, Unheard, Witness};
pub use local::call_here;
pub use outlet::QueueLimits;
pub use tasks::{TaskLimits, TaskOffer, TaskView};
