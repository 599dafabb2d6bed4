//! Authorization code flow with PKCE: a user signs in in a browser, and the client redeems the code.
//!
//! Source: "Authorization Flow Steps" of the specification; RFC 6749, section 4.1; RFC 7636; RFC 8707; RFC 9207.

use super::{
    AuthError, AuthErrorKind, DiscoveredResource, RegisteredClient, ScopeSet,
    error::sanitize_for_display,
    pkce::{CodeVerifier, random_token},
    token_endpoint::{TokenEndpoint, TokenEndpointError},
    tokens::TokenResponse,
};
use crate::{Secret, Url, fetch::AddressPolicy};
use futures_util::future::BoxFuture;

/// User agent of the authorization code flow: opens the sign-in page for a user and receives the redirect.
pub trait SignIn: Send + Sync + 'static {
    /// Prepares to receive the redirect, at the redirect URI `wanted` if that is still available.
    ///
    /// # Errors
    /// The redirect cannot be received.
    fn begin<'a>(
        &'a self,
        wanted: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Box<dyn PendingSignIn>, AuthError>>;
}

/// Browser sign-in in progress at an authorization server, which waits for the redirect.
pub trait PendingSignIn: Send {
    /// Returns the redirect URI to put into the authorization request.
    fn redirect_uri(&self) -> &str;

    /// Reports the issuer identifier of the authorization server before [`PendingSignIn::open_and_wait`].
    /// The host of the sign-in page may be another one.
    fn announce_issuer(&mut self, issuer: &str) {
        let _ = issuer;
    }

    /// Opens the authorization URL for the user, waits for the redirect and returns its query.
    ///
    /// # Errors
    /// The redirect did not arrive.
    fn open_and_wait(self: Box<Self>, url: Url) -> BoxFuture<'static, Result<String, AuthError>>;
}

/// Authorization request of an authorization code flow: PKCE verifier and `state`. Both stay in this process.
pub(super) struct AuthorizationRequest<'a> {
    found: &'a DiscoveredResource,
    client: &'a RegisteredClient,
    redirect_uri: String,
    verifier: CodeVerifier,
    state: Secret,
}

