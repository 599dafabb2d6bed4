//! Tokens without a person.
//!
//! - `enterprise`: by the sign-in that a person has at a company's identity provider.
//! - `exchange`: on behalf of a caller, by the token that the caller showed.
//! - `workload`: by what a platform says of a program. `assertion`: where such words come from.
//!
//! Source: the extensions `oauth-client-credentials`, `enterprise-managed-authorization` and `wif` of MCP.

mod assertion;
mod enterprise;
mod exchange;
mod workload;

pub use assertion::Assertion;
pub use enterprise::Enterprise;
pub use exchange::{OnBehalf, Subject, TokenExchange};
pub use workload::Workload;

use super::{
    AuthError, AuthErrorKind, Found, Scopes,
    endpoint::{Endpoint, NoToken},
    tokens::Answer,
};

/// The grant by which an assertion is given for a token.
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// The grant by which a token is given for another.
const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";

/// Asks with nothing but who we are.
pub(super) async fn client_credentials(
    found: &Found,
    scopes: &Scopes,
    endpoint: &Endpoint<'_>,
) -> Result<Answer, NoToken> {
    let scopes = scopes.to_string();
    let mut form = vec![
        ("grant_type", "client_credentials"),
        ("resource", found.resource.as_str()),
    ];
    if !scopes.is_empty() {
        form.push(("scope", &scopes));
    }
    endpoint.ask(&form).await
}

/// Asks with an assertion.
async fn by_assertion(
    found: &Found,
    scopes: &Scopes,
    assertion: &str,
    endpoint: &Endpoint<'_>,
) -> Result<Answer, NoToken> {
    let scopes = scopes.to_string();
    let mut form = vec![
        ("grant_type", JWT_BEARER),
        ("assertion", assertion),
        ("resource", found.resource.as_str()),
    ];
    if !scopes.is_empty() {
        form.push(("scope", &scopes));
    }
    endpoint.ask(&form).await
}

fn refused(words: String) -> AuthError {
    AuthError::new(AuthErrorKind::Unsafe, words)
}
