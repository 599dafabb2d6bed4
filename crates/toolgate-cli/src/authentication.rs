//! Authentication of HTTP requests.

mod caller_tokens;
mod rejection_limiter;
mod required_scopes;
mod token_verifier;
mod views;

pub(crate) use caller_tokens::{CallerTokens, TokenOwner};
pub(crate) use rejection_limiter::{RejectionEffect, RejectionLimiter};
pub(crate) use required_scopes::required_scopes;
pub(crate) use token_verifier::{TokenVerifier, issuer_limits};
pub(crate) use views::Authenticators;

use crate::proxy::TrustedProxies;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use ring::digest;
use std::sync::Arc;
use toolgate::{
    auth::{
        Secret, Url,
        resource::{
            RequestCredentials, ResourceServer, TokenRejection, TokenScheme, VerifiedToken,
        },
    },
    edge::http::{HostGuard, protected},
};
use toolgate_core::{BoxFuture, Caller};
use toolgate_policy::keys::{ApiKeyRejection, ApiKeys, KEY_PREFIX, KeyEndReason};

/// Path of the MCP endpoint, under any prefix that a proxy adds.
const MCP_SEGMENT: &str = "mcp";

/// Authenticator of HTTP requests.
#[derive(Clone)]
pub(crate) struct Authenticator {
    pub(crate) guard: HostGuard,
    /// Trusted proxies, which name the clients of their requests.
    pub(crate) proxies: Arc<TrustedProxies>,
    pub(crate) token: Option<Secret>,
    /// Verifier of access tokens from authorization servers.
    pub(crate) resource: Option<Arc<ResourceServer>>,
    /// View whose endpoint the authenticator guards.
    pub(crate) view: Option<String>,
    /// True if anonymous access is denied.
    pub(crate) requires_credentials: bool,
    /// Rejected credentials per client address and minute that are audited one by one. Further ones get status 429.
    pub(crate) max_rejections: u32,
    /// Store of callers' tokens for token exchange, and its maximum number of callers. `None` if no server exchanges
    /// tokens.
    pub(crate) caller_tokens: Option<(Arc<CallerTokens>, usize)>,
}

/// An authenticated caller.
pub(crate) struct AuthenticatedCaller {
    pub(crate) caller: Caller,
    /// Resolves when the caller's key is revoked: everything that it began is cut off.
    pub(crate) revoked: Option<BoxFuture<'static, ()>>,
    /// Resolves when the key or token ends: notification streams are closed.
    pub(crate) expired: Option<BoxFuture<'static, ()>>,
}

/// Rejection of a request's credentials.
pub(crate) struct AuthRejection {
    pub(crate) class: AuthRejectionClass,
    /// Reason for the audit log.
    pub(crate) reason: String,
    /// Message for the client.
    pub(crate) message: &'static str,
    /// Rejection of the resource server, with its OAuth challenge. `None` if no issuer is configured.
    pub(crate) oauth_rejection: Option<Box<TokenRejection>>,
}

/// Class of an authentication rejection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum AuthRejectionClass {
    /// No credentials that could be valid.
    Missing,
    /// Invalid credentials.
    Invalid,
    /// Malformed credentials.
    Malformed,
    /// Credentials that were not checked this time (status 429).
    RateLimited,
    /// Keys that cannot be checked, because the shared store is away (status 503).
    Unavailable,
}

impl AuthenticatedCaller {
    fn named(name: &str) -> AuthenticatedCaller {
        AuthenticatedCaller {
            caller: Caller::new(name),
            revoked: None,
            expired: None,
        }
    }