impl<'a> AuthorizationRequest<'a> {
    /// Starts an authorization request.
    ///
    /// # Errors
    /// The authorization server does not announce PKCE with `S256`.
    pub(super) fn new(
        found: &'a DiscoveredResource,
        client: &'a RegisteredClient,
        redirect: &str,
    ) -> Result<AuthorizationRequest<'a>, AuthError> {
        if !found.server.supports_s256 {
            let words = format!(
                "cannot sign in: the metadata of the authorization server {} does not list S256 in code_challenge_methods_supported (PKCE), so a stolen authorization code could be used; ask its operator to enable PKCE",
                sanitize_for_display(&found.server.issuer)
            );
            return Err(AuthError::new(AuthErrorKind::Unsafe, words));
        }
        Ok(AuthorizationRequest {
            found,
            client,
            redirect_uri: redirect.to_owned(),
            verifier: CodeVerifier::new()?,
            state: Secret::new(random_token()?),
        })
    }

    /// Builds the authorization URL.
    pub(super) fn authorization_url(
        &self,
        scopes: &ScopeSet,
        reach: AddressPolicy,
    ) -> Result<Url, AuthError> {
        let server = &self.found.server;
        let no = |what: &str| {
            let words = format!(
                "the authorization server {} {what}, so sign-in there is impossible; the operator of the authorization server has to correct it",
                sanitize_for_display(&server.issuer)
            );
            AuthError::new(AuthErrorKind::Unsupported, words)
        };
        let endpoint = server.authorization_endpoint.as_ref();
        let endpoint =
            endpoint.ok_or_else(|| no("names no authorization_endpoint in its metadata"))?;
        reach.check_scheme(endpoint).map_err(|why| {
            no(&format!(
                "has an authorization_endpoint that is unsafe to open: {why}"
            ))
        })?;
        let challenge = self.verifier.challenge();
        let scope = scopes.to_string();
        let mut pairs = vec![
            ("response_type", "code"),
            ("client_id", &self.client.id),
            ("redirect_uri", &self.redirect_uri),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("state", self.state.reveal()),
            ("resource", &self.found.resource),
        ];
        // An empty `scope` would request no scopes; leaving it out requests the default.
        if !scope.is_empty() {
            pairs.push(("scope", &scope));
        }
        // OpenID Connect Core 1.0, section 11: without it, a server has to ignore the request for a refresh token.
        if scopes.requests_refresh_token() {
            pairs.push(("prompt", "consent"));
        }
        // If the URL of the sign-in page already set one of our parameters, the server could read either of the two.
        let taken = form_urlencoded::parse(endpoint.query().unwrap_or_default().as_bytes());
        if taken
            .into_iter()
            .any(|(key, _)| key == "scope" || pairs.iter().any(|(ours, _)| *ours == key))
        {
            return Err(no(
                "has an authorization_endpoint whose query sets parameters that only the client may set",
            ));
        }
        endpoint
            .with_query(pairs)
            .map_err(|bad| no(&format!("has an invalid authorization_endpoint: {bad}")))
    }

    /// Validates the query of the redirect and returns the authorization code.
    ///
    /// Checks `state` and `iss` first: errors of an unknown sender are not shown.
    pub(super) fn validate_redirect(&self, query: &str) -> Result<Secret, AuthError> {
        let unsafe_ = |words: String| AuthError::new(AuthErrorKind::Unsafe, words);
        let all: Vec<_> = form_urlencoded::parse(query.as_bytes()).take(64).collect();
        let get = |key: &str| -> Result<Option<&str>, AuthError> {
            let mut found = all.iter().filter(|(name, _)| name == key);
            let first = found.next().map(|(_, value)| value.as_ref());
            match found.next() {
                Some(_) => Err(unsafe_(format!(
                    "the response to the sign-in contains {key} twice, so it is ambiguous; sign in again"
                ))),
                None => Ok(first),
            }
        };
        if !get("state")?.is_some_and(|state| self.state.matches(state)) {
            return Err(unsafe_(
                "the response does not belong to this sign-in: its state parameter is missing or differs; sign in again"
                    .to_owned(),
            ));
        }
        let issuer = &self.found.server.issuer;
        match get("iss")? {
            // RFC 9207, section 2.4: compared byte for byte, because similar issuers may be different ones.
            Some(iss) if iss != issuer => {
                return Err(unsafe_(format!(
                    "the response to the sign-in names another issuer than {}, so it may be forged; sign in again",
                    sanitize_for_display(issuer)
                )));
            }
            None if self.found.server.returns_iss => {
                return Err(unsafe_(format!(
                    "the response to the sign-in names no issuer (iss), although {} declares that it always does, so it may be forged; sign in again",
                    sanitize_for_display(issuer)
                )));
            }
            _ => {}
        }
        if let Some(error) = get("error")? {
            let mut why = sanitize_for_display(error);
            if let Some(words) = get("error_description")?.filter(|words| !words.is_empty()) {
                why = format!("{why}: {}", sanitize_for_display(words));
            }
            return Err(AuthError::new(
                AuthErrorKind::Refused,
                format!("the authorization server refused the sign-in: {why}"),
            ));
        }
        match get("code")? {
            Some(code) if !code.is_empty() => Ok(Secret::new(code)),
            _ => Err(AuthError::new(
                AuthErrorKind::Unreachable,
                "the response to the sign-in has no authorization code; sign in again",
            )),
        }
    }

    /// Redeems the authorization code at the token endpoint.
    pub(super) async fn redeem(
        &self,
        code: &Secret,
        endpoint: &TokenEndpoint<'_>,
    ) -> Result<TokenResponse, TokenEndpointError> {
        endpoint
            .request_token(&[
                ("grant_type", "authorization_code"),
                ("code", code.reveal()),
                ("redirect_uri", &self.redirect_uri),
                ("code_verifier", self.verifier.reveal()),
                ("resource", &self.found.resource),
            ])
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::super::{AuthorizationServerMetadata, ClientAuthentication};
    use super::*;

    fn found(change: impl FnOnce(&mut AuthorizationServerMetadata)) -> DiscoveredResource {
        let url = |text: &str| Url::parse(text).unwrap();
        let mut server = AuthorizationServerMetadata {
            issuer: "https://as.test".to_owned(),
            authorization_endpoint: Some(url("https://as.test/authorize?tenant=1")),
            token_endpoint: url("https://as.test/token"),
            registration_endpoint: None,
            revocation_endpoint: None,
            scopes: None,
            supports_s256: true,
            returns_iss: false,
            supports_client_documents: false,
            auth_methods: None,
            assertion_algorithms: None,
            supports_dpop: false,
        };
        change(&mut server);
        DiscoveredResource {
            resource: "https://a.test/mcp".to_owned(),
            scopes: None,
            requires_dpop: false,
            is_fallback: false,
            server,
        }
    }

    fn with<T>(
        change: impl FnOnce(&mut AuthorizationServerMetadata),
        then: impl FnOnce(&AuthorizationRequest<'_>) -> T,
    ) -> Result<T, AuthError> {
        let found = found(change);
        let client = RegisteredClient::new("me", ClientAuthentication::None);
        AuthorizationRequest::new(&found, &client, "http://127.0.0.1:1/callback")
            .map(|pending| then(&pending))
    }

    fn kind<T>(done: Result<T, AuthError>) -> Option<AuthErrorKind> {
        done.err().map(|error| error.kind())
    }

    /// Holds: AUTH-49.
    #[test]
    fn rejects_a_server_without_s256() {
        assert_eq!(
            kind(with(|server| server.supports_s256 = false, |_| ())),
            Some(AuthErrorKind::Unsafe)
        );
    }

    /// Holds: AUTH-27, AUTH-49, AUTH-54.
    #[test]
    fn authorization_url_contains_all_binding_parameters() {
        let url = with(
            |_| (),
            |pending| {
                pending
                    .authorization_url(&ScopeSet::parse("b a"), AddressPolicy::public())
                    .unwrap()
            },
        )
        .unwrap();
        let query = url.query().unwrap();
        for part in [
            "tenant=1&response_type=code",
            "client_id=me",
            "code_challenge_method=S256",
            "&state=",
            "resource=https%3A%2F%2Fa.test%2Fmcp",
            "scope=a+b",
        ] {
            assert!(query.contains(part), "{query}");
        }
        let url = with(
            |_| (),
            |pending| {
                pending
                    .authorization_url(&ScopeSet::default(), AddressPolicy::public())
                    .unwrap()
            },
        )
        .unwrap();
        assert!(!url.as_str().contains("scope") && !url.as_str().contains("prompt"));
        let url = with(
            |_| (),
            |pending| {
                pending
                    .authorization_url(
                        &ScopeSet::parse("a offline_access"),
                        AddressPolicy::public(),
                    )
                    .unwrap()
            },
        );
        assert!(
            url.unwrap()
                .as_str()
                .ends_with("scope=a+offline_access&prompt=consent")
        );
    }

    #[test]
    fn rejects_an_unsafe_authorization_endpoint() {
        for page in [
            "http://as.test/authorize",
            "http://127.0.0.1/authorize",
            "https://as.test/authorize?state=x",
            "https://as.test/authorize?redirect_uri=https://b.test",
        ] {
            let url = with(
                |server| server.authorization_endpoint = Some(Url::parse(page).unwrap()),
                |pending| pending.authorization_url(&ScopeSet::default(), AddressPolicy::public()),
            );
            assert_eq!(
                kind(url.unwrap()),
                Some(AuthErrorKind::Unsupported),
                "{page}"
            );
        }
    }

    /// Holds: AUTH-24, AUTH-25, AUTH-26, AUTH-54.
    #[test]
    fn t35_an_answer_of_somebody_else_is_not_used() {
        let check = |says_iss: bool, query: &str, expected: Option<AuthErrorKind>| {
            let code = with(
                |server| server.returns_iss = says_iss,
                |pending| {
                    pending.validate_redirect(&query.replace("STATE", pending.state.reveal()))
                },
            )
            .unwrap();
            let shown = code
                .as_ref()
                .err()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(!shown.contains("evil words"), "{query}: {shown}");
            assert_eq!(kind(code), expected, "{query}");
        };
        let bad = Some(AuthErrorKind::Unsafe);
        check(false, "code=x&state=STATE", None);
        check(false, "code=x&state=STATE&iss=https%3A%2F%2Fas.test", None);
        check(true, "code=x&state=STATE&iss=https%3A%2F%2Fas.test", None);
        check(true, "code=x&state=STATE", bad);
        for iss in [
            "https%3A%2F%2Fas.test%2F",
            "https%3A%2F%2FAS.test",
            "https%3A%2F%2Fas.test%3A443",
            "https%3A%2F%2Fevil.test",
            "",
        ] {
            check(false, &format!("code=x&state=STATE&iss={iss}"), bad);
            check(
                true,
                &format!("error=x&error_description=evil+words&state=STATE&iss={iss}"),
                bad,
            );
        }
        for state in ["", "STAT", "STATEX", "x"] {
            check(false, &format!("code=x&state={state}"), bad);
        }
        check(false, "code=x", bad);
        check(
            false,
            "error=access_denied&error_description=evil+words",
            bad,
        );
        check(false, "code=x&code=y&state=STATE", bad);
        check(false, "code=x&state=STATE&state=STATE", bad);
        check(
            false,
            "error=access_denied&state=STATE",
            Some(AuthErrorKind::Refused),
        );
        check(false, "state=STATE", Some(AuthErrorKind::Unreachable));
    }
}
