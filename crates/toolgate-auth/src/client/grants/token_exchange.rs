//! Token exchange: swaps the access token of a caller for one that an upstream server accepts on the caller's behalf.
//! The caller's token is sent to the token endpoint and nowhere else.
//!
//! Source: RFC 8693.

use super::{
    super::{
        AuthError, AuthErrorKind, CredentialProvider, CredentialRequest, RegisteredClient,
        RejectedResponse, RetryDecision, ScopeSet, discovery::resource_identifier,
        token_endpoint::TokenEndpoint, tokens::TokenResponse,
    },
    TOKEN_EXCHANGE_GRANT,
};
use crate::{
    Secret, Url,
    clock::now,
    fetch::{FetchLimits, PeerFetcher},
};
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

const ACCESS_TOKEN_TYPE: &str = "urn:ietf:params:oauth:token-type:access_token";
const JWT_TOKEN_TYPE: &str = "urn:ietf:params:oauth:token-type:jwt";
/// Lifetime in seconds of a token if the endpoint does not state `expires_in`.
const DEFAULT_LIFETIME_SECONDS: u64 = 60;
/// Time for which a refused exchange is not repeated, so that a caller cannot flood the token endpoint.
const EXCHANGE_REFUSAL_PAUSE: Duration = Duration::from_secs(2);

/// Settings of an OAuth token exchange ([RFC 8693]): token endpoint, client, audience and scopes.
///
/// ```
/// use toolgate_auth::{
///     Secret, Url,
///     client::{ClientAuthentication, RegisteredClient, ScopeSet, SubjectToken, TokenExchange},
/// };
///
/// let us = RegisteredClient::new("gateway", ClientAuthentication::Secret(Secret::new("s3cret")));
/// let exchange = TokenExchange::new(Url::parse("https://login.example.com/token")?, us)
///     .scopes(ScopeSet::parse("files:read"));
/// // For each caller; the closure returns the token that it presented.
/// let server = Url::parse("https://files.example.com/mcp")?;
/// let caller = exchange.on_behalf(server, || {
///     Some(SubjectToken { token: Secret::new("the token of the caller"), expires_at: None })
/// });
/// # drop(caller);
/// # Ok::<(), toolgate_auth::InvalidUrl>(())
/// ```
///
/// [RFC 8693]: https://www.rfc-editor.org/rfc/rfc8693
#[derive(Clone)]
pub struct TokenExchange {
    endpoint: Url,
    client: RegisteredClient,
    audience: Option<String>,
    scopes: ScopeSet,
}

/// Access token of a caller, as the subject of a token exchange ([RFC 8693]).
///
/// [RFC 8693]: https://www.rfc-editor.org/rfc/rfc8693
#[derive(Clone)]
pub struct SubjectToken {
    /// Access token of the caller.
    pub token: Secret,
    /// Expiry of the caller's token in seconds since the Unix epoch, if known.
    pub expires_at: Option<u64>,
}

type SubjectFn = dyn Fn() -> Option<SubjectToken> + Send + Sync;

/// Credentials of one caller at one upstream server, obtained by token exchange. Clones share the exchanged token.
#[derive(Clone)]
pub struct ExchangedCredentials(Arc<ExchangedInner>);

struct ExchangedInner {
    exchange: TokenExchange,
    server: Url,
    fetcher: PeerFetcher,
    subject: Box<SubjectFn>,
    cache: Mutex<ExchangeCache>,
    flight: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct ExchangeCache {
    token: Option<(Secret, u64)>,
    last_refusal: Option<(Instant, AuthError)>,
}

impl TokenExchange {
    /// Creates a token exchange at a token endpoint, with our client there.
    pub fn new(endpoint: Url, client: RegisteredClient) -> TokenExchange {
        TokenExchange {
            endpoint,
            client,
            audience: None,
            scopes: ScopeSet::default(),
        }
    }

    /// Sets the `audience` by which the token endpoint knows the upstream server. The URL of the server is always sent
    /// as `resource`.
    #[must_use]
    pub fn audience(self, audience: &str) -> TokenExchange {
        TokenExchange {
            audience: Some(audience.to_owned()),
            ..self
        }
    }

    /// Sets the scopes that the token exchange requests; the token endpoint decides by default.
    #[must_use]
    pub fn scopes(self, scopes: ScopeSet) -> TokenExchange {
        TokenExchange { scopes, ..self }
    }

