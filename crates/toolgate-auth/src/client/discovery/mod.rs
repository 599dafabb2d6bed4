//! Whose tokens a server takes, and where they are had.
//!
//! - `resource`: what the server says of itself (RFC 9728). `server`: what the authorization server says (RFC 8414,
//!   OpenID Connect Discovery).
//!
//! A server without either is treated as in 2025-03-26: it is its own authorization server, at known paths.

mod resource;
mod server;

pub(super) use resource::canonical;
pub(crate) use server::ServerMetadata;
pub(super) use server::find as issuer;

use super::{AuthError, AuthErrorKind, Scopes, error::shown};
use crate::{
    Url,
    fetch::{Fetched, Fetcher, Request},
};
use toolgate_wire::json::{Json, Kind};

/// What a login at a server needs to know.
#[derive(Clone)]
pub(crate) struct Found {
    /// The server, in its own words. Sent as it is.
    pub resource: String,
    /// The scopes that the server names.
    pub scopes: Option<Scopes>,
    /// Whether the server wants tokens that are bound to a key.
    pub bound: bool,
    /// The authorization server.
    pub server: ServerMetadata,
    /// Whether nobody named it, and it is only the place where one would be by the rules of 2025-03-26.
    pub guessed: bool,
}

/// Finds the authorization server of a server. `hint` is the address of its metadata from a refusal; `known` the
/// issuer to prefer, where the server names more than one.
pub(super) async fn find(
    fetcher: &Fetcher,
    server: &Url,
    hint: Option<&str>,
    known: Option<&str>,
) -> Result<Found, AuthError> {
    let Some(resource) = resource::find(fetcher, server, hint).await? else {
        let named = server::at_origin(fetcher, server).await?;
        return Ok(Found {
            resource: resource::canonical(server),
            scopes: None,
            bound: false,
            guessed: named.is_none(),
            server: match named {
                Some(named) => named,
                None => server::without_words(server)?,
            },
        });
    };
    let of_known = resource
        .issuers
        .iter()
        .find(|issuer| Some(issuer.as_str()) == known);
    let issuer = of_known.or(resource.issuers.first()).ok_or_else(|| {
        let words = "the server names no authorization server in its metadata";
        AuthError::new(AuthErrorKind::Unsupported, words)
    })?;
    let metadata = server::find(fetcher, issuer).await?.ok_or_else(|| {
        let words = format!(
            "no metadata of the authorization server {} is found",
            shown(issuer)
        );
        AuthError::new(AuthErrorKind::Unsupported, words)
    })?;
    Ok(Found {
        resource: resource.resource,
        scopes: resource.scopes,
        bound: resource.bound,
        guessed: false,
        server: metadata,
    })
}

/// A document at an address; nothing where the peer says that there is none.
async fn document(fetcher: &Fetcher, url: Url) -> Result<Option<Json>, AuthError> {
    let request = Request::get(url).with(
        http::HeaderName::from_static("mcp-protocol-version"),
        "2025-11-25",
    );
    let fetched = fetcher.fetch(request).await?;
    let status = fetched.status;
    if status.is_client_error() {
        return Ok(None);
    }
    if !status.is_success() {
        let words = format!("{} answers HTTP {}", fetched.url.origin(), status.as_u16());
        return Err(AuthError::new(AuthErrorKind::Unreachable, words));
    }
    Ok(object(fetched))
}

/// Servers that answer every path with a page are many: what is no object of JSON is none.
fn object(fetched: Fetched) -> Option<Json> {
    fetched
        .json()
        .ok()
        .filter(|json| json.kind() == Kind::Object)
}

/// The texts of an array.
fn texts(json: &Json, key: &str) -> Option<Vec<String>> {
    let array = json.get(key).filter(|array| array.kind() == Kind::Array)?;
    Some(array.items().filter_map(|item| item.string()).collect())
}

fn scopes(json: &Json) -> Option<Scopes> {
    texts(json, "scopes_supported").map(|all| Scopes::of(all.iter().map(String::as_str)))
}
