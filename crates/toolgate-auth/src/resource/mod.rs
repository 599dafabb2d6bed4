//! OAuth resource server: authenticates callers by their access tokens.
//!
//! - `credentials`: credentials of a request. - `jwt`: signed access tokens. - `key_lifetime`: JWK set of an issuer.
//! - `introspection`: introspection of opaque tokens. - `dpop`: DPoP proofs. - `challenge`: rejections and challenges.
//! - `claim_mapping`: groups, roles and claims of callers. - `issuer`: trusted issuer. - `metadata_cache`: cache of its metadata and keys. - `single_flight`: single-flight cache.
//! - `issuer_health`: health of an issuer. - `revocation`: revocation during open streams.
//!
//! Source: the pages on authorization of all revisions; RFC 6750, 7519, 7662, 8693, 8725, 9068, 9449, 9728.

mod challenge;
mod claim_mapping;
mod credentials;
mod dpop;
pub(crate) mod fuzz;
mod introspection;
mod issuer;
mod issuer_health;
mod jwt;
mod keys;
mod metadata_cache;
mod revocation;
mod single_flight;
#[cfg(test)]
mod tests;
mod verify;

pub use challenge::TokenRejection;
pub use claim_mapping::{ClaimMapping, ClaimPath};
pub use credentials::{RequestCredentials, TokenScheme};
pub use dpop::{DpopVerifier, NonceKeyError};
pub use issuer::TrustedIssuer;
pub use issuer_health::IssuerStatus;

use crate::{
    Url,
    clock::now,
    fetch::{FetchLimits, PeerFetcher},
    metadata::RESOURCE_METADATA_PATH,
};
use challenge::{ChallengeParameters, RejectionReason};
use http::{HeaderMap, Method};
use issuer::TrustedIssuerState;
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use toolgate_core::{Caller, CallerAttributes, Principal};

/// Maximum length of an access token in bytes.
const MAX_ACCESS_TOKEN_BYTES: usize = 16 * 1024;

/// OAuth resource server: accepts access tokens that its trusted issuers issued for its URL.
///
/// ```
/// use http::{HeaderMap, Method};
/// use toolgate_auth::{Url, resource::{TrustedIssuer, ResourceServer}};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let login = Url::parse("https://login.example.com")?;
/// let resource = ResourceServer::new(Url::parse("https://tools.example.com/mcp")?)
///     .issuer(TrustedIssuer::new("corp", login))
///     .scopes(["files:read".to_owned()]);
/// let shown = HeaderMap::new();
/// match resource.authenticate(&Method::POST, &shown).await {
///     Ok(admitted) => println!("{} calls", admitted.caller.name()),
///     Err(refused) => println!("{}: {}", refused.status(), refused.message()),
/// }
/// # Ok(())
/// # }
/// ```
pub struct ResourceServer {
    resource: Url,
    /// Audiences of accepted tokens: the URL of the resource, and those of the resources that contain it.
    audiences: Vec<Url>,
    scopes: Vec<String>,
    issuers: Vec<Arc<TrustedIssuerState>>,
    proofs: Arc<DpopVerifier>,
    limits: ResourceLimits,
    introspects_everywhere: bool,
}

/// Cache times and limits of a [`ResourceServer`].
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ResourceLimits {
    /// Cache time of an introspection response, during which a revoked token is still accepted; 5 s by default.
    pub introspection_lifetime: Duration,
    /// Cache time of an issuer's public keys; six times as long while the issuer is unreachable; 10 min by default.
    pub key_lifetime: Duration,
    /// Minimum interval between two fetches of an issuer's keys or metadata; 30 s by default.
    pub min_fetch_interval: Duration,
    /// Interval of repeated introspection while a stream that the token opened is open; 1 min by default.
    pub introspection_recheck: Duration,
    /// Maximum number of concurrent introspections per issuer; others wait up to one request timeout; 32 by default.
    pub max_introspections: usize,
    /// Maximum number of remembered DPoP proofs; above it, proofs are rejected until old ones expire; 262,144 by
    /// default.
    pub max_proofs: usize,
}

impl Default for ResourceLimits {
    fn default() -> ResourceLimits {
        ResourceLimits {
            introspection_lifetime: Duration::from_secs(5),
            key_lifetime: Duration::from_secs(600),
            min_fetch_interval: Duration::from_secs(30),
            introspection_recheck: Duration::from_secs(60),
            max_introspections: 32,
            max_proofs: 262_144,
        }
    }
}

/// Result of token verification: the caller, and the time at which the authentication ends.
#[non_exhaustive]
pub struct VerifiedToken {
    /// Caller with the claims of the token, named `ISSUER:SUBJECT` with the short id of the issuer.
    pub caller: Caller,
    /// End of the authentication: expiry of the token plus the tolerated clock skew.
    pub expires_at: Option<SystemTime>,
}

