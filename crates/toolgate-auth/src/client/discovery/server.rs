//! Authorization server metadata.
//!
//! Source: RFC 8414, section 3; OpenID Connect Discovery 1.0, section 4; "Authorization Server Metadata Discovery" of
//! the specification, and the page on authorization of 2025-03-26.

use super::{
    super::{AuthError, AuthErrorKind, ScopeSet, error::shown},
    MetadataLookup, document, first, scopes, texts,
};
use crate::{
    Url,
    fetch::PeerFetcher,
    metadata::{OAUTH_METADATA_PATH, places},
};
use toolgate_wire::json::Json;

/// Authorization server metadata. Its `issuer` equals the issuer that was requested.
#[derive(Clone, Debug)]
pub(crate) struct AuthorizationServerMetadata {
    /// Issuer identifier, unchanged.
    pub issuer: String,
    /// Authorization endpoint, where a user signs in.
    pub authorization: Option<Url>,
    /// Token endpoint.
    pub token: Url,
    /// Endpoint of dynamic client registration (RFC 7591).
    pub registration: Option<Url>,
    /// Revocation endpoint (RFC 7009).
    pub revocation: Option<Url>,
    /// Supported scopes.
    pub scopes: Option<ScopeSet>,
    /// True if the server supports PKCE with `S256`.
    pub s256: bool,
    /// True if every authorization response contains `iss` (RFC 9207).
    pub says_iss: bool,
    /// True if the server supports Client ID Metadata Documents.
    pub takes_documents: bool,
    /// Client authentication methods of the token endpoint, if listed.
    pub methods: Option<Vec<String>>,
    /// Signature algorithms of client assertions at the token endpoint, if listed.
    pub algorithms: Option<Vec<String>>,
    /// True if the server issues DPoP-bound tokens for ES256 keys (RFC 9449).
    pub binds: bool,
}

impl AuthorizationServerMetadata {
    /// Returns the authentication method for a new registration. It prefers `none`: a public client has no secret to
    /// leak.
    pub(in super::super) fn method_for_new_client(&self) -> &'static str {
        let known = |method: &&str| self.has_method(method);
        let ours = ["none", "client_secret_basic", "client_secret_post"];
        ours.into_iter().find(known).unwrap_or("none")
    }

    /// Returns whether the server supports an authentication method. The default without a list is
    /// `client_secret_basic`.
    pub(in super::super) fn has_method(&self, method: &str) -> bool {
        match &self.methods {
            Some(all) => all.iter().any(|known| known == method),
            None => method == "client_secret_basic",
        }
    }
}

/// Fetches the metadata of an issuer from the well-known URLs in the order of the specification. Returns `None` if the
/// issuer states that it has none.
pub(in super::super) async fn find(
    fetcher: &PeerFetcher,
    issuer: &str,
) -> Result<Option<AuthorizationServerMetadata>, AuthError> {
    let url = Url::parse(issuer).ok().filter(|url| url.query().is_none());
    let url = url.ok_or_else(|| {
        let words = format!(
            "the authorization server {:?} is not a valid URL",
            shown(issuer)
        );
        AuthError::new(AuthErrorKind::Unsupported, words)
    })?;
    match first(fetcher, places(&url)).await? {
        MetadataLookup::There(json) => read(&json, issuer).map(Some),
        MetadataLookup::Absent => Ok(None),
        MetadataLookup::Unclear(error) => Err(error),
    }
}

/// Fetches metadata from the origin of the MCP server (first fallback of 2025-03-26).
pub(super) async fn at_origin(
    fetcher: &PeerFetcher,
    server: &Url,
) -> Result<MetadataLookup<AuthorizationServerMetadata>, AuthError> {
    let json = match document(fetcher, own(server, OAUTH_METADATA_PATH)?).await? {
        MetadataLookup::There(json) => json,
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
    read(&json, issuer).map(MetadataLookup::There)
}

/// Returns the default endpoints of a server without metadata (second fallback of 2025-03-26).
pub(super) fn without_words(server: &Url) -> Result<AuthorizationServerMetadata, AuthError> {
    Ok(AuthorizationServerMetadata {
        authorization: Some(own(server, "/authorize")?),
        token: own(server, "/token")?,
        registration: Some(own(server, "/register")?),
        revocation: None,
        scopes: None,
        // 2025-03-26 requires PKCE of all clients and servers.
        s256: true,
        says_iss: false,
        takes_documents: false,
        methods: Some(vec!["none".to_owned()]),
        algorithms: None,
        binds: false,
        issuer: server.origin(),
    })
}

fn own(server: &Url, path: &str) -> Result<Url, AuthError> {
    let url = server.at(path);
    url.map_err(|bad| AuthError::new(AuthErrorKind::Unsupported, bad.to_string()))
}

fn read(json: &Json, issuer: &str) -> Result<AuthorizationServerMetadata, AuthError> {
    let said = json
        .get("issuer")
        .and_then(|issuer| issuer.string())
        .unwrap_or_default();
    if said != issuer {
        let words = format!(
            "the metadata of the authorization server {} names another issuer, {:?}; it is not used",
            shown(issuer),
            shown(&said)
        );
        return Err(AuthError::new(AuthErrorKind::Unsafe, words));
    }
    let broken = |what: &str| {
        let words = format!(
            "the metadata of the authorization server {} has {what}",
            shown(issuer)
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
        texts(json, key).is_some_and(|all| all.iter().any(|one| one == wanted))
    };
    let is = |key: &str| json.get(key).and_then(|value| value.bool()) == Some(true);
    Ok(AuthorizationServerMetadata {
        issuer: said,
        authorization: url("authorization_endpoint")?,
        token: url("token_endpoint")?.ok_or_else(|| broken("no token_endpoint"))?,
        registration: url("registration_endpoint")?,
        revocation: url("revocation_endpoint")?,
        scopes: scopes(json),
        s256: has("code_challenge_methods_supported", "S256"),
        says_iss: is("authorization_response_iss_parameter_supported"),
        takes_documents: is("client_id_metadata_document_supported"),
        methods: texts(json, "token_endpoint_auth_methods_supported"),
        algorithms: texts(json, "token_endpoint_auth_signing_alg_values_supported"),
        binds: has("dpop_signing_alg_values_supported", "ES256"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Holds: AUTH-09, AUTH-10, AUTH-11.
    #[test]
    fn places_are_tried_in_the_order_of_the_specification() {
        let places = |text: &str| {
            places(&Url::parse(text).unwrap())
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
            let error = read(&json, issuer).err().unwrap();
            assert_eq!(error.kind(), AuthErrorKind::Unsafe, "{said}");
        }
        let json =
            Json::from_value(&json!({"issuer": issuer, "token_endpoint": "https://a.test/token"}));
        assert!(read(&json, issuer).is_ok());
        for bad in [json!("javascript:alert(1)"), json!("/token"), json!(null)] {
            let json = Json::from_value(&json!({"issuer": issuer, "token_endpoint": bad}));
            assert!(read(&json, issuer).is_err());
        }
    }
}
