//! Protected resource metadata.
//!
//! Source: RFC 9728, sections 3 and 5; "Protected Resource Metadata Discovery Requirements" of the specification.

use super::{
    super::{AuthError, AuthErrorKind, ScopeSet, error::sanitize_for_display},
    MetadataLookup, fetch_document, fetch_first, string_array, supported_scopes,
};
use crate::{Url, fetch::PeerFetcher, metadata::RESOURCE_METADATA_PATH};
use toolgate_protocol::json::Json;

/// Protected resource metadata of a server.
pub(in super::super) struct ResourceMetadata {
    pub(super) resource: String,
    pub(super) issuers: Vec<String>,
    pub(super) scopes: Option<ScopeSet>,
    pub(super) requires_dpop: bool,
}

/// Fetches the metadata from the URL of the challenge, else from the well-known URL of the path, else of the root.
pub(super) async fn fetch_resource_metadata(
    fetcher: &PeerFetcher,
    server: &Url,
    hint: Option<&str>,
) -> Result<MetadataLookup<ResourceMetadata>, AuthError> {
    let looked = match hint {
        Some(hint) => MetadataLookup::Found(fetch_from_challenge(fetcher, hint).await?),
        None => fetch_first(fetcher, well_known_urls(server)).await?,
    };
    Ok(match looked {
        MetadataLookup::Found(json) => MetadataLookup::Found(parse_metadata(&json, server)?),
        MetadataLookup::Absent => MetadataLookup::Absent,
        MetadataLookup::Unclear(error) => MetadataLookup::Unclear(error),
    })
}

/// Fetches the metadata document that a challenge names.
async fn fetch_from_challenge(fetcher: &PeerFetcher, hint: &str) -> Result<Json, AuthError> {
    let broken = |why: &str| {
        let words = format!(
            "the protected resource metadata to which the server's WWW-Authenticate header links {why}; the operator of the server has to correct it"
        );
        AuthError::new(AuthErrorKind::Unsupported, words)
    };
    let url = Url::parse(hint).map_err(|bad| broken(&format!("has an invalid URL: {bad}")))?;
    match fetch_document(fetcher, url).await? {
        MetadataLookup::Found(json) => Ok(json),
        MetadataLookup::Absent => Err(broken("does not exist")),
        MetadataLookup::Unclear(error) => Err(error),
    }
}

fn well_known_urls(server: &Url) -> Vec<Url> {
    let path = server.path().trim_end_matches('/');
    let mut places = vec![
        format!("{RESOURCE_METADATA_PATH}{path}"),
        RESOURCE_METADATA_PATH.to_owned(),
    ];
    places.dedup();
    places
        .iter()
        .filter_map(|path| server.with_path(path).ok())
        .collect()
}

pub(in super::super) fn parse_metadata(
    json: &Json,
    server: &Url,
) -> Result<ResourceMetadata, AuthError> {
    let resource = json.get("resource").and_then(|resource| resource.string());
    let resource = resource.unwrap_or_default();
    if !Url::parse(&resource).is_ok_and(|resource| covers(&resource, server)) {
        let words = format!(
            "the protected resource metadata of {} is for another resource, {:?}, so no token is requested; check the URL of the server",
            server.origin(),
            sanitize_for_display(&resource)
        );
        return Err(AuthError::new(AuthErrorKind::Unsafe, words));
    }
    Ok(ResourceMetadata {
        resource,
        issuers: string_array(json, "authorization_servers").unwrap_or_default(),
        scopes: supported_scopes(json),
        requires_dpop: json
            .get("dpop_bound_access_tokens_required")
            .and_then(|bound| bound.bool())
            == Some(true),
    })
}

/// Returns whether a server is the resource or lies below its path on the same origin.
fn covers(resource: &Url, server: &Url) -> bool {
    let (above, below) = (resource.path(), server.path());
    let folder = above.trim_end_matches('/');
    let under = below
        .strip_prefix(folder)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let query = resource.query().is_none() || resource.query() == server.query() && above == below;
    resource.same_origin(server) && under && query
}

/// Returns the resource identifier of a server without metadata: lower-case host, no default port, no query, no
/// trailing slash.
pub(in super::super) fn resource_identifier(server: &Url) -> String {
    let origin = server.origin().to_ascii_lowercase();
    let usual = if server.is_https() { ":443" } else { ":80" };
    let origin = origin.strip_suffix(usual).unwrap_or(&origin);
    format!("{origin}{}", server.path().trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    /// Holds: AUTH-27.
    #[test]
    fn t35_metadata_for_another_resource_is_not_used() {
        let check = |resource: &str, server: &str, expected: bool| {
            let json = Json::from_value(&serde_json::json!({"resource": resource}));
            assert_eq!(
                parse_metadata(&json, &url(server)).is_ok(),
                expected,
                "{resource} for {server}"
            );
        };
        let server = "https://a.test/mcp/one";
        for same in [
            "https://a.test/mcp/one",
            "https://a.test/mcp",
            "https://a.test/mcp/",
            "https://a.test",
            "https://a.test/",
            "https://A.test:443/mcp",
        ] {
            check(same, server, true);
        }
        for other in [
            "",
            "x",
            "https://b.test/mcp/one",
            "http://a.test/mcp/one",
            "https://a.test:8443/mcp/one",
            "https://a.test/mcp/on",
            "https://a.test/mcp/one/two",
            "https://a.test/MCP/one",
            "https://a.test.b.test/mcp/one",
            "https://a.test/mcp/one#x",
            "https://a.test@b.test/mcp/one",
            "https://a.test/mcp?x=1",
            "https://a.test/mcp/one?x=1",
        ] {
            check(other, server, false);
        }
    }

    /// Holds: AUTH-07.
    #[test]
    fn well_known_path_precedes_the_root() {
        let places = |text: &str| {
            well_known_urls(&url(text))
                .iter()
                .map(|p| p.path().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            places("https://a.test/mcp/?x=1"),
            [
                "/.well-known/oauth-protected-resource/mcp",
                "/.well-known/oauth-protected-resource"
            ]
        );
        assert_eq!(
            places("https://a.test"),
            ["/.well-known/oauth-protected-resource"]
        );
    }

    /// Holds: AUTH-28.
    #[test]
    fn resource_identifier_defaults_to_the_server_url() {
        assert_eq!(
            resource_identifier(&url("https://a.test/")),
            "https://a.test"
        );
        assert_eq!(
            resource_identifier(&url("https://a.test/mcp?x=1")),
            "https://a.test/mcp"
        );
        for (written, expected) in [
            ("HTTPS://A.Test:443/Mcp/", "https://a.test/Mcp"),
            ("http://a.test:80", "http://a.test"),
            ("https://a.test:8443/mcp", "https://a.test:8443/mcp"),
            ("http://a.test:443/mcp", "http://a.test:443/mcp"),
            ("https://[2606:4700::80]/mcp", "https://[2606:4700::80]/mcp"),
        ] {
            assert_eq!(resource_identifier(&url(written)), expected);
        }
    }
}