    fn from_token(
        admitted: VerifiedToken,
        resource: &Arc<ResourceServer>,
        token: &str,
    ) -> AuthenticatedCaller {
        AuthenticatedCaller {
            caller: admitted.caller,
            revoked: None,
            expired: protected::token_end(resource, token, admitted.expires_at),
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
    pub(crate) async fn authenticate(
        &self,
        (method, path): (&Method, &str),
        headers: &HeaderMap,
        keys: &Arc<ApiKeys>,
        over: bool,
    ) -> Result<AuthenticatedCaller, AuthRejection> {
        let shown = RequestCredentials::from_headers(headers);
        if let RequestCredentials::Token(scheme, shown) = shown {
            let ours = self
                .token
                .as_ref()
                .is_some_and(|token| token.matches(shown));
            // Our own token and keys are never sent to an issuer, whatever their scheme.
            return match scheme {
                TokenScheme::Bearer if ours => {
                    Ok(AuthenticatedCaller::named(http_caller_name(true)))
                }
                TokenScheme::Bearer if shown.starts_with(KEY_PREFIX) => {
                    self.verify_key(shown, keys)
                }
                TokenScheme::Dpop if ours || shown.starts_with(KEY_PREFIX) => {
                    let why = "a key was sent with DPoP".to_owned();
                    Err(self.invalid_credentials(why, "API keys are not DPoP-bound; send Authorization: Bearer KEY without a DPoP header"))
                }
                _ => {
                    // Boxed, so that the future of a request without a token is small.
                    Box::pin(self.verify_token((method, path), headers, shown, over)).await
                }
            };
        }
        match shown {
            RequestCredentials::Malformed(why) => Err(self.malformed_credentials(why)),
            RequestCredentials::Missing
                if !self.requires_credentials && self.resource.is_none() =>
            {
                Ok(AuthenticatedCaller::named(http_caller_name(false)))
            }
            RequestCredentials::Missing => {
                Err(self.missing_credentials("no credentials were sent"))
            }
            _ => Err(AuthRejection {
                message: self.scheme_message(),
                ..self.missing_credentials("the credentials are not one bearer token")
            }),
        }
    }

    async fn verify_token(
        &self,
        (method, path): (&Method, &str),
        headers: &HeaderMap,
        shown: &str,
        over: bool,
    ) -> Result<AuthenticatedCaller, AuthRejection> {
        let Some(resource) = &self.resource else {
            return Err(self.invalid_credentials(
                "the bearer token is unknown".to_owned(),
                match self.token {
                    Some(_) => {
                        "unknown bearer token; send a key from `toolgate keys create`, or the token from the config"
                    }
                    None => {
                        "unknown bearer token; send a key from `toolgate keys create`"
                    }
                },
            ));
        };
        let beside = sibling_url(resource.resource(), self.view.as_deref(), path);
        let address = beside.as_ref().unwrap_or(resource.resource());
        let admitted = resource
            .authenticate_at(address, method, headers, !over)
            .await;
        let admitted = admitted.map_err(AuthRejection::from_oauth)?;
        if let Some((bearers, most)) = &self.caller_tokens {
            bearers.store(&admitted.caller, shown, admitted.expires_at, *most);
        }
        Ok(AuthenticatedCaller::from_token(admitted, resource, shown))
    }

    fn verify_key(
        &self,
        shown: &str,
        keys: &Arc<ApiKeys>,
    ) -> Result<AuthenticatedCaller, AuthRejection> {
        match keys.verify(shown) {
            Ok(pass) => Ok(AuthenticatedCaller {
                caller: pass.caller(),
                revoked: Some(Box::pin(keys.clone().revoked(pass.clone()))),
                expired: Some(Box::pin(keys.clone().invalidated(pass))),
            }),
            Err(ApiKeyRejection::Ended(name, over)) => Err(self.invalid_credentials(
                format!("the key {name} is {}", over.as_str()),
                match over {
                    KeyEndReason::Replaced => "this key was rotated; ask the operator for the new one",
                    KeyEndReason::Revoked => "this key was revoked; ask the operator for a new one",
                    KeyEndReason::Expired => "this key has expired; ask the operator for a new one",
                    _ => "this key is no longer valid; ask the operator for a new one",
                },
            )),
            Err(ApiKeyRejection::Unavailable(why)) => Err(AuthRejection {
                class: AuthRejectionClass::Unavailable,
                reason: why,
                message: "API keys cannot be checked now, because the shared store of this gateway cannot be reached; try again later",
                oauth_rejection: None,
            }),
            Err(_) => Err(self.invalid_credentials(
                "the key is unknown".to_owned(),
                "this key is unknown, or was rotated long ago; ask the operator for a key from `toolgate keys create NAME`",
            )),
        }
    }

    /// Returns the rejection of invalid credentials.
    pub(crate) fn invalid_credentials(&self, why: String, told: &'static str) -> AuthRejection {
        let refused = self.oauth_rejection(|resource| resource.reject_credentials(told));
        AuthRejection {
            class: AuthRejectionClass::Invalid,
            reason: why,
            message: told,
            oauth_rejection: refused,
        }
    }

    /// Builds the rejection of the resource server, if an issuer is configured.
    fn oauth_rejection(
        &self,
        of: impl FnOnce(&ResourceServer) -> TokenRejection,
    ) -> Option<Box<TokenRejection>> {
        let resource = self.resource.as_ref()?;
        Some(Box::new(of(resource)))
    }

    fn missing_credentials(&self, why: &str) -> AuthRejection {
        AuthRejection {
            class: AuthRejectionClass::Missing,
            reason: why.to_owned(),
            message: "credentials required: send Authorization: Bearer KEY with a key that the operator created with `toolgate keys create NAME`",
            oauth_rejection: self.oauth_rejection(|resource| resource.reject_missing()),
        }
    }

    /// Returns the message for credentials of another authentication scheme.
    fn scheme_message(&self) -> &'static str {
        match self.requires_credentials || self.resource.is_some() {
            true => {
                "unsupported scheme in the Authorization header; send Authorization: Bearer KEY with a key that the operator created with `toolgate keys create NAME`"
            }
            false => {
                "unsupported scheme in the Authorization header; send Authorization: Bearer KEY, or no Authorization header, because none is required"
            }
        }
    }

    fn malformed_credentials(&self, why: &'static str) -> AuthRejection {
        AuthRejection {
            class: AuthRejectionClass::Malformed,
            reason: why.to_owned(),
            message: "malformed Authorization header; send it once, as Authorization: Bearer KEY",
            oauth_rejection: self.oauth_rejection(|resource| resource.reject_malformed(why)),
        }
    }
}

/// Returns the URL of another path next to the resource, which a DPoP proof has to name. `None` for the resource
/// itself. The paths of a view end with its name.
fn sibling_url(resource: &Url, view: Option<&str>, path: &str) -> Option<Url> {
    let end = view.map_or_else(String::new, |view| format!("/{view}"));
    let (folder, own) = resource.path().strip_suffix(&end)?.rsplit_once('/')?;
    let path = path.trim_start_matches('/').strip_suffix(&end)?;
    match path == own || path == MCP_SEGMENT {
        true => None,
        false => resource.with_path(&format!("{folder}/{path}{end}")).ok(),
    }
}

impl AuthRejection {
    fn from_oauth(refused: TokenRejection) -> AuthRejection {
        let how = match refused.status() {
            StatusCode::TOO_MANY_REQUESTS => AuthRejectionClass::RateLimited,
            _ if refused.had_invalid_token() => AuthRejectionClass::Invalid,
            _ => AuthRejectionClass::Missing,
        };
        AuthRejection {
            class: how,
            reason: refused.reason().to_owned(),
            message: refused.message(),
            oauth_rejection: Some(Box::new(refused)),
        }
    }

