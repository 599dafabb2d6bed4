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

/// Finds the authorization server of a server. `hint` is the address of its metadata from a refusal; `known` the issuer
/// to prefer, where the server names more than one; `may` says whether an issuer is asked now.
pub(super) async fn find(
    fetcher: &Fetcher,
    server: &Url,
    hint: Option<&str>,
    known: Option<&str>,
    may: impl Fn(&str) -> Result<(), AuthError>,
) -> Result<Found, AuthError> {
    let resource = match resource::find(fetcher, server, hint).await? {
        Looked::There(resource) => resource,
        // Whoever is known is not given up for a guess.
        Looked::Unclear(error) if known.is_some_and(|known| !is_origin(server, known)) => {
            return Err(error);
        }
        _ => return without_resource(fetcher, server).await,
    };
    let of_known = resource
        .issuers
        .iter()
        .find(|issuer| Some(issuer.as_str()) == known);
    let issuer = of_known.or(resource.issuers.first()).ok_or_else(|| {
        let words = format!(
            "{} names no authorization server in its metadata, so nobody can sign in there; its operator has to add one to authorization_servers",
            server.origin()
        );
        AuthError::new(AuthErrorKind::Unsupported, words)
    })?;
    may(issuer)?;
    let metadata = server::find(fetcher, issuer).await?;
    Ok(Found {
        resource: resource.resource,
        scopes: resource.scopes,
        bound: resource.bound,
        guessed: false,
        server: metadata.ok_or_else(|| missing(issuer))?,
    })
}

/// The rules of 2025-03-26, for a server that says nothing of itself.
async fn without_resource(fetcher: &Fetcher, server: &Url) -> Result<Found, AuthError> {
    let (guessed, metadata) = match server::at_origin(fetcher, server).await? {
        Looked::There(named) => (false, named),
        _ => (true, server::without_words(server)?),
    };
    Ok(Found {
        resource: resource::canonical(server),
        scopes: None,
        bound: false,
        guessed,
        server: metadata,
    })
}

/// The one who granted something for a server: the same as then, whatever the server says now.
pub(super) async fn granter(
    fetcher: &Fetcher,
    server: &Url,
    issuer: &str,
) -> Result<ServerMetadata, AuthError> {
    if let Some(metadata) = server::find(fetcher, issuer).await? {
        return Ok(metadata);
    }
    // What was granted at known paths is renewed there, while the server names nobody.
    if issuer == server.origin()
        && !matches!(
            resource::find(fetcher, server, None).await?,
            Looked::There(_)
        )
    {
        return server::without_words(server);
    }
    Err(missing(issuer))
}

fn missing(issuer: &str) -> AuthError {
    let words = format!(
        "no metadata of the authorization server {} is found",
        shown(issuer)
    );
    AuthError::new(AuthErrorKind::Unsupported, words)
}

/// Whether an issuer is the server's own origin. Some write it with a slash at its end.
fn is_origin(server: &Url, issuer: &str) -> bool {
    issuer.strip_suffix('/').unwrap_or(issuer) == server.origin()
}

/// What is at an address.
enum Looked<T> {
    There(T),
    /// The peer says that there is nothing.
    Absent,
    /// It says something else: there may be something at another time.
    Unclear(AuthError),
}

/// Looks for a document at an address.
///
/// # Errors
/// What may pass: asked again later, it may be there.
async fn document(fetcher: &Fetcher, url: Url) -> Result<Looked<Json>, AuthError> {
    let request = Request::get(url).with(
        http::HeaderName::from_static("mcp-protocol-version"),
        "2025-11-25",
    );
    let fetched = fetcher.fetch(request).await?;
    let (status, origin) = (fetched.status.as_u16(), fetched.url.origin());
    let no = |words: &str| AuthError::new(AuthErrorKind::Unreachable, format!("{origin} {words}"));
    let answers = || {
        no(&format!(
            "answers HTTP {status} where its metadata would be"
        ))
    };
    Ok(match status {
        404 | 405 | 410 => Looked::Absent,
        200..300 => match object(fetched) {
            Some(json) => Looked::There(json),
            None => Looked::Unclear(no("answers with something else than its metadata")),
        },
        408 | 425 | 429 => return Err(answers()),
        400..500 => Looked::Unclear(answers()),
        _ => return Err(answers()),
    })
}

/// The first document of some places.
async fn first(
    fetcher: &Fetcher,
    places: impl IntoIterator<Item = Url>,
) -> Result<Looked<Json>, AuthError> {
    let mut none = Looked::Absent;
    for place in places {
        match (document(fetcher, place).await?, &none) {
            (Looked::There(json), _) => return Ok(Looked::There(json)),
            (Looked::Unclear(error), Looked::Absent) => none = Looked::Unclear(error),
            _ => {}
        }
    }
    Ok(none)
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
