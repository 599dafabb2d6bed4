//! Well-known metadata URLs and HTTP Basic client authentication.
//!
//! Source: RFC 6749, section 2.3.1; RFC 8414, section 3; RFC 9728, section 3; OpenID Connect Discovery 1.0, section 4.

use crate::{Secret, Url};
use base64::{Engine, engine::general_purpose::STANDARD};
use http::HeaderValue;

/// Well-known path of authorization server metadata (RFC 8414).
pub(crate) const OAUTH_METADATA_PATH: &str = "/.well-known/oauth-authorization-server";
/// Well-known path of OpenID Connect discovery metadata.
pub(crate) const OIDC_METADATA_PATH: &str = "/.well-known/openid-configuration";
/// Well-known path of protected resource metadata (RFC 9728).
pub(crate) const RESOURCE_METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// Returns the candidate metadata URLs of an issuer, in the order that the specification prescribes.
pub(crate) fn metadata_urls(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut places = vec![
        format!("{OAUTH_METADATA_PATH}{path}"),
        format!("{OIDC_METADATA_PATH}{path}"),
    ];
    if !path.is_empty() {
        places.push(format!("{path}{OIDC_METADATA_PATH}"));
    }
    places
        .iter()
        .filter_map(|path| issuer.with_path(path).ok())
        .collect()
}

/// Builds the `Authorization: Basic` header of a client. `None` if its value is not a valid header value.
/// The id and the secret are form-encoded first (RFC 6749, section 2.3.1).
pub(crate) fn basic_authorization(id: &str, secret: &Secret) -> Option<HeaderValue> {
    let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encode(id), encode(secret.reveal()));
    let mut value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(pair))).ok()?;
    value.set_sensitive(true);
    Some(value)
}
