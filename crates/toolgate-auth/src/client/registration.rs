//! Client identities and dynamic client registration.
//!
//! The order is: the configured client, then the Client ID Metadata Document, then dynamic registration. An identity
//! belongs to one issuer and is never used with another.
//!
//! Source: the page on client registration; RFC 7591.

use super::{AuthError, AuthErrorKind, AuthorizationServerMetadata, error::sanitize_for_display};
use crate::{
    Secret, Url,
    fetch::{FetchRequest, PeerFetcher},
    jose::SigningKey,
};
use serde_json::json;
use std::sync::Arc;

/// Client authentication method at an OAuth token endpoint.
#[derive(Clone)]
#[non_exhaustive]
pub enum ClientAuthentication {
    /// Public client without a secret: the client id alone.
    None,
    /// Client secret, in the `Authorization` header or in the form, as the server supports.
    Secret(Secret),
    /// Client secret in the `Authorization` header (`client_secret_basic`).
    Basic(Secret),
    /// Client secret in the form (`client_secret_post`).
    Post(Secret),
    /// Assertion that a private key signs (`private_key_jwt`).
    Key(Arc<SigningKey>),
}

/// OAuth client registration at one authorization server: client id, authentication and redirect URI.
#[derive(Clone)]
#[non_exhaustive]
pub struct RegisteredClient {
    /// Client id at the authorization server.
    pub id: String,
    /// Client authentication method at the token endpoint.
    pub authentication: ClientAuthentication,
    /// Redirect URI that a dynamic registration stated.
    pub redirect_uri: Option<String>,
    /// Expiry of the client secret in seconds since the Unix epoch; `None` if it does not expire.
    pub secret_expires_at: Option<u64>,
}

impl RegisteredClient {
    /// Creates a client registration from a client id that the authorization server issued by other means.
    pub fn new(id: impl Into<String>, authentication: ClientAuthentication) -> RegisteredClient {
        RegisteredClient {
            id: id.into(),
            authentication,
            redirect_uri: None,
            secret_expires_at: None,
        }
    }
}

/// Returns a Client ID Metadata Document as JSON. You have to serve it publicly at its URL. `redirects` are the allowed
/// redirect URIs; the port of a loopback URI does not count.
///
/// # Errors
/// The URL cannot be a client id: it needs `https` and a path.
///
/// ```
/// # use toolgate_auth::{Url, client::client_document};
/// let url = Url::parse("https://app.example.com/client.json")?;
/// let document = client_document(&url, "App", &["http://127.0.0.1/callback"])?;
/// assert!(document.contains(r#""client_id":"https://app.example.com/client.json""#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn client_document(url: &Url, name: &str, redirects: &[&str]) -> Result<String, AuthError> {
    check_client_id_url(url)?;
    let document = json!({
        "client_id": url.as_str(),
        "client_name": name,
        "redirect_uris": redirects,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    });
    Ok(document.to_string())
}

fn check_client_id_url(document: &Url) -> Result<(), AuthError> {
    match document.is_https() && document.path() != "/" {
        true => Ok(()),
        false => Err(AuthError::new(
            AuthErrorKind::Unsafe,
            format!(
                "{} cannot be a client id: the URL of a client metadata document must use https and have a path",
                sanitize_for_display(document.as_str())
            ),
        )),
    }
}

/// Sources of the client identity.
#[derive(Clone, Default)]
pub(super) struct ClientIdentity {
    /// Configured client and the issuer that it belongs to; any issuer if `None`.
    pub(super) configured: Option<(Option<String>, RegisteredClient)>,
    /// URL of the Client ID Metadata Document.
    pub(super) document_url: Option<Url>,
    /// Client name.
    pub(super) name: String,
    /// True if refresh tokens are requested.
    pub(super) wants_refresh_token: bool,
    /// Instruction for a user who registers a client manually.
    pub(super) registration_hint: Option<String>,
}

impl ClientIdentity {
    /// Returns the configured client, the only identity for grants without a user.
    pub(super) fn configured_client(
        &self,
        issuer: &str,
    ) -> Result<Option<RegisteredClient>, AuthError> {
        match &self.configured {
            Some((Some(of), _)) if of != issuer => Err(AuthError::new(
                AuthErrorKind::Unsafe,
                format!(
                    "the configured client_id belongs to the authorization server {}, but the server now names {}; register a client there, or correct the URL of the server",
                    sanitize_for_display(of),
                    sanitize_for_display(issuer)
                ),
            )),
            Some((_, client)) => Ok(Some(client.clone())),
            None => Ok(None),
        }
    }

    /// Returns the issuer that the configured client belongs to, if set.
    pub(super) fn issuer(&self) -> Option<&str> {
        self.configured.as_ref()?.0.as_deref()
    }

    /// Returns the client identity at a server without registering.
    pub(super) fn without_registration(
        &self,
        server: &AuthorizationServerMetadata,
    ) -> Result<Option<RegisteredClient>, AuthError> {
        if let Some(client) = self.configured_client(&server.issuer)? {
            return Ok(Some(client));
        }
        let Some(document) = self
            .document_url
            .as_ref()
            .filter(|_| server.supports_client_documents)
        else {
            return Ok(None);
        };
        check_client_id_url(document)?;
        Ok(Some(RegisteredClient::new(
            document.as_str(),
            ClientAuthentication::None,
        )))
    }

