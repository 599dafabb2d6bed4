//! Authorization, on both sides of MCP.
//!
//! - [`client`]: what a *client* needs, from a refusal to a token that can be used.
//! - [`fetch`]: the one way to an address that somebody else named.
//!
//! What a *server* needs stands in [`resource`]: checking the tokens of others. Both use [`jose`] and keep what must not
//! be seen in a [`Secret`].
//!
//! Source: the pages on authorization of all revisions; RFC 6749, 6750, 7591, 7636, 8414, 8707, 9207, 9449, 9728.

pub mod client;
mod clock;
pub mod fetch;
pub mod jose;
mod metadata;
pub mod resource;
mod secret;
mod url;

pub use secret::Secret;
pub use url::{BadUrl, Url};
