//! Discovery of protected-resource and authorization-server metadata.
//!
//! - `resource`: protected resource metadata (RFC 9728). `server`: authorization server metadata (RFC 8414, OpenID
//!   Connect Discovery).
//!
//! A server without either follows the fallback of 2025-03-26: it is its own authorization server, at default paths.

pub(super) mod resource;
pub(super) mod server;

pub(super) use resource::resource_identifier;
pub(crate) use server::AuthorizationServerMetadata;
pub(super) use server::fetch_issuer_metadata as issuer;

use super::{AuthError, AuthErrorKind, ScopeSet, error::sanitize_for_display};
use crate::{
    Url,
    fetch::{FetchRequest, FetchResponse, PeerFetcher},
};
use toolgate_protocol::json::{Json, JsonKind};

/// Result of discovery: the resource and its authorization server.
#[derive(Clone)]
pub(crate) struct DiscoveredResource {
    /// Resource identifier (RFC 8707) of the MCP server, as it states it. Requests repeat it unchanged.
    pub resource: String,
    /// Scopes that the resource metadata lists (`scopes_supported`).
    pub scopes: Option<ScopeSet>,
    /// True if the resource requires DPoP-bound tokens (RFC 9449).
    pub requires_dpop: bool,
    /// Metadata of the authorization server (RFC 8414).
    pub server: AuthorizationServerMetadata,
    /// True if no metadata exists, so that the endpoints are the default paths of MCP 2025-03-26.
    pub is_fallback: bool,
}

/// Discovers the authorization server of an MCP server. `hint` is the metadata URL from a challenge, `known` the
/// preferred issuer if the server lists several. `may` returns an error for an issuer that must not be contacted now.
pub(super) async fn discover(
    fetcher: &PeerFetcher,
    server: &Url,
    hint: Option<&str>,
    known: Option<&str>,
    may: impl Fn(&str) -> Result<(), AuthError>,
) -> Result<DiscoveredResource, AuthError> {
    let resource = match resource::fetch_resource_metadata(fetcher, server, hint).await? {
        MetadataLookup::Found(resource) => resource,
        // A known issuer is not replaced by a guess.
        MetadataLookup::Unclear(error) if known.is_some_and(|known| !is_origin(server, known)) => {
            return Err(error);
        }
        _ => return discover_without_resource_metadata(fetcher, server).await,
    };
    let of_known = resource
        .issuers
        .iter()
        .find(|issuer| Some(issuer.as_str()) == known);
    let issuer = of_known.or(resource.issuers.first()).ok_or_else(|| {
        let words = format!(
            "the metadata of {} names no authorization server, so sign-in is impossible; the operator of the server has to add one to authorization_servers",
            server.origin()
        );
        AuthError::new(AuthErrorKind::Unsupported, words)
    })?;
    may(issuer)?;
    let metadata = server::fetch_issuer_metadata(fetcher, issuer).await?;
    Ok(DiscoveredResource {
        resource: resource.resource,
        scopes: resource.scopes,
        requires_dpop: resource.requires_dpop,
        is_fallback: false,
        server: metadata.ok_or_else(|| missing_metadata_error(issuer))?,
    })
}

/// Applies the fallback of 2025-03-26 to a server without protected resource metadata.
async fn discover_without_resource_metadata(
    fetcher: &PeerFetcher,
    server: &Url,
) -> Result<DiscoveredResource, AuthError> {
    let (guessed, metadata) = match server::fetch_at_origin(fetcher, server).await? {
        MetadataLookup::Found(named) => (false, named),
        _ => (true, server::default_endpoints(server)?),
    };
    Ok(DiscoveredResource {
        resource: resource::resource_identifier(server),
        scopes: None,
        requires_dpop: false,
        is_fallback: guessed,
        server: metadata,
    })
}

