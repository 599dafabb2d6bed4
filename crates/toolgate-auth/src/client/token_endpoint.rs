//! Token endpoint requests with client authentication, for every grant type.
//!
//! Source: RFC 6749, sections 2.3.1, 5.1 and 5.2; RFC 7523, section 2.2.

use super::{
    AuthError, AuthErrorKind, AuthorizationServerMetadata, ClientAuthentication, RegisteredClient,
    dpop::{DPOP_HEADER, DpopKey, USE_DPOP_NONCE},
    error::sanitize_for_display,
    pkce::random_token,
    tokens::TokenResponse,
};
use crate::{
    Secret, Url,
    clock::now,
    fetch::{FetchRequest, PeerFetcher},
    jose::SigningKey,
    metadata,
};
use http::header;
use serde_json::json;
use std::collections::HashSet;
use toolgate_protocol::json::Json;

/// Client authentication method with a signed assertion.
const PRIVATE_KEY_JWT: &str = "private_key_jwt";
const CLIENT_ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// Lifetime of a client assertion in seconds.
const CLIENT_ASSERTION_SECONDS: u64 = 60;
/// Form parameters whose values are secrets between client and endpoint.
const SECRET_PARAMETERS: &[&str] = &[
    "actor_token",
    "assertion",
    "client_assertion",
    "client_secret",
    "code",
    "code_verifier",
    "refresh_token",
    "subject_token",
    "token",
];
/// Minimum length in bytes of a fragment of a secret that counts as a leak. A shorter one may match by chance.
const MIN_LEAK_BYTES: usize = 16;

/// Error response of a token endpoint.
pub(super) struct TokenEndpointError {
    pub(super) error: AuthError,
    /// OAuth error code, such as `invalid_grant`; absent if the response is not an OAuth error.
    pub(super) code: Option<String>,
}

impl<E: Into<AuthError>> From<E> for TokenEndpointError {
    fn from(error: E) -> TokenEndpointError {
        TokenEndpointError {
            error: error.into(),
            code: None,
        }
    }
}

/// Token endpoint and the client that uses it.
pub(super) struct TokenEndpoint<'a> {
    pub(super) url: &'a Url,
    /// Issuer identifier; the `aud` claim of client assertions.
    pub(super) issuer: &'a str,
    pub(super) basic: bool,
    pub(super) client: &'a RegisteredClient,
    pub(super) fetcher: &'a PeerFetcher,
    pub(super) binding: Option<&'a DpopKey>,
    /// Metadata of the authorization server, if it publishes any.
    pub(super) server: Option<&'a AuthorizationServerMetadata>,
}

