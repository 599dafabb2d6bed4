//! Grant types without a user.
//!
//! - `identity_assertion`: identity assertion grant, by a user's sign-in at an enterprise identity provider.
//! - `token_exchange`: token exchange on behalf of a caller, with the caller's access token.
//! - `workload_identity`: workload identity, by an assertion of the platform. `assertion`: sources of assertions.
//!
//! Source: the extensions `oauth-client-credentials`, `enterprise-managed-authorization` and `wif` of MCP.

mod assertion;
mod identity_assertion;
mod token_exchange;
mod workload_identity;

pub use assertion::AssertionSource;
pub use identity_assertion::EnterpriseAuthorization;
pub use token_exchange::{ExchangedCredentials, SubjectToken, TokenExchange};
pub use workload_identity::WorkloadIdentity;

use super::{
    AuthError, AuthErrorKind, DiscoveredResource, ScopeSet,
    token_endpoint::{TokenEndpoint, TokenEndpointError},
    tokens::TokenResponse,
};

/// Grant type of JWT bearer assertions (RFC 7523).
const JWT_BEARER_GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// Grant type of token exchange (RFC 8693).
const TOKEN_EXCHANGE_GRANT: &str = "urn:ietf:params:oauth:grant-type:token-exchange";

/// Requests a token with the client credentials grant.
pub(super) async fn client_credentials(
    found: &DiscoveredResource,
    scopes: &ScopeSet,
    endpoint: &TokenEndpoint<'_>,
) -> Result<TokenResponse, TokenEndpointError> {
    let scopes = scopes.to_string();
    let mut form = vec![
        ("grant_type", "client_credentials"),
        ("resource", found.resource.as_str()),
    ];
    if !scopes.is_empty() {
        form.push(("scope", &scopes));
    }
    endpoint.request_token(&form).await
}

/// Requests a token with the JWT bearer grant.
async fn jwt_bearer(
    found: &DiscoveredResource,
    scopes: &ScopeSet,
    assertion: &str,
    endpoint: &TokenEndpoint<'_>,
) -> Result<TokenResponse, TokenEndpointError> {
    let scopes = scopes.to_string();
    let mut form = vec![
        ("grant_type", JWT_BEARER_GRANT),
        ("assertion", assertion),
        ("resource", found.resource.as_str()),
    ];
    if !scopes.is_empty() {
        form.push(("scope", &scopes));
    }
    endpoint.request_token(&form).await
}

fn unsafe_response(words: String) -> AuthError {
    AuthError::new(AuthErrorKind::Unsafe, words)
}
