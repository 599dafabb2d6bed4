//! DPoP proof verification (RFC 9449): the sender holds the key that its token is bound to.

use super::{TokenScheme, challenge::RejectionReason, jwt::ParsedJwt, verify::PublicKey};
use crate::{Url, jose};
use http::{HeaderMap, Method};
use ring::{
    digest::{SHA256, digest},
    hmac,
    rand::SystemRandom,
};
use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, PoisonError},
};

/// Maximum deviation in seconds of a proof's `iat` from now, in both directions.
const MAX_PROOF_AGE_SECONDS: u64 = 300;
/// Period in seconds for which a nonce is issued; it is accepted for one more period.
const NONCE_PERIOD_SECONDS: u64 = 300;
/// Minimum interval in seconds between two removals of expired proofs.
const PROOF_SWEEP_SECONDS: u64 = 10;

/// Verifier of DPoP proofs ([RFC 9449]) with replay protection.
///
/// ```
/// use toolgate_auth::{Url, resource::{DpopVerifier, ResourceServer}};
///
/// let resource = ResourceServer::new(Url::parse("https://tools.example.com/mcp")?);
/// let resource = resource.proofs(DpopVerifier::with_nonces()?);
/// # drop(resource);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [RFC 9449]: https://www.rfc-editor.org/rfc/rfc9449
#[derive(Default)]
pub struct DpopVerifier {
    /// Key of the nonces, if proofs need one of this server.
    nonce_key: Option<hmac::Key>,
    seen: Mutex<SeenProofs>,
}

/// Error of DPoP nonce creation: the system provides no random numbers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NonceKeyError;

impl fmt::Display for NonceKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no DPoP nonces can be created: the operating system provides no random numbers; check its random device, or restart the machine")
    }
}

impl std::error::Error for NonceKeyError {}

/// Digests of accepted proofs and the end of their freshness.
#[derive(Default)]
struct SeenProofs {
    proofs: HashMap<[u8; 32], u64>,
    swept: u64,
}

/// Parts of a request that a DPoP proof covers.
pub(super) struct ProofRequest<'a> {
    pub(super) method: &'a Method,
    /// Request URL.
    pub(super) url: &'a Url,
    pub(super) headers: &'a HeaderMap,
    pub(super) token: &'a str,
    pub(super) scheme: TokenScheme,
    pub(super) required: bool,
    /// Maximum number of remembered proofs.
    pub(super) max_remembered: usize,
}

