//! Model Context Protocol without I/O: no runtime, no clock, no sockets.
//!
//! - [`json`]: the strict JSON reader, the only entry for untrusted bytes.
//! - [`hex`]: hexadecimal text.
//! - [`message`]: the JSON-RPC envelope. [`batch`]: batches of them.
//! - [`method`]: method names, parameters and results, one file a method.
//! - [`dialect`]: differences between protocol revisions, one file a revision.
//! - [`normalize`]: repair of definitions and results that servers send.
//! - [`request_table`]: tables of the requests in flight with one peer, in both directions.
//! - [`placeholder`]: texts that replace content which cannot be delivered.
//! - [`plural`]: counts with their nouns, for messages.
//! - [`memory_budget`]: memory budget for all messages that are held.
//! - [`unreadable`]: classification of text that cannot be parsed as a message.

pub mod batch;
pub mod dialect;
pub mod hex;
pub mod json;
pub mod memory_budget;
pub mod message;
pub mod method;
pub mod normalize;
pub mod placeholder;
pub mod plural;
pub mod request_table;
pub mod unreadable;
