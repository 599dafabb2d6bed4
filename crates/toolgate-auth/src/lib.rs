//! OAuth 2.1 authorization for both sides of MCP.
//!
//! - [`client`]: OAuth client for protected MCP servers, from the `WWW-Authenticate` challenge to the access token.
//! - [`fetch`]: HTTP client with SSRF protection, for every URL that a peer names.
//! - [`resource`]: resource server, which verifies the access tokens of callers.
//!
//! Both sides use [`jose`] for signatures and hold secrets in a [`Secret`].
//!
//! Source: the pages on authorization of all revisions; RFC 6749, 6750, 7591, 7636, 8414, 8707, 9207, 9449, 9728.

#[doc(hidden)]
#[path = "fuzz.rs"]
pub mod __fuzz;
pub mod client;
mod clock;
pub mod fetch;
pub mod jose;
mod metadata;
pub mod resource;
mod secret;
mod url;

pub use secret::Secret;
pub use url::{InvalidUrl, Url};
