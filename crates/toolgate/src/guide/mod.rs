//! Guides to writing servers and clients, one page each. Every code example is compiled.

#[doc = include_str!("server.md")]
pub mod server {}

#[doc = include_str!("client.md")]
pub mod client {}
