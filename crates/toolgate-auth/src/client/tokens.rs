//! OAuth credentials and token responses.

use super::{RegisteredClient, ScopeSet};
use crate::{Secret, clock::now};
use toolgate_protocol::json::Json;

/// Seconds before its expiry at which a token counts as expired; at most a tenth of its lifetime.
const EXPIRY_MARGIN_SECONDS: u64 = 30;
/// Maximum token lifetime in seconds that is accepted: ten years. Longer ones are shortened to it.
const MAX_LIFETIME_SECONDS: u64 = 10 * 365 * 24 * 3600;
/// Maximum length of a token in bytes.
const MAX_ISSUED_TOKEN_BYTES: usize = 32 << 10;

/// OAuth credential for one resource: access token, refresh token and their metadata.
#[derive(Clone)]
#[non_exhaustive]
pub struct OAuthCredential {
    /// Issuer identifier of the authorization server that issued the tokens. The tokens are never sent to another
    /// authorization server.
    pub issuer: String,
    /// Resource identifier of the MCP server that the tokens are for.
    pub resource: String,
    /// OAuth access token for the resource.
    pub access_token: Secret,
    /// True if the tokens are DPoP-bound to [`OAuthCredential::dpop_key`].
    pub is_dpop_bound: bool,
    /// Private key of DPoP-bound tokens in PKCS #8, Base64.
    pub dpop_key: Option<Secret>,
    /// End of use of the access token in seconds since the Unix epoch, slightly before its expiry. `None` if the server
    /// did not state a lifetime.
    pub expires_at: Option<u64>,
    /// OAuth refresh token, if the authorization server issued one.
    pub refresh_token: Option<Secret>,
    /// Scopes that were requested and granted.
    pub scopes: ScopeSet,
    /// Additional scopes that the server demanded while no user could sign in; the next sign-in requests them.
    pub demanded_scopes: ScopeSet,
    /// Client that the tokens were issued to, if it was registered dynamically.
    pub client: Option<RegisteredClient>,
}

impl OAuthCredential {
    /// Returns whether the access token can still be used.
    pub fn is_fresh(&self) -> bool {
        self.expires_at.is_none_or(|until| until > now())
    }
}

/// Success response of a token endpoint.
pub(super) struct TokenResponse {
    pub(super) access_token: Secret,
    pub(super) token_type: String,
    pub(super) expires_at: Option<u64>,
    pub(super) refresh_token: Option<Secret>,
    pub(super) scopes: Option<ScopeSet>,
    /// Type of the issued token, in a response to a token exchange.
    pub(super) issued_token_type: Option<String>,
}

impl TokenResponse {
    /// Parses the response of a token endpoint.
    ///
    /// # Errors
    /// The reason why the response is malformed.
    pub(super) fn parse(json: &Json) -> Result<TokenResponse, &'static str> {
        let access = token(json, "access_token")?.ok_or("has no access_token")?;
        let kind = json.get("token_type").and_then(|kind| kind.string());
        let kind = kind.ok_or("has no token_type")?;
        let seconds = json.get("expires_in").and_then(|seconds| {
            // Some servers send the number as a string.
            seconds.u64().or_else(|| seconds.string()?.parse().ok())
        });
        Ok(TokenResponse {
            access_token: access,
            token_type: kind.to_ascii_lowercase(),
            expires_at: seconds.map(|seconds| {
                let life = seconds.min(MAX_LIFETIME_SECONDS);
                now().saturating_add(life - EXPIRY_MARGIN_SECONDS.min(life / 10))
            }),
            refresh_token: token(json, "refresh_token")?,
            scopes: json
                .get("scope")
                .and_then(|s| s.string())
                .map(|s| ScopeSet::parse(&s)),
            issued_token_type: json
                .get("issued_token_type")
                .and_then(|issued| issued.string()),
        })
    }
}

fn token(json: &Json, key: &str) -> Result<Option<Secret>, &'static str> {
    let Some(text) = json.get(key).filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let text = text
        .string()
        .ok_or("contains a token that is not a string")?;
    if text.is_empty()
        || text.len() > MAX_ISSUED_TOKEN_BYTES
        || !text.bytes().all(|b| b.is_ascii_graphic())
    {
        return Err("contains a token that is empty, too long or not valid in a header");
    }
    Ok(Some(Secret::new(text)))
}
