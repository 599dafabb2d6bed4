//! Toolgate for people who write MCP servers, clients and gateways.
//!
//! - [`Service`], [`Call`], [`Pipeline`] and their kin are the spine; see [`toolgate_core`].
//! - [`edge`] serves a [`Service`] over stdio and HTTP.
//! - [`client`] makes a server somewhere else a [`Service`].
//! - [`handlers`] makes a server of plain functions.
//! - [`aggregate`] makes many services one.

pub mod aggregate;
pub mod client;
pub mod edge;
pub mod handlers;
pub mod ids;
mod seal;
mod serve;

pub use handlers::{Cx, IntoOutput, Prompt, Resource, Server, Stop, Structured, Template, Tool};
pub use serve::{Http, ServeError, http, stdio};
pub use toolgate_core::*;

/// The examples of the front page compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
