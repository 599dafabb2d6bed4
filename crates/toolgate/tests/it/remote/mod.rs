//! A server on a byte stream, played by hand: what goes over the wire, and what comes of it.

mod calls;
mod given_up;
mod hearing;
mod hostile;
mod lists;
mod logs;
mod opening;
mod parked;
pub(crate) mod peer;
mod pings;
mod tasks;
mod timeouts;
mod trouble;
pub(crate) mod unusable;
