//! Short forms for serving a [`Server`](crate::Server) over stdio, or as an HTTP service that a router mounts.

#[cfg(feature = "http-server")]
mod http;
#[cfg(feature = "stdio")]
mod stdio;
#[cfg(feature = "stdio")]
mod stop_signals;

#[cfg(feature = "http-server")]
pub use http::{Http, http};
#[cfg(feature = "stdio")]
pub use stdio::{ServeError, stdio};