impl DpopVerifier {
    /// Creates a DPoP verifier that requires a nonce of this server in each proof.
    ///
    /// # Errors
    /// The system provides no random numbers.
    pub fn with_nonces() -> Result<DpopVerifier, NonceKeyError> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
        let key = key.map_err(|_| NonceKeyError)?;
        Ok(DpopVerifier {
            nonce_key: Some(key),
            ..DpopVerifier::default()
        })
    }

    /// Returns the current nonce.
    pub(super) fn nonce(&self, now: u64) -> Option<String> {
        self.nonce_of(now / NONCE_PERIOD_SECONDS)
    }

    fn nonce_of(&self, period: u64) -> Option<String> {
        let tag = hmac::sign(self.nonce_key.as_ref()?, &period.to_be_bytes());
        Some(jose::encode(tag.as_ref()))
    }

    /// Verifies the DPoP proof of a request. A bound token needs a proof whatever its scheme. An unbound token must not
    /// use the `DPoP` scheme.
    pub(super) fn verify(
        &self,
        request: &ProofRequest<'_>,
        bound_to: Option<&str>,
        now: u64,
    ) -> Result<(), RejectionReason> {
        let Some(bound_to) = bound_to else {
            return match (request.scheme, request.required) {
                (TokenScheme::Bearer, false) => Ok(()),
                (TokenScheme::Bearer, true) => Err(RejectionReason::NotBound),
                (TokenScheme::Dpop, _) => Err(RejectionReason::InvalidProof(
                    "the token was sent with a DPoP proof but is not DPoP-bound",
                )),
            };
        };
        if request.scheme == TokenScheme::Bearer {
            return Err(RejectionReason::Invalid(
                "the token is DPoP-bound but was sent without a DPoP proof",
            ));
        }
        let mut shown = request.headers.get_all("dpop").iter();
        let (Some(proof), None) = (shown.next(), shown.next()) else {
            return Err(RejectionReason::InvalidProof(
                "the request does not have exactly one DPoP proof",
            ));
        };
        let proof = proof
            .to_str()
            .ok()
            .filter(|text| text.len() <= super::MAX_ACCESS_TOKEN_BYTES);
        let proof = proof
            .and_then(ParsedJwt::parse)
            .ok_or(RejectionReason::InvalidProof(
                "the DPoP proof is not a valid JWT",
            ))?;
        let thumbprint = verify_self_signature(&proof)?;
        if thumbprint != bound_to {
            return Err(RejectionReason::InvalidProof(
                "the DPoP proof is signed with another key than the one that the token is bound to",
            ));
        }
        let text = |key: &str| proof.payload().get(key).and_then(|value| value.string());
        if text("htm").as_deref() != Some(request.method.as_str()) {
            return Err(RejectionReason::InvalidProof(
                "the DPoP proof (htm) is for another HTTP method than the request",
            ));
        }
        let at = text("htu").and_then(|htu| Url::parse(htu.split(['?', '#']).next()?).ok());
        let here = |url: &Url| url.same_origin(request.url) && url.path() == request.url.path();
        if !at.as_ref().is_some_and(here) {
            return Err(RejectionReason::InvalidProof(
                "the DPoP proof (htu) is for another URL than the request",
            ));
        }
        let ath = jose::encode(digest(&SHA256, request.token.as_bytes()).as_ref());
        if text("ath").as_deref() != Some(ath.as_str()) {
            return Err(RejectionReason::InvalidProof(
                "the DPoP proof (ath) is for another token than the one in the request",
            ));
        }
        let made = proof.payload().get("iat").and_then(|iat| iat.u64());
        let made = made.ok_or(RejectionReason::InvalidProof(
            "the DPoP proof has no iat claim",
        ))?;
        if made.abs_diff(now) > MAX_PROOF_AGE_SECONDS {
            return Err(RejectionReason::InvalidProof(
                "the DPoP proof is too old, or its iat is in the future",
            ));
        }
        self.check_nonce(text("nonce"), now)?;
        let id = text("jti").filter(|id| !id.is_empty());
        let id = id.ok_or(RejectionReason::InvalidProof(
            "the DPoP proof has no jti claim",
        ))?;
        self.record_use(&thumbprint, &id, (made, now), request.max_remembered)
    }

    fn check_nonce(&self, nonce: Option<String>, now: u64) -> Result<(), RejectionReason> {
        if self.nonce_key.is_none() {
            return Ok(());
        }
        let period = now / NONCE_PERIOD_SECONDS;
        let good = [period, period.saturating_sub(1)].map(|period| self.nonce_of(period));
        match nonce.is_some() && good.contains(&nonce) {
            true => Ok(()),
            false => Err(RejectionReason::MissingNonce),
        }
    }

    /// Records a proof, which is valid once. Rejects it if it was seen before or cannot be remembered.
    fn record_use(
        &self,
        thumbprint: &str,
        id: &str,
        (made, now): (u64, u64),
        most: usize,
    ) -> Result<(), RejectionReason> {
        let mut key = [0; 32];
        let name = format!("{thumbprint} {id}");
        key.copy_from_slice(digest(&SHA256, name.as_bytes()).as_ref());
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.proofs.len() >= most && seen.swept + PROOF_SWEEP_SECONDS <= now {
            seen.swept = now;
            seen.proofs.retain(|_, until| *until >= now);
        }
        if seen.proofs.len() >= most {
            return Err(RejectionReason::Unavailable(
                "too many DPoP proofs were used in the last minutes; try again later",
            ));
        }
        match seen.proofs.insert(key, made + MAX_PROOF_AGE_SECONDS) {
            Some(until) if until >= now => Err(RejectionReason::InvalidProof(
                "the DPoP proof was used before; create a new one for each request",
            )),
            _ => Ok(()),
        }
    }
}

/// Verifies the self-signature of a proof and returns the thumbprint of its key.
fn verify_self_signature(proof: &ParsedJwt<'_>) -> Result<String, RejectionReason> {
    let typ = proof.header.get("typ").and_then(|typ| typ.string());
    if typ.as_deref() != Some("dpop+jwt") {
        return Err(RejectionReason::InvalidProof(
            "the DPoP proof does not have the type (typ) dpop+jwt",
        ));
    }
    let by = proof.algorithm().map_err(|_| {
        RejectionReason::InvalidProof("the header of the DPoP proof has an unsupported algorithm or critical extensions; the client must use ES256, EdDSA, PS256 or RS256")
    })?;
    let jwk = proof
        .header
        .get("jwk")
        .ok_or(RejectionReason::InvalidProof(
            "the DPoP proof has no key (jwk)",
        ))?;
    let key = PublicKey::from_jwk(&jwk).ok_or(RejectionReason::InvalidProof(
        "the key (jwk) of the DPoP proof is invalid",
    ))?;
    if !key.verifies(by, proof.text.as_bytes(), &proof.signature) {
        return Err(RejectionReason::InvalidProof(
            "the signature of the DPoP proof is not valid with its key (jwk)",
        ));
    }
    PublicKey::thumbprint(&jwk).ok_or(RejectionReason::InvalidProof(
        "the key (jwk) of the DPoP proof is invalid",
    ))
}