    /// Returns the status and the `WWW-Authenticate` challenge where no issuer is configured.
    pub(crate) fn challenge(&self) -> (StatusCode, &'static str) {
        match self.class {
            AuthRejectionClass::Malformed => {
                (StatusCode::BAD_REQUEST, "Bearer error=\"invalid_request\"")
            }
            AuthRejectionClass::Invalid => {
                (StatusCode::UNAUTHORIZED, "Bearer error=\"invalid_token\"")
            }
            AuthRejectionClass::Missing | AuthRejectionClass::RateLimited => {
                (StatusCode::UNAUTHORIZED, "Bearer")
            }
            AuthRejectionClass::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "Bearer"),
        }
    }
}

/// Returns the name of an HTTP caller that has neither a key nor an issuer's token.
pub(crate) fn http_caller_name(token: bool) -> &'static str {
    match token {
        true => "token@http",
        false => Caller::ANONYMOUS_HTTP,
    }
}

/// Verifies the access token with which a person returned from their issuer, as if they called a tool with it.
///
/// # Errors
/// The message is for the person.
pub(crate) async fn caller_of_token(
    resource: &ResourceServer,
    token: &Secret,
) -> Result<Caller, String> {
    let bearer = HeaderValue::from_str(&format!("Bearer {}", token.reveal()));
    let mut bearer = bearer.map_err(
        |_| "the issuer returned a token that an HTTP header cannot contain; contact the operator",
    )?;
    bearer.set_sensitive(true);
    let headers = HeaderMap::from_iter([(header::AUTHORIZATION, bearer)]);
    let verified = resource.authenticate(&Method::POST, &headers).await;
    let verified = verified.map_err(|rejection| {
        format!(
            "the gateway rejected the issuer's token: {}; contact the operator",
            rejection.reason()
        )
    })?;
    Ok(verified.caller)
}

/// Compares two secrets by their SHA-256 digests, so that the time does not reveal where they differ.
pub(crate) fn equal_secrets(given: &str, wanted: &str) -> bool {
    let digest = |text: &str| digest::digest(&digest::SHA256, text.as_bytes());
    digest(given).as_ref() == digest(wanted).as_ref()
}

#[cfg(test)]
mod tests {
    use super::{Url, sibling_url};

    #[test]
    fn proofs_name_the_url_of_the_path_that_is_used() {
        let url = |resource: &str, view, path| {
            let resource = Url::parse(resource).unwrap();
            sibling_url(&resource, view, path).map(|url| url.as_str().to_owned())
        };
        let (whole, view) = ("https://t.test/gate/mcp", "https://t.test/gate/mcp/ops");
        assert_eq!(url(whole, None, "/mcp"), None);
        assert_eq!(url(view, Some("ops"), "/mcp/ops"), None);
        let beside = |path: &str| Some(format!("https://t.test/gate/{path}"));
        assert_eq!(url(whole, None, "/sse"), beside("sse"));
        assert_eq!(url(view, Some("ops"), "/sse/ops"), beside("sse/ops"));
    }
}