impl<'a> TokenEndpoint<'a> {
    pub(super) fn from_metadata(
        server: &'a AuthorizationServerMetadata,
        client: &'a RegisteredClient,
        fetcher: &'a PeerFetcher,
        binding: Option<&'a DpopKey>,
    ) -> TokenEndpoint<'a> {
        TokenEndpoint {
            url: &server.token_endpoint,
            issuer: &server.issuer,
            basic: server.supports_auth_method("client_secret_basic")
                || !server.supports_auth_method("client_secret_post"),
            client,
            fetcher,
            binding,
            server: Some(server),
        }
    }

    /// Sends a token request with client authentication, and with a DPoP proof if a binding is set.
    pub(super) async fn request_token(
        &self,
        form: &[(&str, &str)],
    ) -> Result<TokenResponse, TokenEndpointError> {
        let mut again = self.binding.is_some();
        loop {
            let request = self.build_request(form)?;
            let sent = self.secret_values(&request);
            let fetched = self.fetcher.fetch(request).await?;
            let new = self
                .binding
                .is_some_and(|binding| binding.store_nonce(&self.url.origin(), &fetched.headers));
            let status = fetched.status;
            let json = fetched.json();
            if status.is_success() {
                let read = json.map_err(AuthError::from).and_then(|json| {
                    let malformed = |what| {
                        AuthError::new(
                            AuthErrorKind::Unreachable,
                            format!("the token response from {} {what}", self.url.origin()),
                        )
                    };
                    TokenResponse::parse(&json).map_err(malformed)
                });
                return Ok(read?);
            }
            let said = (status.as_u16(), json.ok());
            let no = rejection_error(self.url, "refused to issue a token", &said, &sent);
            if again && new && no.code.as_deref() == Some(USE_DPOP_NONCE) {
                again = false;
                continue;
            }
            return Err(no);
        }
    }

    /// Sends a form to an endpoint whose success response carries no token, such as revocation.
    pub(super) async fn send_form(&self, form: &[(&str, &str)]) -> Result<(), AuthError> {
        let request = self.build_request(form)?;
        let sent = self.secret_values(&request);
        let fetched = self.fetcher.fetch(request).await?;
        let status = fetched.status;
        if status.is_success() {
            return Ok(());
        }
        let said = (status.as_u16(), fetched.json().ok());
        Err(rejection_error(self.url, "refused the request", &said, &sent).error)
    }

    /// Returns the secrets of a request, which error messages must not repeat.
    fn secret_values(&self, request: &FetchRequest) -> Vec<Secret> {
        let form = form_urlencoded::parse(&request.body);
        let form = form.filter(|(key, _)| SECRET_PARAMETERS.contains(&key.as_ref()));
        let mut all: Vec<Secret> = form
            .map(|(_, value)| Secret::new(value.into_owned()))
            .collect();
        if let ClientAuthentication::Secret(secret)
        | ClientAuthentication::Basic(secret)
        | ClientAuthentication::Post(secret) = &self.client.authentication
        {
            all.push(secret.clone());
        }
        let header = request.headers.get(header::AUTHORIZATION);
        let header = header.and_then(|value| value.to_str().ok()?.strip_prefix("Basic "));
        all.extend(header.map(Secret::new));
        all
    }

    /// Checks that the server supports `private_key_jwt` with the algorithm of the key. Passes if it publishes no list.
    fn check_key_support(&self, key: &SigningKey) -> Result<(), AuthError> {
        let Some(server) = self.server else {
            return Ok(());
        };
        let lacks = |all: &Option<Vec<String>>, ours: &str| {
            all.as_ref()
                .is_some_and(|all| !all.iter().any(|one| one == ours))
        };
        let algorithm = key.algorithm().name();
        let what = match () {
            () if lacks(&server.auth_methods, PRIVATE_KEY_JWT) => PRIVATE_KEY_JWT.to_owned(),
            () if lacks(&server.assertion_algorithms, algorithm) => {
                format!("{PRIVATE_KEY_JWT} with {algorithm}")
            }
            () => return Ok(()),
        };
        let words = format!(
            "the authorization server {} does not list {what} among its client authentication methods; configure a client with another method",
            sanitize_for_display(self.issuer)
        );
        Err(AuthError::new(AuthErrorKind::Unsupported, words))
    }

    fn build_request(&self, form: &[(&str, &str)]) -> Result<FetchRequest, AuthError> {
        let id = self.client.id.as_str();
        let mut form = form.to_vec();
        let mut basic = None;
        let assertion;
        match &self.client.authentication {
            ClientAuthentication::None => form.push(("client_id", id)),
            ClientAuthentication::Secret(secret) | ClientAuthentication::Basic(secret)
                if self.is_basic() =>
            {
                basic = Some(secret);
            }
            ClientAuthentication::Secret(secret)
            | ClientAuthentication::Basic(secret)
            | ClientAuthentication::Post(secret) => {
                form.push(("client_id", id));
                form.push(("client_secret", secret.reveal()));
            }
            ClientAuthentication::Key(key) => {
                self.check_key_support(key)?;
                let claims = json!({
                    "iss": id, "sub": id, "aud": self.issuer, "jti": random_token()?, "iat": now(), "exp": now() + CLIENT_ASSERTION_SECONDS,
                });
                let signed = key.sign(json!({"typ": "JWT"}), &claims);
                assertion =
                    signed.map_err(|bad| AuthError::new(AuthErrorKind::Store, bad.to_string()))?;
                form.push(("client_id", id));
                form.push(("client_assertion_type", CLIENT_ASSERTION_TYPE));
                form.push(("client_assertion", &assertion));
            }
        }
        let mut request = FetchRequest::form(self.url.clone(), form);
        if let Some(secret) = basic {
            let words = "the client_id or client_secret contains characters that an HTTP header cannot contain; correct the two values";
            let value = metadata::basic_authorization(id, secret)
                .ok_or_else(|| AuthError::new(AuthErrorKind::Store, words))?;
            request.headers.insert(header::AUTHORIZATION, value);
        }
        if let Some(binding) = self.binding {
            request
                .headers
                .insert(DPOP_HEADER, binding.proof("POST", self.url, None)?);
        }
        Ok(request)
    }

    fn is_basic(&self) -> bool {
        self.basic || matches!(self.client.authentication, ClientAuthentication::Basic(_))
    }
}