    /// Returns the credentials of one caller at an upstream server, obtained by token exchange. `subject` returns the
    /// caller's latest token while it is valid.
    pub fn on_behalf(
        &self,
        server: Url,
        subject: impl Fn() -> Option<SubjectToken> + Send + Sync + 'static,
    ) -> ExchangedCredentials {
        ExchangedCredentials(Arc::new(ExchangedInner {
            exchange: self.clone(),
            server,
            fetcher: PeerFetcher::for_operator_url(&self.endpoint, FetchLimits::default()),
            subject: Box::new(subject),
            cache: Mutex::default(),
            flight: tokio::sync::Mutex::default(),
        }))
    }
}

impl ExchangedCredentials {
    /// Returns a valid token, from the cache or by an exchange.
    async fn token(&self) -> Result<Secret, AuthError> {
        if let Some(token) = self.cached_token() {
            return Ok(token);
        }
        let _one = self.0.flight.lock().await;
        if let Some(token) = self.cached_token() {
            return Ok(token);
        }
        // No request was sent yet, so a new token of the caller is tried at once.
        let subject = self.subject_token()?;
        if let Some((_, error)) = self
            .lock_cache()
            .last_refusal
            .as_ref()
            .filter(|(at, _)| at.elapsed() < EXCHANGE_REFUSAL_PAUSE)
        {
            return Err(error.clone());
        }
        let asked = self.request_token(subject).await;
        let mut kept = self.lock_cache();
        match asked {
            Ok((token, until)) => {
                kept.last_refusal = None;
                kept.token = Some((token.clone(), until));
                Ok(token)
            }
            Err(error) => {
                kept.last_refusal = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    fn cached_token(&self) -> Option<Secret> {
        let kept = self.lock_cache();
        let (token, until) = kept.token.as_ref()?;
        (*until > now()).then(|| token.clone())
    }

    /// Returns the caller's latest token if it is still valid.
    fn subject_token(&self) -> Result<SubjectToken, AuthError> {
        let inner = &self.0;
        let subject = (inner.subject)().filter(|s| s.expires_at.is_none_or(|until| until > now()));
        subject.ok_or_else(|| {
            let words = format!(
                "the access token of the caller, which is exchanged for a token that is valid at {}, is missing or has expired; call again with a valid token",
                inner.server.origin()
            );
            AuthError::new(AuthErrorKind::Refused, words)
        })
    }

    async fn request_token(&self, subject: SubjectToken) -> Result<(Secret, u64), AuthError> {
        let inner = &self.0;
        let set = &inner.exchange;
        let scopes = set.scopes.to_string();
        let resource = resource_identifier(&inner.server);
        let mut form = vec![
            ("grant_type", TOKEN_EXCHANGE_GRANT),
            ("resource", &resource),
            ("subject_token", subject.token.reveal()),
            ("subject_token_type", ACCESS_TOKEN_TYPE),
            ("requested_token_type", ACCESS_TOKEN_TYPE),
        ];
        if let Some(audience) = &set.audience {
            form.push(("audience", audience));
        }
        if !scopes.is_empty() {
            form.push(("scope", &scopes));
        }
        let endpoint = TokenEndpoint {
            url: &set.endpoint,
            issuer: set.endpoint.as_str(),
            basic: true,
            client: &set.client,
            fetcher: &inner.fetcher,
            binding: None,
            server: None,
        };
        let answer = endpoint.request_token(&form).await.map_err(|no| no.error)?;
        self.validate_response(answer, &subject)
    }

    fn validate_response(
        &self,
        answer: TokenResponse,
        subject: &SubjectToken,
    ) -> Result<(Secret, u64), AuthError> {
        let origin = self.0.exchange.endpoint.origin();
        let no = |what: &str| AuthError::new(AuthErrorKind::Unsafe, format!("{origin} {what}"));
        if subject.token.matches(answer.access_token.reveal()) {
            return Err(no(
                "returned the caller's own token instead of one for the server, so nothing was sent to the server; correct the token exchange there",
            ));
        }
        if answer.token_type != "bearer"
            || !matches!(
                answer.issued_token_type.as_deref(),
                Some(ACCESS_TOKEN_TYPE | JWT_TOKEN_TYPE)
            )
        {
            return Err(no(
                "issued another type of token than the requested bearer access token; correct the token exchange there",
            ));
        }
        let until = answer
            .expires_at
            .unwrap_or_else(|| now() + DEFAULT_LIFETIME_SECONDS);
        Ok((
            answer.access_token,
            subject.expires_at.map_or(until, |end| end.min(until)),
        ))
    }

    fn lock_cache(&self) -> MutexGuard<'_, ExchangeCache> {
        self.0.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CredentialProvider for ExchangedCredentials {
    fn headers<'a>(
        &'a self,
        _: CredentialRequest<'a>,
    ) -> BoxFuture<'a, Result<HeaderMap, AuthError>> {
        Box::pin(async move {
            let token = self.token().await?;
            let value = HeaderValue::from_str(&format!("Bearer {}", token.reveal()));
            let mut value =
                value.map_err(|bad| AuthError::new(AuthErrorKind::Store, bad.to_string()))?;
            value.set_sensitive(true);
            Ok(HeaderMap::from_iter([(header::AUTHORIZATION, value)]))
        })
    }

    /// Discards a rejected token and repeats the exchange once.
    fn on_rejection<'a>(
        &'a self,
        _: CredentialRequest<'a>,
        refusal: RejectedResponse<'a>,
    ) -> BoxFuture<'a, Result<RetryDecision, AuthError>> {
        Box::pin(async move {
            if refusal.status != StatusCode::UNAUTHORIZED {
                return Ok(RetryDecision::GiveUp);
            }
            let sent = refusal.sent_headers.get(header::AUTHORIZATION).cloned();
            let mut kept = self.lock_cache();
            let same = kept.token.as_ref().is_some_and(|(token, _)| {
                let value = sent.as_ref().and_then(|sent| sent.to_str().ok());
                value
                    .and_then(|v| v.strip_prefix("Bearer "))
                    .is_some_and(|v| token.matches(v))
            });
            if same {
                kept.token = None;
            }
            if refusal.previous_rejections == 0 {
                return Ok(RetryDecision::Retry);
            }
            let words = format!(
                "{} rejected the token that the token exchange returned for it; check the audience and scopes of the exchange",
                self.0.server.origin()
            );
            Err(AuthError::new(AuthErrorKind::Refused, words))
        })
    }

    fn may_wait_for_user(&self) -> bool {
        false
    }
}
