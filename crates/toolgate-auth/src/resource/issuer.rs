//! Trusted issuer: an authorization server whose tokens are accepted.

use super::{
    ClaimMapping, IssuerStatus, ResourceLimits, TokenClaims,
    challenge::RejectionReason,
    introspection::{IntrospectionCache, IntrospectionClient, IntrospectionError},
    issuer_caller,
    jwt::{self, ExpectedClaims, ParsedJwt},
    keys::{SignatureCheck, SignedText},
    metadata_cache::{AvailableKeys, IssuerEndpoints},
};
use crate::{
    Secret, Url,
    fetch::{AddressPolicy, FetchLimits, PeerFetcher},
};
use std::sync::Arc;
use toolgate_core::{Caller, Principal};
use toolgate_protocol::json::Json;

/// Reason for which a token cannot be verified although its issuer is reachable.
const UNKNOWN_KEY_REASON: &str = "the token is signed with a key that was not among the keys of its issuer when they were last fetched, a moment ago";

/// Authorization server whose access tokens a [`ResourceServer`](super::ResourceServer) accepts.
///
/// ```
/// use toolgate_auth::{Secret, Url, resource::TrustedIssuer};
///
/// // Its metadata says where its keys are.
/// let signed = TrustedIssuer::new("corp", Url::parse("https://login.example.com")?);
/// // Asks the issuer about each token, as that client.
/// let introspected = TrustedIssuer::new("partner", Url::parse("https://sso.example.net")?)
///     .introspection(None, "tools", Secret::new("s3cret"))
///     .token_prefix("pt_");
/// # drop((signed, introspected));
/// # Ok::<(), toolgate_auth::InvalidUrl>(())
/// ```
pub struct TrustedIssuer {
    id: String,
    url: Url,
    keys: Option<Url>,
    introspection: Option<IntrospectionClient>,
    introspects_signed: bool,
    requires_dpop: bool,
    prefix: String,
    audiences: Vec<String>,
    permits_private: bool,
    mapping: ClaimMapping,
}

impl TrustedIssuer {
    /// Creates a trusted issuer from its issuer identifier, a URL that tokens must contain byte for byte. `id` is the
    /// short prefix of its callers' names; colons in it become hyphens.
    pub fn new(id: impl Into<String>, url: Url) -> TrustedIssuer {
        TrustedIssuer {
            id: id.into().replace(':', "-"),
            url,
            keys: None,
            introspection: None,
            introspects_signed: false,
            requires_dpop: false,
            prefix: String::new(),
            audiences: Vec::new(),
            permits_private: false,
            mapping: ClaimMapping::default(),
        }
    }

    /// Sets the URL of the issuer's JWK set, instead of the `jwks_uri` in its metadata.
    #[must_use]
    pub fn keys(mut self, url: Url) -> TrustedIssuer {
        self.keys = Some(url);
        self
    }

    /// Enables introspection ([RFC 7662]) of the issuer's opaque tokens. We are a client at `url`, or at the endpoint
    /// of the issuer's metadata.
    ///
    /// [RFC 7662]: https://www.rfc-editor.org/rfc/rfc7662
    #[must_use]
    pub fn introspection(
        mut self,
        url: Option<Url>,
        client: &str,
        secret: Secret,
    ) -> TrustedIssuer {
        self.introspection = Some(IntrospectionClient::new(url, client, secret));
        self
    }

    /// Enables introspection of signed tokens as well, because the issuer may have revoked them. Not every server
    /// supports that. Without [`TrustedIssuer::introspection`] no token can be verified, so all are rejected.
    #[must_use]
    pub fn introspect_signed_tokens(mut self) -> TrustedIssuer {
        self.introspects_signed = true;
        self
    }

    /// Sets the prefix of the issuer's opaque tokens. Only tokens with it are introspected here, and nowhere else.
    #[must_use]
    pub fn token_prefix(mut self, prefix: &str) -> TrustedIssuer {
        self.prefix = prefix.to_owned();
        self
    }

    /// Accepts only DPoP-bound tokens of the issuer, with a proof ([RFC 9449]).
    ///
    /// [RFC 9449]: https://www.rfc-editor.org/rfc/rfc9449
    #[must_use]
    pub fn require_dpop(mut self) -> TrustedIssuer {
        self.requires_dpop = true;
        self
    }

