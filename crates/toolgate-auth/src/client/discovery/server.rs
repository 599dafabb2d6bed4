//! Authorization server metadata.
//!
//! Source: RFC 8414, section 3; OpenID Connect Discovery 1.0, section 4; "Authorization Server Metadata Discovery" of
//! the specification, and the page on authorization of 2025-03-26.

use super::{
    super::{AuthError, AuthErrorKind, ScopeSet, error::sanitize_for_display},
    MetadataLookup, fetch_document, fetch_first, string_array, supported_scopes,
};
use crate::{
    Url,
    fetch::PeerFetcher,
    metadata::{OAUTH_METADATA_PATH, metadata_urls},
};
use toolgate_protocol::json::Json;

/// Authorization server metadata. Its `issuer` equals the issuer that was requested.
#[derive(Clone, Debug)]
pub(crate) struct AuthorizationServerMetadata {
    /// Issuer identifier of the authorization server, unchanged.
    pub issuer: String,
    /// Authorization endpoint of the server, where a user signs in.
    pub authorization_endpoint: Option<Url>,
    /// Token endpoint of the authorization server.
    pub token_endpoint: Url,
    /// Dynamic client registration endpoint of the authorization server (RFC 7591).
    pub registration_endpoint: Option<Url>,
    /// Token revocation endpoint of the authorization server (RFC 7009).
    pub revocation_endpoint: Option<Url>,
    /// Scopes that the authorization server supports.
    pub scopes: Option<ScopeSet>,
    /// True if the server supports PKCE with `S256`.
    pub supports_s256: bool,
    /// True if every authorization response contains `iss` (RFC 9207).
    pub returns_iss: bool,
    /// True if the authorization server supports Client ID Metadata Documents.
    pub supports_client_documents: bool,
    /// Client authentication methods of the token endpoint, if listed.
    pub auth_methods: Option<Vec<String>>,
    /// Signature algorithms of client assertions at the token endpoint, if listed.
    pub assertion_algorithms: Option<Vec<String>>,
    /// True if the server issues DPoP-bound tokens for ES256 keys (RFC 9449).
    pub supports_dpop: bool,
}

impl AuthorizationServerMetadata {
    /// Returns the authentication method for a new registration. It prefers `none`: a public client has no secret to
    /// leak.
    pub(in super::super) fn registration_auth_method(&self) -> &'static str {
        let known = |method: &&str| self.supports_auth_method(method);
        let ours = ["none", "client_secret_basic", "client_secret_post"];
        ours.into_iter().find(known).unwrap_or("none")
    }

    /// Returns whether the server supports an authentication method. The default without a list is
    /// `client_secret_basic`.
    pub(in super::super) fn supports_auth_method(&self, method: &str) -> bool {
        match &self.auth_methods {
            Some(all) => all.iter().any(|known| known == method),
            None => method == "client_secret_basic",
        }
    }
}

/// Fetches the metadata of an issuer from the well-known URLs in the order of the specification. Returns `None` if the
/// issuer states that it has none.
pub(in super::super) async fn fetch_issuer_metadata(
    fetcher: &PeerFetcher,
    issuer: &str,
) -> Result<Option<AuthorizationServerMetadata>, AuthError> {
    let url = Url::parse(issuer).ok().filter(|url| url.query().is_none());
    let url = url.ok_or_else(|| {
        let words = format!(
            "the URL of the authorization server, {:?}, is invalid or has a query; correct the configured issuer, or ask the operator of the MCP server",
            sanitize_for_display(issuer)
        );
        AuthError::new(AuthErrorKind::Unsupported, words)
    })?;
    match fetch_first(fetcher, metadata_urls(&url)).await? {
        MetadataLookup::Found(json) => parse_metadata(&json, issuer).map(Some),
        MetadataLookup::Absent => Ok(None),
        MetadataLookup::Unclear(error) => Err(error),
    }
}

/// Fetches metadata from the origin of the MCP server (first fallback of 2025-03-26).
pub(super) async fn fetch_at_origin(
    fetcher: &PeerFetcher,
    server: &Url,
) -> Result<MetadataLookup<AuthorizationServerMetadata>, AuthError> {
    let json = match fetch_document(fetcher, endpoint_at(server, OAUTH_METADATA_PATH)?).await? {
        MetadataLookup::Found(json) => json,
        MetadataLookup::Absent => return Ok(MetadataLookup::Absent),
        MetadataLookup::Unclear(error) => return Ok(MetadataLookup::Unclear(error)),
    };
    // Some issuers are written with a trailing slash; both forms are the same origin.
    let said = json.get("issuer").and_then(|issuer| issuer.string());
    let (origin, slashed) = (server.origin(), format!("{}/", server.origin()));
    let issuer = if said.as_ref() == Some(&slashed) {
        &slashed
    } else {
        &origin
    };
    parse_metadata(&json, issuer).map(MetadataLookup::Found)
}

