//! What was granted.

use super::{OauthClient, Scopes};
use crate::{Secret, clock::now};
use toolgate_wire::json::Json;

/// How many seconds before its end a token counts as ended; a tenth of its life where that is less.
const EARLY: u64 = 30;
/// The longest life that is believed.
const LONGEST: u64 = 10 * 365 * 24 * 3600;
/// Most bytes of a token.
const TOKEN: usize = 32 << 10;

/// What an authorization server granted for one resource.
#[derive(Clone)]
#[non_exhaustive]
pub struct Grant {
    /// Who granted it. It is never sent to another.
    pub issuer: String,
    /// For which resource.
    pub resource: String,
    /// The access token.
    pub access: Secret,
    /// Whether it is bound to the key of [`Grant::key`].
    pub bound: bool,
    /// The private key in PKCS #8 that the tokens are bound to, in Base64.
    pub key: Option<Secret>,
    /// Until when the access token is used, in seconds since 1970: a little before its end. Unknown where the server did
    /// not say.
    pub until: Option<u64>,
    /// What renews it.
    pub refresh: Option<Secret>,
    /// What was asked for and granted.
    pub scopes: Scopes,
    /// What the server asked for since, where nobody was there to sign in for it: the next sign-in asks for it too.
    pub wanted: Scopes,
    /// To which client it was granted, where we registered that one by ourselves.
    pub client: Option<OauthClient>,
}

impl Grant {
    /// Whether the access token can be used now.
    pub fn is_fresh(&self) -> bool {
        self.until.is_none_or(|until| until > now())
    }
}

/// The answer of a token endpoint.
pub(super) struct Answer {
    pub(super) access: Secret,
    pub(super) kind: String,
    pub(super) until: Option<u64>,
    pub(super) refresh: Option<Secret>,
    pub(super) scopes: Option<Scopes>,
    /// What was issued, where it is a token exchange.
    pub(super) issued: Option<String>,
}

impl Answer {
    /// Reads the answer of a token endpoint.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn read(json: &Json) -> Result<Answer, &'static str> {
        let access = token(json, "access_token")?.ok_or("its answer has no access_token")?;
        let kind = json.get("token_type").and_then(|kind| kind.string());
        let kind = kind.ok_or("its answer has no token_type")?;
        let seconds = json.get("expires_in").and_then(|seconds| {
            // Some servers write it as a text.
            seconds.u64().or_else(|| seconds.string()?.parse().ok())
        });
        Ok(Answer {
            access,
            kind: kind.to_ascii_lowercase(),
            until: seconds.map(|seconds| {
                let life = seconds.min(LONGEST);
                now().saturating_add(life - EARLY.min(life / 10))
            }),
            refresh: token(json, "refresh_token")?,
            scopes: json
                .get("scope")
                .and_then(|s| s.string())
                .map(|s| Scopes::read(&s)),
            issued: json
                .get("issued_token_type")
                .and_then(|issued| issued.string()),
        })
    }
}

fn token(json: &Json, key: &str) -> Result<Option<Secret>, &'static str> {
    let Some(text) = json.get(key).filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let text = text.string().ok_or("a token in its answer is no text")?;
    if text.is_empty() || text.len() > TOKEN || !text.bytes().all(|b| b.is_ascii_graphic()) {
        return Err("a token in its answer cannot stand in a header");
    }
    Ok(Some(Secret::new(text)))
}
