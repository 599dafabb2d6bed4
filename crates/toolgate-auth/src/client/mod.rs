//! OAuth 2.1 client for protected MCP servers.
//!
//! - [`OAuthClient`]: tokens of one server; implements [`CredentialProvider`], the interface for transports.
//! - `challenge`: `WWW-Authenticate` parser. `discovery`: protected resource and authorization server metadata.
//! - `registration`: client identities and dynamic client registration.
//! - `authorization_code`: authorization code flow; `pkce`: its code verifier. `grants`: flows without a user.
//! - `identification`: a sign-in that only identifies a user.
//! - `loopback`: redirect listener on this machine. `token_endpoint`: token endpoint requests. `dpop`: sender-constrained
//!   tokens.
//! - `scopes`: scope selection. `tokens`, `store`: stored credentials and registrations.

mod authorization_code;
mod challenge;
mod credentials;
mod discovery;
mod dpop;
mod error;
pub(crate) mod fuzz;
mod grants;
mod identification;
mod loopback;
mod oauth_client;
mod pkce;
mod registration;
mod scopes;
mod store;
mod token_endpoint;
mod tokens;

pub use authorization_code::{PendingSignIn, SignIn};
pub use challenge::{AuthChallenge, parse_challenges};
pub use credentials::{CredentialProvider, CredentialRequest, RejectedResponse, RetryDecision};
use discovery::{AuthorizationServerMetadata, DiscoveredResource};
pub use error::{AuthError, AuthErrorKind};
pub use grants::{
    AssertionSource, EnterpriseAuthorization, ExchangedCredentials, SubjectToken, TokenExchange,
    WorkloadIdentity,
};
pub use identification::UserIdentification;
pub use loopback::LoopbackBrowser;
pub use oauth_client::{OAuthClient, OAuthClientBuilder, SignedOut};
pub use registration::{ClientAuthentication, RegisteredClient, client_document};
pub use scopes::ScopeSet;
#[cfg(unix)]
pub use store::FileCredentialStore;
pub use store::{CredentialStore, MemoryCredentialStore, RefreshGuard, StoreError};
pub use tokens::OAuthCredential;