/// Returns the default endpoints of a server without metadata (second fallback of 2025-03-26).
pub(super) fn default_endpoints(server: &Url) -> Result<AuthorizationServerMetadata, AuthError> {
    Ok(AuthorizationServerMetadata {
        authorization_endpoint: Some(endpoint_at(server, "/authorize")?),
        token_endpoint: endpoint_at(server, "/token")?,
        registration_endpoint: Some(endpoint_at(server, "/register")?),
        revocation_endpoint: None,
        scopes: None,
        // 2025-03-26 requires PKCE of all clients and servers.
        supports_s256: true,
        returns_iss: false,
        supports_client_documents: false,
        auth_methods: Some(vec!["none".to_owned()]),
        assertion_algorithms: None,
        supports_dpop: false,
        issuer: server.origin(),
    })
}

fn endpoint_at(server: &Url, path: &str) -> Result<Url, AuthError> {
    let url = server.with_path(path);
    url.map_err(|bad| AuthError::new(AuthErrorKind::Unsupported, bad.to_string()))
}

pub(in super::super) fn parse_metadata(
    json: &Json,
    issuer: &str,
) -> Result<AuthorizationServerMetadata, AuthError> {
    let said = json
        .get("issuer")
        .and_then(|issuer| issuer.string())
        .unwrap_or_default();
    if said != issuer {
        let words = format!(
            "the metadata of the authorization server {} names another issuer, {:?}, so it cannot be trusted; check the URL of the authorization server",
            sanitize_for_display(issuer),
            sanitize_for_display(&said)
        );
        return Err(AuthError::new(AuthErrorKind::Unsafe, words));
    }
    let broken = |what: &str| {
        let words = format!(
            "the metadata of the authorization server {} has {what}, so sign-in there is impossible; the operator of the authorization server has to correct it",
            sanitize_for_display(issuer)
        );
        AuthError::new(AuthErrorKind::Unsupported, words)
    };
    let url = |key: &str| -> Result<Option<Url>, AuthError> {
        let Some(text) = json.get(key).and_then(|url| url.string()) else {
            return Ok(None);
        };
        let bad = |bad| broken(&format!("an invalid {key}: {bad}"));
        Url::parse(&text).map(Some).map_err(bad)
    };
    let has = |key: &str, wanted: &str| {
        string_array(json, key).is_some_and(|all| all.iter().any(|one| one == wanted))
    };
    let is = |key: &str| json.get(key).and_then(|value| value.bool()) == Some(true);
    Ok(AuthorizationServerMetadata {
        issuer: said,
        authorization_endpoint: url("authorization_endpoint")?,
        token_endpoint: url("token_endpoint")?.ok_or_else(|| broken("no token_endpoint"))?,
        registration_endpoint: url("registration_endpoint")?,
        revocation_endpoint: url("revocation_endpoint")?,
        scopes: supported_scopes(json),
        supports_s256: has("code_challenge_methods_supported", "S256"),
        returns_iss: is("authorization_response_iss_parameter_supported"),
        supports_client_documents: is("client_id_metadata_document_supported"),
        auth_methods: string_array(json, "token_endpoint_auth_methods_supported"),
        assertion_algorithms: string_array(
            json,
            "token_endpoint_auth_signing_alg_values_supported",
        ),
        supports_dpop: has("dpop_signing_alg_values_supported", "ES256"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Holds: AUTH-09, AUTH-10, AUTH-11.
    #[test]
    fn metadata_urls_follow_the_order_of_the_specification() {
        let places = |text: &str| {
            metadata_urls(&Url::parse(text).unwrap())
                .iter()
                .map(|p| p.path().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            places("https://a.test/tenant1"),
            [
                "/.well-known/oauth-authorization-server/tenant1",
                "/.well-known/openid-configuration/tenant1",
                "/tenant1/.well-known/openid-configuration",
            ]
        );
        let root = [
            "/.well-known/oauth-authorization-server",
            "/.well-known/openid-configuration",
        ];
        assert_eq!(places("https://a.test"), root);
        assert_eq!(places("https://a.test/"), root);
    }

    /// Holds: AUTH-12.
    #[test]
    fn t35_metadata_of_another_issuer_is_not_used() {
        let issuer = "https://a.test/x";
        for said in [
            "https://a.test/x/",
            "https://A.test/x",
            "https://a.test:443/x",
            "http://a.test/x",
            "https://b.test/x",
            "https://a.test/X",
            "",
        ] {
            let json = Json::from_value(
                &json!({"issuer": said, "token_endpoint": "https://a.test/token"}),
            );
            let error = parse_metadata(&json, issuer).err().unwrap();
            assert_eq!(error.kind(), AuthErrorKind::Unsafe, "{said}");
        }
        let json =
            Json::from_value(&json!({"issuer": issuer, "token_endpoint": "https://a.test/token"}));
        assert!(parse_metadata(&json, issuer).is_ok());
        for bad in [json!("javascript:alert(1)"), json!("/token"), json!(null)] {
            let json = Json::from_value(&json!({"issuer": issuer, "token_endpoint": bad}));
            assert!(parse_metadata(&json, issuer).is_err());
        }
    }
}
