//! Authorization, on both sides of MCP.
//!
//! What a *client* of a server needs, in the order of a login:
//!
//! - [`fetch`]: the one way to an address that somebody else named.
//! - `discovery`: which authorization server a server trusts, and where its endpoints are.
//! - `registration`: which client we are to it.
//! - `flow`: the code flow, and what is asked for; `grant`: the ways to a token without a person.
//! - `tokens`, `store`: what was granted, kept by issuer.
//!
//! What a *server* needs stands in `resource`: checking the tokens of others. Both use [`jose`] and keep what must not
//! be seen in a [`Secret`].
//!
//! Source: the pages on authorization of all revisions; RFC 6749, 6750, 7591, 7636, 8414, 8707, 9207, 9449, 9728.

pub mod fetch;
pub mod jose;
mod secret;
mod url;

pub use secret::Secret;
pub use url::{BadUrl, Url};