/// Returns the metadata of the issuer of a stored credential, whichever issuer the server lists now.
pub(super) async fn find_issuer(
    fetcher: &PeerFetcher,
    server: &Url,
    issuer: &str,
) -> Result<AuthorizationServerMetadata, AuthError> {
    if let Some(metadata) = server::fetch_issuer_metadata(fetcher, issuer).await? {
        return Ok(metadata);
    }
    // Tokens of the default endpoints are refreshed there as long as the server lists no authorization server.
    if issuer == server.origin()
        && !matches!(
            resource::fetch_resource_metadata(fetcher, server, None).await?,
            MetadataLookup::Found(_)
        )
    {
        return server::default_endpoints(server);
    }
    Err(missing_metadata_error(issuer))
}

fn missing_metadata_error(issuer: &str) -> AuthError {
    let words = format!(
        "the authorization server {} publishes no metadata (RFC 8414 or OpenID Connect Discovery), so sign-in there is impossible; check the URL of the authorization server",
        sanitize_for_display(issuer)
    );
    AuthError::new(AuthErrorKind::Unsupported, words)
}

/// Returns whether an issuer is the server's own origin; some issuers have a trailing slash.
fn is_origin(server: &Url, issuer: &str) -> bool {
    issuer.strip_suffix('/').unwrap_or(issuer) == server.origin()
}

/// Result of a metadata request.
enum MetadataLookup<T> {
    Found(T),
    /// The peer states that the document does not exist.
    Absent,
    /// Another response; the document may exist at another time.
    Unclear(AuthError),
}

/// Fetches a metadata document.
///
/// # Errors
/// A failure that may be transient; a later request may succeed.
async fn fetch_document(
    fetcher: &PeerFetcher,
    url: Url,
) -> Result<MetadataLookup<Json>, AuthError> {
    let request = FetchRequest::get(url).with(
        http::HeaderName::from_static("mcp-protocol-version"),
        "2025-11-25",
    );
    let fetched = fetcher.fetch(request).await?;
    let (status, origin) = (fetched.status.as_u16(), fetched.url.origin());
    let no = |words: &str| AuthError::new(AuthErrorKind::Unreachable, format!("{origin} {words}"));
    let answers = || {
        no(&format!(
            "returned HTTP {status} instead of the metadata; try again later, or ask the operator of the server"
        ))
    };
    Ok(match status {
        404 | 405 | 410 => MetadataLookup::Absent,
        200..300 => match json_object(fetched) {
            Some(json) => MetadataLookup::Found(json),
            None => MetadataLookup::Unclear(no(
                "returned metadata that is not a JSON object; the operator of the server has to correct it",
            )),
        },
        408 | 425 | 429 => return Err(answers()),
        400..500 => MetadataLookup::Unclear(answers()),
        _ => return Err(answers()),
    })
}

/// Returns the first document that exists at a list of URLs.
async fn fetch_first(
    fetcher: &PeerFetcher,
    places: impl IntoIterator<Item = Url>,
) -> Result<MetadataLookup<Json>, AuthError> {
    let mut none = MetadataLookup::Absent;
    for place in places {
        match (fetch_document(fetcher, place).await?, &none) {
            (MetadataLookup::Found(json), _) => return Ok(MetadataLookup::Found(json)),
            (MetadataLookup::Unclear(error), MetadataLookup::Absent) => {
                none = MetadataLookup::Unclear(error)
            }
            _ => {}
        }
    }
    Ok(none)
}

/// Returns the body if it is a JSON object. Many servers answer every path with an HTML page.
fn json_object(fetched: FetchResponse) -> Option<Json> {
    fetched
        .json()
        .ok()
        .filter(|json| json.kind() == JsonKind::Object)
}

/// Returns the strings of an array member.
fn string_array(json: &Json, key: &str) -> Option<Vec<String>> {
    let array = json
        .get(key)
        .filter(|array| array.kind() == JsonKind::Array)?;
    Some(array.items().filter_map(|item| item.string()).collect())
}

fn supported_scopes(json: &Json) -> Option<ScopeSet> {
    string_array(json, "scopes_supported")
        .map(|all| ScopeSet::from_scopes(all.iter().map(String::as_str)))
}
