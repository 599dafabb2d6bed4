//! How to write servers and clients, one page each. All code on them is compiled.

#[doc = include_str!("server.md")]
pub mod server {}

#[doc = include_str!("client.md")]
pub mod client {}
