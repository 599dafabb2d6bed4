//! Sanitizers of returned content: [`text_from_fn`] replaces texts, and [`from_fn`] sees all content.
//!
//! Add one to a server with [`Server::sanitize`](crate::Server::sanitize), or to a client with
//! [`ClientBuilder::sanitize`](crate::client::ClientBuilder::sanitize). Sanitizers see content after the built-in ones.
//! Implement [`Sanitizer`] to see the item and its server too.

pub use toolgate_core::sanitizer::{FnSanitizer, Sanitizer, UntrustedContent, from_fn};
pub use toolgate_policy::text_from_fn;
