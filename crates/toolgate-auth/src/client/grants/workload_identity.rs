//! Workload identity: the platform that runs a program attests the program's identity.
//!
//! Source: the extension `io.modelcontextprotocol/auth/wif`; RFC 7523, section 2.1.

use super::{
    super::{
        AuthError, AuthErrorKind, DiscoveredResource, ScopeSet,
        token_endpoint::{TokenEndpoint, TokenEndpointError},
        tokens::TokenResponse,
    },
    AssertionSource, jwt_bearer,
};
use ring::digest::{Context, SHA256};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Maximum number of remembered refusals.
const MAX_REFUSALS: usize = 256;

/// Workload identity grant: the platform that runs this program attests its identity by an assertion. A refusal is
/// final: the same assertion is not sent again, and no other grant is tried. Clones share the refusals.
///
/// ```
/// use toolgate_auth::{
///     Url,
///     client::{AssertionSource, ClientAuthentication, OAuthClient, RegisteredClient, WorkloadIdentity},
/// };
///
/// // The platform puts another one there before it ends.
/// let token = AssertionSource::file("/var/run/secrets/tokens/tools");
/// let login = OAuthClient::builder(Url::parse("https://tools.example.com/mcp")?)
///     .client(None, RegisteredClient::new("my-job", ClientAuthentication::None))
///     .workload(WorkloadIdentity::new(token))
///     .build();
/// # drop(login);
/// # Ok::<(), toolgate_auth::InvalidUrl>(())
/// ```
#[derive(Clone)]
pub struct WorkloadIdentity {
    assertion: AssertionSource,
    refused: Arc<Mutex<RefusedAssertions>>,
}

/// Refusals by the digest of the request.
type RefusedAssertions = HashMap<Vec<u8>, AuthError>;

impl WorkloadIdentity {
    /// Creates a workload identity grant from an assertion whose audience is the authorization server.
    pub fn new(assertion: impl Into<AssertionSource>) -> WorkloadIdentity {
        WorkloadIdentity {
            assertion: assertion.into(),
            refused: Arc::default(),
        }
    }

    pub(in super::super) async fn request_token(
        &self,
        found: &DiscoveredResource,
        scopes: &ScopeSet,
        endpoint: &TokenEndpoint<'_>,
    ) -> Result<TokenResponse, TokenEndpointError> {
        let assertion = self.assertion.get().await?;
        let assertion = assertion.reveal();
        let of = |scopes: &str| {
            digest(&[
                endpoint.url.as_str(),
                &endpoint.client.id,
                assertion,
                scopes,
            ])
        };
        // `invalid_scope` does not reject the assertion: the same one may succeed with other scopes.
        let (whole, with) = (of(""), of(&format!("for {scopes}")));
        let remedies = [
            (&whole, "so provide a new one"),
            (&with, "so provide a new one or request other scopes"),
        ];
        let refused = remedies.iter().find_map(|(key, remedy)| {
            let error = self.lock_refusals().get(*key).cloned()?;
            Some(format!(
                "{error}; the same assertion is not sent again, {remedy}"
            ))
        });
        if let Some(words) = refused {
            return Err(AuthError::new(AuthErrorKind::Refused, words).into());
        }
        let asked = jwt_bearer(found, scopes, assertion, endpoint).await;
        if let Err(no) = &asked
            && no.error.kind() == AuthErrorKind::Refused
            && no.code.is_some()
        {
            // Without an OAuth error code, an intermediary may have refused.
            let by_scope = no.code.as_deref() == Some("invalid_scope");
            self.remember(if by_scope { with } else { whole }, no.error.clone());
        }
        asked
    }

    fn remember(&self, key: Vec<u8>, error: AuthError) {
        let mut refused = self.lock_refusals();
        if refused.len() >= MAX_REFUSALS {
            refused.clear();
        }
        refused.insert(key, error);
    }

    fn lock_refusals(&self) -> MutexGuard<'_, RefusedAssertions> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn digest(texts: &[&str]) -> Vec<u8> {
    let mut context = Context::new(&SHA256);
    for text in texts {
        context.update(&text.len().to_be_bytes());
        context.update(text.as_bytes());
    }
    context.finish().as_ref().to_vec()
}