/// Builds the error of a rejected token request. It quotes the text of the endpoint, unless that repeats a secret of
/// the request: callers of a gateway read the message.
fn rejection_error(
    url: &Url,
    what: &str,
    said: &(u16, Option<Json>),
    sent: &[Secret],
) -> TokenEndpointError {
    let (status, json) = said;
    let text = |key: &str| json.as_ref().and_then(|json| json.get(key)?.string());
    let code = text("error");
    let said = match (&code, text("error_description")) {
        (Some(code), Some(words)) => format!(
            "{}: {}",
            sanitize_for_display(code),
            sanitize_for_display(&words)
        ),
        (Some(code), None) => sanitize_for_display(code),
        (None, _) => "no reason was given".to_owned(),
    };
    let said = match sent
        .iter()
        .any(|secret| leaks_secret(&said, secret.reveal()))
    {
        true => "the message is not shown, because it repeats a secret from the request".to_owned(),
        false => said,
    };
    let kind = match status {
        429 => AuthErrorKind::LimitReached,
        400..500 => AuthErrorKind::Refused,
        _ => AuthErrorKind::Unreachable,
    };
    let advice = match code.as_deref() {
        Some("invalid_client" | "unauthorized_client") => {
            "; correct the client_id and its secret or key"
        }
        Some("invalid_scope") => "; correct the scopes",
        _ if *status >= 500 || *status == 429 => "; try again later",
        _ => "",
    };
    let words = format!("{} {what} (HTTP {status}): {said}{advice}", url.origin());
    TokenEndpointError {
        error: AuthError::new(kind, words),
        code,
    }
}

/// Returns whether a text contains a secret or a fragment of one.
fn leaks_secret(text: &str, secret: &str) -> bool {
    if secret.len() <= MIN_LEAK_BYTES {
        return !secret.is_empty() && text.contains(secret);
    }
    let parts: HashSet<&[u8]> = text.as_bytes().windows(MIN_LEAK_BYTES).collect();
    let mut own = secret.as_bytes().windows(MIN_LEAK_BYTES);
    own.any(|part| parts.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds: AUTH-35.
    #[test]
    fn detects_leaked_secrets_and_fragments() {
        let token = "0123456789abcdef0123456789ABCDEF";
        for text in [
            token,
            "the token '0123456789abcdef0123456789ABCDEF' is over",
            "of 6789abcdef012345 only",
        ] {
            assert!(leaks_secret(text, token), "{text}");
        }
        assert!(leaks_secret("code s3cret is over", "s3cret"));
        for (text, secret) in [
            ("the token is over", token),
            ("0123456789abcde and 3456789ABCDEF", token),
            ("nothing was sent", ""),
        ] {
            assert!(!leaks_secret(text, secret), "{text}");
        }
    }
}
