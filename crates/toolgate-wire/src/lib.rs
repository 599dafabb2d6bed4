//! The Model Context Protocol without I/O: no runtime, no clock, no sockets.
//!
//! - [`json`]: the strict reader. Foreign bytes come in here or not at all.
//! - [`message`]: the JSON-RPC envelope.
//! - [`method`]: the words, parameters and results, one file a method.
//! - [`dialect`]: what is different from revision to revision, one file each.
//! - [`normalize`]: valid definitions and results, whatever a server sent.
//! - [`session`]: one peer as a table of requests in flight, both ways.
//! - [`placeholder`]: texts that stand in the place of something else.
//! - [`room`]: one budget of bytes for all messages that are held.
//! - [`unread`]: what a text was meant to be that cannot be read as a message.

pub mod dialect;
pub mod json;
pub mod message;
pub mod method;
pub mod normalize;
pub mod placeholder;
pub mod room;
pub mod session;
pub mod unread;