    /// Accepts additional token audiences (`aud`), for an issuer that does not use the resource URL. Each name must be
    /// unique to this resource at the issuer: another holder of the name could replay tokens that it receives.
    #[must_use]
    pub fn audiences(mut self, names: impl IntoIterator<Item = String>) -> TrustedIssuer {
        self.audiences.extend(names);
        self
    }

    /// Sets the claims of the issuer's tokens that become groups, roles and claims of callers, for use in rules.
    #[must_use]
    pub fn map_claims(mut self, mapping: ClaimMapping) -> TrustedIssuer {
        self.mapping = mapping;
        self
    }

    /// Permits private networks for URLs that the issuer names ([`AddressPolicy::danger_and_private`]).
    /// URLs of the operator are permitted anywhere: those of [`TrustedIssuer::new`], [`TrustedIssuer::keys`] and
    /// [`TrustedIssuer::introspection`].
    #[must_use]
    pub fn danger_permit_private_addresses(mut self) -> TrustedIssuer {
        self.permits_private = true;
        self
    }

    /// Returns the HTTP client for the issuer's metadata, keys and introspection.
    pub fn fetcher(&self, limits: FetchLimits) -> PeerFetcher {
        let reach = match self.permits_private {
            true => AddressPolicy::for_server(&self.url).danger_and_private(),
            false => AddressPolicy::for_server(&self.url),
        };
        let asked = self
            .introspection
            .as_ref()
            .and_then(|with| with.url.as_ref());
        let own = [Some(&self.url), self.keys.as_ref(), asked];
        let fetcher = PeerFetcher::new(reach, limits);
        own.into_iter()
            .flatten()
            .fold(fetcher, PeerFetcher::permit_origin_of)
    }
}

/// Trusted issuer with its caches.
pub(super) struct TrustedIssuerState {
    issuer: TrustedIssuer,
    source: Arc<IssuerEndpoints>,
    introspections: IntrospectionCache,
}

impl TrustedIssuerState {
    pub(super) fn new(issuer: TrustedIssuer, fetcher: PeerFetcher) -> TrustedIssuerState {
        let asked = issuer.introspection.as_ref();
        let asked = asked.and_then(|with| with.url.clone());
        let source = IssuerEndpoints::new(issuer.url.clone(), fetcher, issuer.keys.clone(), asked);
        TrustedIssuerState {
            issuer,
            source,
            introspections: IntrospectionCache::default(),
        }
    }

    /// Returns whether an `iss` value is this issuer, byte for byte.
    pub(super) fn has_identifier(&self, named: &str) -> bool {
        self.issuer.url.as_str() == named
    }

    pub(super) fn url(&self) -> &str {
        self.issuer.url.as_str()
    }

    pub(super) fn requires_dpop(&self) -> bool {
        self.issuer.requires_dpop
    }

    /// Returns whether signed tokens are introspected too.
    pub(super) fn introspects_signed(&self) -> bool {
        self.issuer.introspects_signed
    }

    pub(super) fn can_introspect(&self) -> bool {
        self.issuer.introspection.is_some()
    }

    /// Returns the prefix of opaque tokens; empty if none is configured.
    pub(super) fn prefix(&self) -> &str {
        &self.issuer.prefix
    }

    pub(super) fn caller(&self, principal: &Principal) -> Caller {
        issuer_caller(&self.issuer.id, principal)
    }

    pub(super) fn status(&self) -> IssuerStatus {
        let (error, since) = self.source.health.failure().unzip();
        IssuerStatus {
            id: self.issuer.id.clone(),
            url: self.url().to_owned(),
            error,
            since,
        }
    }

    /// Verifies a signed token and returns its claims.
    pub(super) async fn verify_token(
        &self,
        parsed: &ParsedJwt<'_>,
        audiences: &[Url],
        (now, limits, may_ask): (u64, &ResourceLimits, bool),
    ) -> Result<TokenClaims, RejectionReason> {
        if !parsed.is_access_token_type() {
            return Err(RejectionReason::Invalid(
                "the token is a JWT of another type than an access token",
            ));
        }
        let by = parsed.algorithm()?;
        let text = |key: &str| parsed.header.get(key).and_then(|value| value.string());
        let (id, alg) = (text("kid"), text("alg").unwrap_or_default());
        let signed = SignedText {
            key: (id.as_deref(), &alg),
            algorithm: by,
            text: parsed.text.as_bytes(),
            signature: &parsed.signature,
        };
        // The claims are not trusted before the signature is verified.
        let claims = self.validate_claims(parsed.payload(), audiences, (now, true));
        match self.verify_signature(&signed, limits).await {
            SignatureCheck::Valid => {}
            SignatureCheck::Invalid => {
                return Err(RejectionReason::Invalid(
                    "the signature of the token is not valid with the keys of its issuer",
                ));
            }
            // Invalid claims reject the token whoever signed it, so the issuer is not needed.
            SignatureCheck::UnknownKey => {
                claims?;
                return Err(self.unreachable_reason(
                    "the keys of the issuer cannot be fetched",
                    UNKNOWN_KEY_REASON,
                ));
            }
        }
        let claims = claims?;
        if self.issuer.introspects_signed {
            let token = format!("{}.{}", parsed.text, crate::jose::encode(&parsed.signature));
            let with = (now, limits, may_ask);
            self.introspect(&token, audiences, with).await?;
        }
        Ok(claims)
    }