impl ResourceServer {
    /// Creates an OAuth resource server at a URL, which is the audience of its tokens, byte for byte.
    pub fn new(resource: Url) -> ResourceServer {
        ResourceServer {
            audiences: vec![resource.clone()],
            resource,
            scopes: Vec::new(),
            issuers: Vec::new(),
            proofs: Arc::default(),
            limits: ResourceLimits::default(),
            introspects_everywhere: false,
        }
    }

    /// Adds a trusted issuer, whose tokens the resource server accepts. URLs of the operator are permitted anywhere,
    /// also in a private network. URLs that the issuer names must be public, or on loopback if the issuer is.
    #[must_use]
    pub fn issuer(self, issuer: TrustedIssuer) -> ResourceServer {
        let fetcher = issuer.fetcher(FetchLimits::default());
        self.issuer_with_fetcher(issuer, fetcher)
    }

    /// Adds a trusted issuer with an HTTP client of your own. It is [`TrustedIssuer::fetcher`] with other limits, or
    /// another one.
    #[must_use]
    pub fn issuer_with_fetcher(
        mut self,
        issuer: TrustedIssuer,
        fetcher: PeerFetcher,
    ) -> ResourceServer {
        self.issuers
            .push(Arc::new(TrustedIssuerState::new(issuer, fetcher)));
        self
    }

    /// Returns a resource server for a part of this resource at another URL, such as a view of a gateway. It accepts
    /// tokens for its own URL and for this resource, and shares the issuers, their caches and the DPoP proofs.
    #[must_use]
    pub fn part(&self, resource: Url) -> ResourceServer {
        let mut audiences = vec![resource.clone()];
        audiences.extend(self.audiences.iter().cloned());
        ResourceServer {
            resource,
            audiences,
            scopes: self.scopes.clone(),
            issuers: self.issuers.clone(),
            proofs: self.proofs.clone(),
            limits: self.limits.clone(),
            introspects_everywhere: self.introspects_everywhere,
        }
    }

    /// Sets the scopes that the protected resource metadata lists, and challenges to clients without a token.
    #[must_use]
    pub fn scopes(mut self, scopes: impl IntoIterator<Item = String>) -> ResourceServer {
        self.scopes = scopes.into_iter().filter(is_resource_scope).collect();
        self.scopes.sort();
        self.scopes.dedup();
        self
    }

    /// Sets the verifier of DPoP proofs.
    #[must_use]
    pub fn proofs(mut self, proofs: DpopVerifier) -> ResourceServer {
        self.proofs = Arc::new(proofs);
        self
    }

    /// Takes over the remembered DPoP proofs of the resource server that this one replaces. None of them can then be
    /// replayed.
    #[must_use]
    #[doc(hidden)]
    pub fn with_proofs_of(mut self, previous: &ResourceServer) -> ResourceServer {
        self.proofs = previous.proofs.clone();
        self
    }

    /// Sets the cache times and limits of the resource server.
    #[must_use]
    pub fn limits(mut self, limits: ResourceLimits) -> ResourceServer {
        self.limits = limits;
        self
    }

    /// Introspects an opaque token without a known prefix at every issuer in turn, until one accepts it. Each issuer
    /// then sees tokens of the others. By default only the first issuer is asked.
    #[must_use]
    pub fn danger_introspect_at_every_issuer(mut self) -> ResourceServer {
        self.introspects_everywhere = true;
        self
    }

