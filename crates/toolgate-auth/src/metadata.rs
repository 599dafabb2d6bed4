//! Where authorization servers and resources say what they are, and how a client shows there that it is the one.
//!
//! Source: RFC 6749, section 2.3.1; RFC 8414, section 3; RFC 9728, section 3; OpenID Connect Discovery 1.0, section 4.

use crate::{Secret, Url};
use base64::{Engine, engine::general_purpose::STANDARD};
use http::HeaderValue;

/// Metadata of an authorization server.
pub(crate) const OAUTH: &str = "/.well-known/oauth-authorization-server";
/// The same, as OpenID Connect has it.
pub(crate) const OIDC: &str = "/.well-known/openid-configuration";
/// Metadata of a resource.
pub(crate) const RESOURCE: &str = "/.well-known/oauth-protected-resource";

/// Where the metadata of an issuer may be, in the order of the specification.
pub(crate) fn places(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut places = vec![format!("{OAUTH}{path}"), format!("{OIDC}{path}")];
    if !path.is_empty() {
        places.push(format!("{path}{OIDC}"));
    }
    places
        .iter()
        .filter_map(|path| issuer.at(path).ok())
        .collect()
}

/// Id and secret of a client: each encoded as in a form, then both in Base64. `None` where no header can have that.
pub(crate) fn basic(id: &str, secret: &Secret) -> Option<HeaderValue> {
    let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encode(id), encode(secret.reveal()));
    let mut value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(pair))).ok()?;
    value.set_sensitive(true);
    Some(value)
}