    /// Verifies a signature with the keys of the issuer. `UnknownKey`: the keys cannot be fetched now.
    async fn verify_signature(
        &self,
        signed: &SignedText<'_>,
        limits: &ResourceLimits,
    ) -> SignatureCheck {
        let fresh = self.source.fresh_keys(limits);
        let fresh = fresh.map_or(SignatureCheck::UnknownKey, |keys| keys.verify(signed));
        if fresh != SignatureCheck::UnknownKey {
            return fresh;
        }
        match self.source.refetch_keys(signed.key, limits).await {
            AvailableKeys::Fetched(keys) => match keys.verify(signed) {
                SignatureCheck::UnknownKey => SignatureCheck::Invalid,
                said => said,
            },
            // An unknown key may have been added since.
            AvailableKeys::Cached(keys) => keys.verify(signed),
            AvailableKeys::Unavailable => SignatureCheck::UnknownKey,
        }
    }

    /// Introspects a token and returns its claims.
    pub(super) async fn introspect(
        &self,
        token: &str,
        audiences: &[Url],
        (now, limits, may_ask): (u64, &ResourceLimits, bool),
    ) -> Result<TokenClaims, RejectionReason> {
        let none =
            RejectionReason::Unavailable("token introspection is not configured for the issuer");
        let with = self.issuer.introspection.as_ref().ok_or(none)?;
        if !may_ask && !self.introspections.is_known(token, limits) {
            return Err(RejectionReason::IntrospectionNotAllowed);
        }
        let url = self.source.introspection_endpoint(limits).await;
        let url = url.ok_or_else(|| {
            let words = "the introspection endpoint of the issuer cannot be found";
            self.unreachable_reason(words, words)
        })?;
        let said = self
            .introspections
            .introspect(with, (&url, &self.source), token, limits);
        let said = said.await.map_err(|no| match no {
            IntrospectionError::Unreachable => {
                let words = "the token cannot be introspected";
                self.unreachable_reason(words, words)
            }
            IntrospectionError::Busy => RejectionReason::Unavailable(
                "too many introspection requests to the issuer are running; try again later",
            ),
        })?;
        if said.get("active").and_then(|active| active.bool()) != Some(true) {
            return Err(RejectionReason::Invalid(
                "the issuer reports that the token is not active",
            ));
        }
        let other = |iss: Json| iss.string().as_deref() != Some(self.url());
        if said.get("iss").is_some_and(other) {
            return Err(RejectionReason::Invalid(
                "the introspection response names another issuer (iss)",
            ));
        }
        self.validate_claims(&said, audiences, (now, false))
    }

    fn validate_claims(
        &self,
        payload: &Json,
        audiences: &[Url],
        (now, strict): (u64, bool),
    ) -> Result<TokenClaims, RejectionReason> {
        let wanted = ExpectedClaims {
            issuer: self.url(),
            resources: audiences,
            audiences: &self.issuer.audiences,
            now,
            strict,
            mapping: &self.issuer.mapping,
        };
        jwt::validate_claims(payload, &wanted)
    }

    /// Builds the reason for an unreachable issuer, with the last error if there is one; else uses `else_words`.
    fn unreachable_reason(&self, words: &str, else_words: &str) -> RejectionReason {
        match self.source.health.failure() {
            Some((cause, _)) => RejectionReason::IssuerUnreachable(format!(
                "{words} (issuer {}: {cause})",
                self.issuer.id
            )),
            None => RejectionReason::IssuerUnreachable(else_words.to_owned()),
        }
    }
}
