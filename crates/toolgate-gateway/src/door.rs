//! Authentication of HTTP requests.

mod attempts;
mod bearers;
mod tokens;

pub(crate) use attempts::{RejectionEffect, RejectionLimiter};
pub(crate) use bearers::{CallerTokens, TokenOwner};
pub(crate) use tokens::{TokenVerifier, limits};

use http::{HeaderMap, Method, StatusCode};
use ring::digest;
use std::sync::Arc;
use toolgate::{
    BoxFuture, Caller,
    auth::{
        Secret, Url,
        resource::{
            RequestCredentials, ResourceServer, TokenRejection, TokenScheme, VerifiedToken,
        },
    },
    edge::http::{HostGuard, protected},
};
use toolgate_policy::keys::{ApiKeyRejection, ApiKeys, KEY_PREFIX, KeyEndReason};

/// Path of the MCP endpoint, under any prefix that a proxy adds.
const MCP_SEGMENT: &str = "mcp";

/// Authenticator of HTTP requests.
pub(crate) struct Authenticator {
    pub(crate) guard: HostGuard,
    pub(crate) token: Option<Secret>,
    /// Verifier of access tokens from authorization servers.
    pub(crate) resource: Option<Arc<ResourceServer>>,
    /// True if anonymous access is denied.
    pub(crate) closed: bool,
    /// Rejected credentials per client address and minute that are audited one by one. Further ones get status 429.
    pub(crate) failures: u32,
    /// Store of callers' tokens for token exchange, and its maximum number of callers. `None` if no server exchanges
    /// tokens.
    pub(crate) bearers: Option<(Arc<CallerTokens>, usize)>,
}

/// An authenticated caller.
pub(crate) struct AuthenticatedCaller {
    pub(crate) caller: Caller,
    /// Resolves when the caller's key is revoked: everything that it began is cut off.
    pub(crate) withdrawn: Option<BoxFuture<'static, ()>>,
    /// Resolves when the key or token ends: notification streams are closed.
    pub(crate) over: Option<BoxFuture<'static, ()>>,
}

/// Rejection of a request's credentials.
pub(crate) struct AuthRejection {
    pub(crate) how: AuthRejectionClass,
    /// Reason for the audit log.
    pub(crate) why: String,
    /// Message for the client.
    pub(crate) told: &'static str,
    /// Rejection of the resource server, with its OAuth challenge. `None` if no issuer is configured.
    pub(crate) refused: Option<Box<TokenRejection>>,
}

/// Class of an authentication rejection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum AuthRejectionClass {
    /// No credentials that could be valid.
    Silent,
    /// Invalid credentials.
    Wrong,
    /// Malformed credentials.
    Malformed,
    /// Credentials that were not checked this time (status 429).
    Unasked,
}

impl AuthenticatedCaller {
    fn as_one(name: &str) -> AuthenticatedCaller {
        AuthenticatedCaller {
            caller: Caller::new(name),
            withdrawn: None,
            over: None,
        }
    }

    fn by_token(
        admitted: VerifiedToken,
        resource: &Arc<ResourceServer>,
        token: &str,
    ) -> AuthenticatedCaller {
        AuthenticatedCaller {
            caller: admitted.caller,
            withdrawn: None,
            over: protected::over(resource, token, admitted.until),
        }
    }
}

impl Authenticator {
    /// Authenticates a request by its headers. Invalid credentials are rejected even where authentication is
    /// optional.
    ///
    /// `over` says that the client address sent too many invalid credentials lately, so no issuer is asked about
    /// these.
    ///
    /// # Errors
    /// The credentials are missing, malformed or invalid.
    pub(crate) async fn enter(
        &self,
        (method, path): (&Method, &str),
        headers: &HeaderMap,
        keys: &Arc<ApiKeys>,
        over: bool,
    ) -> Result<AuthenticatedCaller, AuthRejection> {
        let shown = RequestCredentials::of(headers);
        if let RequestCredentials::Token(scheme, shown) = shown {
            let ours = self.token.as_ref().is_some_and(|token| token.is(shown));
            // Our own token and keys are never sent to an issuer, whatever their scheme.
            return match scheme {
                TokenScheme::Bearer if ours => Ok(AuthenticatedCaller::as_one(over_http(true))),
                TokenScheme::Bearer if shown.starts_with(KEY_PREFIX) => self.by_key(shown, keys),
                TokenScheme::Dpop if ours || shown.starts_with(KEY_PREFIX) => {
                    let why = "a key was sent with DPoP".to_owned();
                    Err(self.wrong(why, "keys are sent as Authorization: Bearer KEY"))
                }
                _ => self.by_token((method, path), headers, shown, over).await,
            };
        }
        match shown {
            RequestCredentials::Malformed(why) => Err(self.malformed(why)),
            RequestCredentials::Nothing if !self.closed && self.resource.is_none() => {
                Ok(AuthenticatedCaller::as_one(over_http(false)))
            }
            RequestCredentials::Nothing => Err(self.silent("no credentials were sent")),
            _ => Err(AuthRejection {
                told: self.other_scheme(),
                ..self.silent("the credentials are not one bearer token")
            }),
        }
    }