    /// Authenticates a request to the resource URL by its access token. The token must be in a single `Authorization`
    /// header.
    ///
    /// # Errors
    /// [`TokenRejection`]: no token or an invalid one. It contains the response for the client.
    pub async fn authenticate(
        &self,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<VerifiedToken, TokenRejection> {
        self.authenticate_at(&self.resource, method, headers, true)
            .await
    }

    /// Authenticates a request to any URL of the resource by its access token. DPoP proofs must name that URL. If
    /// `may_introspect` is false, accepts only tokens that are verified locally or have a cached introspection
    /// response.
    ///
    /// # Errors
    /// [`TokenRejection`]: as for [`authenticate`](ResourceServer::authenticate).
    #[doc(hidden)]
    pub async fn authenticate_at(
        &self,
        address: &Url,
        method: &Method,
        headers: &HeaderMap,
        may_introspect: bool,
    ) -> Result<VerifiedToken, TokenRejection> {
        let now = now();
        let result = self
            .verify_request(address, method, headers, (now, may_introspect))
            .await;
        result.map_err(|why| self.reject(why, now))
    }

    /// Creates the rejection of invalid credentials that are not an access token, for example an API key. It has the
    /// challenge of an invalid token and the given text for the user.
    #[doc(hidden)]
    pub fn reject_credentials(&self, user_message: &'static str) -> TokenRejection {
        self.reject(RejectionReason::Invalid(user_message), now())
            .with_message(user_message)
    }

    /// Creates the rejection of a request without credentials.
    #[doc(hidden)]
    pub fn reject_missing(&self) -> TokenRejection {
        self.reject(RejectionReason::MissingToken, now())
    }

    /// Creates the rejection of credentials that cannot be parsed, with the reason.
    #[doc(hidden)]
    pub fn reject_malformed(&self, reason: &'static str) -> TokenRejection {
        self.reject(RejectionReason::Malformed(reason), now())
    }

    /// Returns the URL of the protected resource, the audience of its tokens.
    pub fn resource(&self) -> &Url {
        &self.resource
    }

    async fn verify_request(
        &self,
        address: &Url,
        method: &Method,
        headers: &HeaderMap,
        (now, may_ask): (u64, bool),
    ) -> Result<VerifiedToken, RejectionReason> {
        let (scheme, token) = match RequestCredentials::from_headers(headers) {
            RequestCredentials::Missing | RequestCredentials::OtherScheme => {
                return Err(RejectionReason::MissingToken);
            }
            RequestCredentials::Malformed(why) => return Err(RejectionReason::Malformed(why)),
            RequestCredentials::Token(scheme, token) => (scheme, token),
        };
        if token.len() > MAX_ACCESS_TOKEN_BYTES {
            return Err(RejectionReason::Invalid("the token is too long"));
        }
        let (claims, issuer) = self.verify_token(token, (now, may_ask)).await?;
        self.proofs.verify(
            &dpop::ProofRequest {
                method,
                url: address,
                headers,
                token,
                scheme,
                required: issuer.requires_dpop(),
                max_remembered: self.limits.max_proofs,
            },
            claims.key_thumbprint.as_deref(),
            now,
        )?;
        let until = claims.expires.and_then(|end| {
            UNIX_EPOCH.checked_add(Duration::from_secs(end + jwt::CLOCK_SKEW_SECONDS))
        });
        Ok(VerifiedToken {
            caller: issuer
                .caller(&claims.principal)
                .with_attributes(claims.attributes),
            expires_at: until,
        })
    }

    /// Verifies a token and returns its claims and its issuer.
    async fn verify_token(
        &self,
        token: &str,
        (now, may_ask): (u64, bool),
    ) -> Result<(TokenClaims, &TrustedIssuerState), RejectionReason> {
        let Some(parsed) = jwt::ParsedJwt::parse(token) else {
            return self.introspect_opaque(token, (now, may_ask)).await;
        };
        let issuer = parsed.issuer();
        let issuer = issuer.ok_or(RejectionReason::Invalid("the token has no iss claim"))?;
        let issuer = self
            .issuers
            .iter()
            .find(|known| known.has_identifier(&issuer));
        let issuer = issuer.ok_or(RejectionReason::Invalid(
            "the issuer of the token is not trusted here",
        ))?;
        let with = (now, &self.limits, may_ask);
        Ok((
            issuer.verify_token(&parsed, &self.audiences, with).await?,
            issuer.as_ref(),
        ))
    }

    /// Introspects an opaque token. The issuer with the longest matching prefix is asked.
    async fn introspect_opaque(
        &self,
        token: &str,
        (now, may_ask): (u64, bool),
    ) -> Result<(TokenClaims, &TrustedIssuerState), RejectionReason> {
        let issuers = || self.issuers.iter().map(Arc::as_ref);
        let asked = || issuers().filter(|known| known.can_introspect());
        let named = asked().filter(|known| !known.prefix().is_empty());
        let named = named.filter(|known| token.starts_with(known.prefix()));
        let candidates: Vec<&TrustedIssuerState> =
            match named.max_by_key(|known| known.prefix().len()) {
                Some(named) => vec![named],
                None => {
                    let most = if self.introspects_everywhere {
                        usize::MAX
                    } else {
                        1
                    };
                    let rest = asked().filter(|known| known.prefix().is_empty());
                    rest.take(most).collect()
                }
            };
        let mut why = RejectionReason::Invalid(
            "the token is not a JWT, and no configured issuer introspects tokens with its prefix",
        );
        for issuer in candidates {
            let with = (now, &self.limits, may_ask);
            let said = issuer.introspect(token, &self.audiences, with);
            match said.await {
                Ok(claims) => return Ok((claims, issuer)),
                // An issuer that could not be asked may know the token, whatever the others answer.
                Err(no) => {
                    why = if matches!(
                        why,
                        RejectionReason::Unavailable(_)
                            | RejectionReason::IssuerUnreachable(_)
                            | RejectionReason::IntrospectionNotAllowed
                    ) {
                        why
                    } else {
                        no
                    }
                }
            }
        }
        Err(why)
    }

    /// Returns the health of each trusted issuer, as known from earlier requests.
    pub fn issuer_status(&self) -> Vec<IssuerStatus> {
        self.issuers.iter().map(|issuer| issuer.status()).collect()
    }

    fn reject(&self, why: RejectionReason, now: u64) -> TokenRejection {
        let nonce = match &why {
            RejectionReason::MissingNonce => self.proofs.nonce(now),
            _ => None,
        };
        let metadata = self.metadata_url();
        TokenRejection::new(
            why,
            &self.challenge_parameters(&metadata, &self.scopes),
            nonce,
        )
    }

    fn challenge_parameters<'a>(
        &self,
        metadata: &'a str,
        scopes: &'a [String],
    ) -> ChallengeParameters<'a> {
        ChallengeParameters {
            metadata_url: metadata,
            scopes,
            accepts_bearer: !self.requires_dpop(),
            accepts_dpop: self.issuers.iter().any(|issuer| issuer.requires_dpop()),
        }
    }

    /// Returns whether every issuer requires DPoP-bound tokens.
    fn requires_dpop(&self) -> bool {
        self.issuers.iter().all(|issuer| issuer.requires_dpop()) && !self.issuers.is_empty()
    }

    /// Returns the `insufficient_scope` challenge for a token that lacks scopes.
    pub fn insufficient_scope_challenge(&self, scopes: &[String]) -> String {
        let scopes: Vec<String> = scopes
            .iter()
            .filter(|s| is_resource_scope(s))
            .cloned()
            .collect();
        challenge::insufficient_scope(&self.challenge_parameters(&self.metadata_url(), &scopes))
    }

    /// Returns the path of the protected resource metadata ([RFC 9728]): the well-known path, then the resource path.
    ///
    /// [RFC 9728]: https://www.rfc-editor.org/rfc/rfc9728
    pub fn metadata_path(&self) -> String {
        match self.resource.path() {
            "/" => RESOURCE_METADATA_PATH.to_owned(),
            path => format!("{}{path}", RESOURCE_METADATA_PATH),
        }
    }

    /// Returns whether clients request the protected resource metadata at this path.
    pub fn is_metadata_path(&self, path: &str) -> bool {
        path == RESOURCE_METADATA_PATH || path == self.metadata_path()
    }

    fn metadata_url(&self) -> String {
        format!("{}{}", self.resource.origin(), self.metadata_path())
    }

    /// Returns the protected resource metadata ([RFC 9728]) as JSON.
    ///
    /// [RFC 9728]: https://www.rfc-editor.org/rfc/rfc9728
    pub fn metadata(&self) -> String {
        let servers: Vec<&str> = self.issuers.iter().map(|issuer| issuer.url()).collect();
        let mut document = serde_json::json!({
            "resource": self.resource.as_str(),
            "authorization_servers": servers,
            "bearer_methods_supported": ["header"],
            "dpop_signing_alg_values_supported": verify::DPOP_ALGORITHMS,
        });
        if !self.scopes.is_empty() {
            document["scopes_supported"] = self.scopes.clone().into();
        }
        if self.requires_dpop() {
            document["dpop_bound_access_tokens_required"] = true.into();
        }
        document.to_string()
    }
}

/// Validated claims of a token.
pub(crate) struct TokenClaims {
    principal: Principal,
    /// Groups, roles and claims that the issuer's mapping names.
    attributes: CallerAttributes,
    /// Expiry in seconds since the Unix epoch.
    expires: Option<u64>,
    /// Thumbprint of the key that the token is bound to.
    key_thumbprint: Option<String>,
}

/// Returns whether a scope belongs to the resource. `offline_access` is between client and issuer.
fn is_resource_scope(scope: &String) -> bool {
    scope != "offline_access"
}

/// Sanitizes foreign text for an audit record: visible, on one line, at most 200 characters.
fn sanitize_for_audit(words: &str) -> String {
    let words = toolgate_core::visible_line(words);
    match words.char_indices().nth(200) {
        Some((at, _)) => format!("{}…", &words[..at]),
        None => words,
    }
}

/// Returns the caller of an issuer, named by its short id (without colons) and the subject.
pub(crate) fn issuer_caller(id: &str, principal: &Principal) -> Caller {
    let name: Arc<str> = format!("{id}:{}", principal.subject).into();
    Caller::new(name).with_principal(principal.clone())
}