    /// Returns whether an id is that of the configured client or of the Client ID Metadata Document.
    pub(super) fn is_own_id(&self, id: &str) -> bool {
        let given = self
            .configured
            .as_ref()
            .is_some_and(|(_, client)| client.id == id);
        given
            || self
                .document_url
                .as_ref()
                .is_some_and(|at| at.as_str() == id)
    }

    /// Returns the client identity at a server, registering dynamically if needed. `kept` is the stored registration.
    pub(super) async fn resolve(
        &self,
        server: &AuthorizationServerMetadata,
        redirect: &str,
        fetcher: &PeerFetcher,
        kept: Option<RegisteredClient>,
    ) -> Result<RegisteredClient, AuthError> {
        if let Some(client) = self.without_registration(server)? {
            return Ok(client);
        }
        let usable = |client: &RegisteredClient| {
            client.redirect_uri.as_deref() == Some(redirect)
                && client
                    .secret_expires_at
                    .is_none_or(|until| until > crate::clock::now())
        };
        if let Some(client) = kept.filter(usable) {
            return Ok(client);
        }
        let Some(endpoint) = &server.registration_endpoint else {
            let words = format!(
                "{} does not support dynamic client registration; {}",
                sanitize_for_display(&server.issuer),
                self.manual_registration(redirect)
            );
            return Err(AuthError::new(AuthErrorKind::Unsupported, words));
        };
        self.register(endpoint, server, redirect, fetcher).await
    }

    /// Returns the instruction for a user if dynamic registration is impossible.
    fn manual_registration(&self, redirect: &str) -> String {
        let set = self
            .registration_hint
            .as_deref()
            .unwrap_or("set its client_id");
        format!("register a client there with the redirect URI {redirect}, and {set}")
    }

    async fn register(
        &self,
        endpoint: &Url,
        server: &AuthorizationServerMetadata,
        redirect: &str,
        fetcher: &PeerFetcher,
    ) -> Result<RegisteredClient, AuthError> {
        let method = server.registration_auth_method();
        let mut kinds = vec!["authorization_code"];
        if self.wants_refresh_token {
            kinds.push("refresh_token");
        }
        let wanted = json!({
            "client_name": self.name,
            "redirect_uris": [redirect],
            "grant_types": kinds,
            "response_types": ["code"],
            "token_endpoint_auth_method": method,
            // A loopback redirect page counts as native, like a port that is open only during a sign-in.
            "application_type": if redirect.starts_with("https:") { "web" } else { "native" },
        });
        let fetched = fetcher
            .fetch(FetchRequest::json(endpoint.clone(), &wanted))
            .await?;
        let status = fetched.status;
        let answer = fetched.json().ok();
        let text = |key: &str| answer.as_ref()?.get(key)?.string();
        if !status.is_success() {
            let why = text("error_description")
                .or_else(|| text("error"))
                .unwrap_or_else(|| "no reason was given".to_owned());
            let words = format!(
                "{} refused to register this client (HTTP {}): {}; {}",
                endpoint.origin(),
                status.as_u16(),
                sanitize_for_display(&why),
                self.manual_registration(redirect)
            );
            return Err(AuthError::new(AuthErrorKind::Refused, words));
        }
        let malformed = |what: &str| {
            let words = format!(
                "the response from {} to the client registration has {what}; {}",
                endpoint.origin(),
                self.manual_registration(redirect)
            );
            AuthError::new(AuthErrorKind::Unreachable, words)
        };
        let id = text("client_id").filter(|id| !id.is_empty() && id.len() <= 2048);
        let id = id.ok_or_else(|| malformed("no valid client_id"))?;
        let secret = text("client_secret").map(Secret::new);
        let method = text("token_endpoint_auth_method").unwrap_or_else(|| method.to_owned());
        let authenticate = match (method.as_str(), secret) {
            ("none", _) => ClientAuthentication::None,
            ("client_secret_basic", Some(secret)) => ClientAuthentication::Basic(secret),
            ("client_secret_post", Some(secret)) => ClientAuthentication::Post(secret),
            _ => return Err(malformed("an unsupported client authentication method")),
        };
        let until = answer
            .as_ref()
            .and_then(|answer| answer.get("client_secret_expires_at")?.u64());
        Ok(RegisteredClient {
            id,
            authentication: authenticate,
            redirect_uri: Some(redirect.to_owned()),
            secret_expires_at: until.filter(|until| *until > 0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds: AUTH-40.
    #[test]
    fn client_document_has_all_required_members() {
        let at = Url::parse("https://app.test/client.json").unwrap();
        let document = client_document(&at, "App", &["http://127.0.0.1/callback"]).unwrap();
        let document: serde_json::Value = serde_json::from_str(&document).unwrap();
        assert_eq!(document["client_id"], at.as_str());
        assert_eq!(document["client_name"], "App");
        assert_eq!(
            document["redirect_uris"],
            json!(["http://127.0.0.1/callback"])
        );
        for wrong in ["http://app.test/client.json", "https://app.test"] {
            assert!(client_document(&Url::parse(wrong).unwrap(), "App", &[]).is_err());
        }
    }
}
