//! OAuth 2.1 client for protected MCP servers.
//!
//! - [`Login`]: tokens of one server; implements [`Credentials`], the interface for transports.
//! - `challenge`: `WWW-Authenticate` parser. `discovery`: protected resource and authorization server metadata.
//! - `registration`: client identities and dynamic client registration.
//! - `code`: authorization code flow; `pkce`: its code verifier. `grants`: flows without a user.
//! - `identification`: a sign-in that only identifies a user.
//! - `loopback`: redirect listener on this machine. `endpoint`: token endpoint requests. `dpop`: sender-constrained
//!   tokens.
//! - `scopes`: scope selection. `tokens`, `store`: stored credentials and registrations.

mod challenge;
mod code;
mod credentials;
mod discovery;
mod dpop;
mod endpoint;
mod error;
mod grants;
mod identification;
mod login;
mod loopback;
mod pkce;
mod registration;
mod scopes;
mod store;
mod tokens;

pub use challenge::{Challenge, challenges};
pub use code::{SignIn, Visit};
pub use credentials::{Again, Credentials, Leaving, Refusal};
use discovery::{Found, ServerMetadata};
pub use error::{AuthError, AuthErrorKind};
pub use grants::{Assertion, Enterprise, OnBehalf, Subject, TokenExchange, Workload};
pub use identification::Identification;
pub use login::{Login, LoginBuilder, SignedOut};
pub use loopback::Browser;
pub use registration::{Authenticate, OauthClient, client_document};
pub use scopes::Scopes;
pub use store::{FileStore, MemoryStore, Store, StoreError, Turn};
pub use tokens::Grant;
