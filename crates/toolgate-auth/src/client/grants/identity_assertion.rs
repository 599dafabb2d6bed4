//! Enterprise-managed authorization: an identity provider exchanges the ID token of a user for an assertion (ID-JAG)
//! that the authorization server of an MCP server accepts.
//!
//! Source: the extension `io.modelcontextprotocol/enterprise-managed-authorization`; RFC 8693; RFC 7523.

use super::{
    super::{
        AuthError, DiscoveredResource, RegisteredClient, ScopeSet,
        error::sanitize_for_display,
        token_endpoint::{TokenEndpoint, TokenEndpointError},
        tokens::TokenResponse,
    },
    AssertionSource, TOKEN_EXCHANGE_GRANT, jwt_bearer, unsafe_response,
};
use crate::{
    Url,
    fetch::{FetchLimits, PeerFetcher},
    jose,
};
use toolgate_protocol::json::{Json, JsonLimits};

const ID_TOKEN_TYPE: &str = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG_TOKEN_TYPE: &str = "urn:ietf:params:oauth:token-type:id-jag";
/// `typ` header of an identity assertion authorization grant (ID-JAG).
const ID_JAG_HEADER_TYPE: &str = "oauth-id-jag+jwt";

/// Enterprise-managed authorization: identity assertion grant (ID-JAG) for a user at an identity provider.
///
/// ```
/// use toolgate_auth::{
///     Secret, Url,
///     client::{AssertionSource, ClientAuthentication, EnterpriseAuthorization, OAuthClient, RegisteredClient},
/// };
///
/// // Who we are at the identity provider, and at the authorization server of the tool.
/// let there = RegisteredClient::new("my-app", ClientAuthentication::Secret(Secret::new("s3cret")));
/// let here = RegisteredClient::new("my-app-for-tools", ClientAuthentication::Secret(Secret::new("0ther")));
/// let id_token = AssertionSource::file("/run/my-app/id-token");
/// let provider = Url::parse("https://sso.example.com/token")?;
/// let login = OAuthClient::builder(Url::parse("https://tools.example.com/mcp")?)
///     .client(Some("https://login.tools.example.com"), here)
///     .enterprise(EnterpriseAuthorization::new(provider, there, id_token))
///     .build();
/// # drop(login);
/// # Ok::<(), toolgate_auth::InvalidUrl>(())
/// ```
#[derive(Clone)]
pub struct EnterpriseAuthorization {
    endpoint: Url,
    client: RegisteredClient,
    id_token: AssertionSource,
}

impl EnterpriseAuthorization {
    /// Creates the identity assertion grant for the user of an enterprise identity provider. It needs the token
    /// endpoint of the identity provider, our client there, and the ID token of the user's sign-in there.
    pub fn new(
        endpoint: Url,
        client: RegisteredClient,
        id_token: impl Into<AssertionSource>,
    ) -> EnterpriseAuthorization {
        EnterpriseAuthorization {
            endpoint,
            client,
            id_token: id_token.into(),
        }
    }

    pub(in super::super) async fn request_token(
        &self,
        found: &DiscoveredResource,
        scopes: &ScopeSet,
        endpoint: &TokenEndpoint<'_>,
    ) -> Result<TokenResponse, TokenEndpointError> {
        let assertion = self.exchange(found, scopes).await?;
        let text = assertion.access_token.reveal();
        check_assertion(text, &found.server.issuer, &endpoint.client.id)?;
        jwt_bearer(found, scopes, text, endpoint).await
    }

    async fn exchange(
        &self,
        found: &DiscoveredResource,
        scopes: &ScopeSet,
    ) -> Result<TokenResponse, TokenEndpointError> {
        let fetcher = PeerFetcher::for_operator_url(&self.endpoint, FetchLimits::default());
        let provider = TokenEndpoint {
            url: &self.endpoint,
            issuer: self.endpoint.as_str(),
            basic: true,
            client: &self.client,
            fetcher: &fetcher,
            binding: None,
            server: None,
        };
        let (id_token, scopes) = (self.id_token.get().await?, scopes.to_string());
        let mut form = vec![
            ("grant_type", TOKEN_EXCHANGE_GRANT),
            ("requested_token_type", ID_JAG_TOKEN_TYPE),
            ("audience", found.server.issuer.as_str()),
            ("resource", found.resource.as_str()),
            ("subject_token", id_token.reveal()),
            ("subject_token_type", ID_TOKEN_TYPE),
        ];
        if !scopes.is_empty() {
            form.push(("scope", &scopes));
        }
        let answer = provider.request_token(&form).await?;
        if answer.issued_token_type.as_deref() != Some(ID_JAG_TOKEN_TYPE) {
            let words = format!(
                "the identity provider {} issued another type of token than the requested identity assertion (ID-JAG); enable identity assertions there",
                self.endpoint.origin()
            );
            return Err(unsafe_response(words).into());
        }
        Ok(answer)
    }
}

/// Checks that an assertion names the right issuer and client. Its signature is for the authorization server to verify.
fn check_assertion(assertion: &str, issuer: &str, client: &str) -> Result<(), AuthError> {
    let mut parts = assertion.split('.').map(|part| {
        let bytes = jose::decode(part)?;
        Json::read(bytes, &JsonLimits::default()).ok()
    });
    let header = parts.next().flatten();
    let claims = parts.next().flatten();
    let text =
        |json: &Option<Json>, key: &str| json.as_ref().and_then(|json| json.get(key)?.string());
    let (kind, aud, of) = (
        text(&header, "typ"),
        text(&claims, "aud"),
        text(&claims, "client_id"),
    );
    if kind.as_deref() != Some(ID_JAG_HEADER_TYPE) {
        return Err(unsafe_response(
            "the identity provider issued a token that is not an identity assertion (ID-JAG); enable identity assertions there".to_owned(),
        ));
    }
    if aud.as_deref() != Some(issuer) {
        let words = format!(
            "the identity assertion (ID-JAG) from the identity provider is not for {}: the aud claim names another authorization server; correct the audience at the identity provider",
            sanitize_for_display(issuer)
        );
        return Err(unsafe_response(words));
    }
    if of.as_deref() != Some(client) {
        let words = "the identity assertion (ID-JAG) from the identity provider is for another client_id than the configured one; correct one of the two";
        return Err(unsafe_response(words.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Holds: XAUTH-02.
    #[test]
    fn rejects_an_assertion_for_another_party() {
        let with = |typ: &str, aud: &str, client: &str| {
            let part = |value: serde_json::Value| jose::encode(value.to_string());
            let text = format!(
                "{}.{}.x",
                part(json!({"typ": typ})),
                part(json!({"aud": aud, "client_id": client}))
            );
            check_assertion(&text, "https://as.test", "me").is_ok()
        };
        assert!(with(ID_JAG_HEADER_TYPE, "https://as.test", "me"));
        assert!(!with("JWT", "https://as.test", "me"));
        assert!(!with(ID_JAG_HEADER_TYPE, "https://as.test/", "me"));
        assert!(!with(ID_JAG_HEADER_TYPE, "https://as.test", "you"));
        assert!(check_assertion("x", "https://as.test", "me").is_err());
    }
}