    async fn by_token(
        &self,
        (method, path): (&Method, &str),
        headers: &HeaderMap,
        shown: &str,
        over: bool,
    ) -> Result<AuthenticatedCaller, AuthRejection> {
        let Some(resource) = &self.resource else {
            return Err(self.wrong(
                "the bearer token is wrong".to_owned(),
                match self.token {
                    Some(_) => {
                        "unknown bearer token; send a key from `toolgate keys create`, or the token of the config"
                    }
                    None => {
                        "unknown bearer token; send a key from `toolgate keys create`"
                    }
                },
            ));
        };
        let beside = beside(resource.resource(), path);
        let address = beside.as_ref().unwrap_or(resource.resource());
        let admitted = resource.admit_at(address, method, headers, !over).await;
        let admitted = admitted.map_err(AuthRejection::of)?;
        if let Some((bearers, most)) = &self.bearers {
            bearers.hold(&admitted.caller, shown, admitted.until, *most);
        }
        Ok(AuthenticatedCaller::by_token(admitted, resource, shown))
    }

    fn by_key(
        &self,
        shown: &str,
        keys: &Arc<ApiKeys>,
    ) -> Result<AuthenticatedCaller, AuthRejection> {
        match keys.open(shown) {
            Ok(pass) => Ok(AuthenticatedCaller {
                caller: pass.caller(),
                withdrawn: Some(Box::pin(keys.clone().withdrawn(pass.clone()))),
                over: Some(Box::pin(keys.clone().ended(pass))),
            }),
            Err(ApiKeyRejection::Unknown) => Err(self.wrong(
                "there is no such key".to_owned(),
                "this key is unknown, or was rotated long ago; ask the operator for a key from `toolgate keys create NAME`",
            )),
            Err(ApiKeyRejection::Over(name, over)) => Err(self.wrong(
                format!("the key {name} is {}", over.as_str()),
                match over {
                    KeyEndReason::Replaced => "this key was rotated; ask the operator for the new one",
                    _ => "this key was revoked or has expired; ask the operator for a new one",
                },
            )),
        }
    }

    /// Returns the rejection of invalid credentials.
    pub(crate) fn wrong(&self, why: String, told: &'static str) -> AuthRejection {
        let refused = self.refused(|resource| resource.refuses(told));
        AuthRejection {
            how: AuthRejectionClass::Wrong,
            why,
            told,
            refused,
        }
    }

    /// Builds the rejection of the resource server, if an issuer is configured.
    fn refused(
        &self,
        of: impl FnOnce(&ResourceServer) -> TokenRejection,
    ) -> Option<Box<TokenRejection>> {
        let resource = self.resource.as_ref()?;
        Some(Box::new(of(resource)))
    }

    fn silent(&self, why: &str) -> AuthRejection {
        AuthRejection {
            how: AuthRejectionClass::Silent,
            why: why.to_owned(),
            told: "credentials required: send Authorization: Bearer KEY with a key that the operator created with `toolgate keys create NAME`",
            refused: self.refused(|resource| resource.asks_for()),
        }
    }

    /// Returns the message for credentials of another authentication scheme.
    fn other_scheme(&self) -> &'static str {
        match self.closed || self.resource.is_some() {
            true => {
                "unsupported scheme in the Authorization header; send Authorization: Bearer KEY with a key that the operator created with `toolgate keys create NAME`"
            }
            false => {
                "unsupported scheme in the Authorization header; send Authorization: Bearer KEY, or no Authorization header, because none is required"
            }
        }
    }

    fn malformed(&self, why: &'static str) -> AuthRejection {
        AuthRejection {
            how: AuthRejectionClass::Malformed,
            why: why.to_owned(),
            told: "malformed Authorization header; send it once, as Bearer and one key",
            refused: self.refused(|resource| resource.cannot_read(why)),
        }
    }
}

/// Returns the URL of another path next to the resource, which a DPoP proof has to name. `None` for the resource
/// itself.
fn beside(resource: &Url, path: &str) -> Option<Url> {
    let (folder, own) = resource.path().rsplit_once('/')?;
    let path = path.trim_start_matches('/');
    match path == own || path == MCP_SEGMENT {
        true => None,
        false => resource.at(&format!("{folder}/{path}")).ok(),
    }
}

impl AuthRejection {
    fn of(refused: TokenRejection) -> AuthRejection {
        let how = match refused.status() {
            StatusCode::TOO_MANY_REQUESTS => AuthRejectionClass::Unasked,
            _ if refused.tried() => AuthRejectionClass::Wrong,
            _ => AuthRejectionClass::Silent,
        };
        AuthRejection {
            how,
            why: refused.why().to_owned(),
            told: refused.told(),
            refused: Some(Box::new(refused)),
        }
    }

    /// Returns the status and the `WWW-Authenticate` challenge where no issuer is configured.
    pub(crate) fn challenge(&self) -> (StatusCode, &'static str) {
        match self.how {
            AuthRejectionClass::Malformed => {
                (StatusCode::BAD_REQUEST, "Bearer error=\"invalid_request\"")
            }
            AuthRejectionClass::Wrong => {
                (StatusCode::UNAUTHORIZED, "Bearer error=\"invalid_token\"")
            }
            AuthRejectionClass::Silent | AuthRejectionClass::Unasked => {
                (StatusCode::UNAUTHORIZED, "Bearer")
            }
        }
    }
}

/// Returns the name of an HTTP caller that has neither a key nor an issuer's token.
pub(crate) fn over_http(token: bool) -> &'static str {
    match token {
        true => "token@http",
        false => Caller::ANONYMOUS_HTTP,
    }
}

/// Compares two secrets by their SHA-256 digests, so that the time does not reveal where they differ.
pub(crate) fn same(given: &str, wanted: &str) -> bool {
    let digest = |text: &str| digest::digest(&digest::SHA256, text.as_bytes());
    digest(given).as_ref() == digest(wanted).as_ref()
}
