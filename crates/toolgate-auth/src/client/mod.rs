//! A client of servers that want to know who calls.
//!
//! - [`Login`]: the way to one server's tokens, and what a transport asks ([`Credentials`]).
//! - `challenge`: what a refusal says. `discovery`: whose tokens a server takes, and where they are had.
//! - `registration`: which client we are to an authorization server.
//! - `code`: the code flow with a person, `pkce` its proof. `grants`: the flows without one.
//! - `identification`: who a person is, for who wants to know no more.
//! - `loopback`: where a person comes back to. `endpoint`: one request for a token. `dpop`: tokens that are bound to a key.
//! - `scopes`: what is asked for. `tokens`, `store`: what was granted, by issuer.

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
