//! DPoP proof verification (RFC 9449): the sender holds the key that its token is bound to.

use super::{Scheme, challenge::Why, jwt::Parsed, verify::PublicKey};
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
const FRESH: u64 = 300;
/// Period in seconds for which a nonce is issued; it is accepted for one more period.
const PERIOD: u64 = 300;
/// Minimum interval in seconds between two removals of expired proofs.
const SWEEP: u64 = 10;

/// DPoP proof verifier with replay protection.
///
/// ```
/// use toolgate_auth::{Url, resource::{Proofs, ResourceServer}};
///
/// let resource = ResourceServer::new(Url::parse("https://tools.example.com/mcp")?);
/// let resource = resource.proofs(Proofs::with_nonces()?);
/// # drop(resource);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct Proofs {
    /// Key of the nonces, if proofs need one of this server.
    nonces: Option<hmac::Key>,
    seen: Mutex<Seen>,
}

/// Error of nonce creation: the system provides no random numbers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NoNonces;

impl fmt::Display for NoNonces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no DPoP nonces can be created: the system provides no random numbers")
    }
}

impl std::error::Error for NoNonces {}

/// Digests of accepted proofs and the end of their freshness.
#[derive(Default)]
struct Seen {
    proofs: HashMap<[u8; 32], u64>,
    swept: u64,
}

/// Parts of a request that a DPoP proof covers.
pub(super) struct Request<'a> {
    pub(super) method: &'a Method,
    /// Request URL.
    pub(super) address: &'a Url,
    pub(super) headers: &'a HeaderMap,
    pub(super) token: &'a str,
    pub(super) scheme: Scheme,
    pub(super) required: bool,
    /// Maximum number of remembered proofs.
    pub(super) most: usize,
}

impl Proofs {
    /// Creates a verifier that requires a nonce of this server in each proof, so that none can be made in advance.
    ///
    /// # Errors
    /// The system provides no random numbers.
    pub fn with_nonces() -> Result<Proofs, NoNonces> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
        let key = key.map_err(|_| NoNonces)?;
        Ok(Proofs {
            nonces: Some(key),
            ..Proofs::default()
        })
    }

    /// Returns the current nonce.
    pub(super) fn nonce(&self, now: u64) -> Option<String> {
        self.nonce_of(now / PERIOD)
    }

    fn nonce_of(&self, period: u64) -> Option<String> {
        let tag = hmac::sign(self.nonces.as_ref()?, &period.to_be_bytes());
        Some(jose::encode(tag.as_ref()))
    }

    /// Verifies the DPoP proof of a request. A bound token needs a proof whatever its scheme. An unbound token must not
    /// use the `DPoP` scheme.
    pub(super) fn check(
        &self,
        request: &Request<'_>,
        bound_to: Option<&str>,
        now: u64,
    ) -> Result<(), Why> {
        let Some(bound_to) = bound_to else {
            return match (request.scheme, request.required) {
                (Scheme::Bearer, false) => Ok(()),
                (Scheme::Bearer, true) => Err(Why::Unbound),
                (Scheme::Dpop, _) => Err(Why::Proof("the token is not bound to a key")),
            };
        };
        if request.scheme == Scheme::Bearer {
            return Err(Why::Invalid(
                "the token is DPoP-bound but was sent without a proof",
            ));
        }
        let mut shown = request.headers.get_all("dpop").iter();
        let (Some(proof), None) = (shown.next(), shown.next()) else {
            return Err(Why::Proof(
                "the request does not have exactly one DPoP proof",
            ));
        };
        let proof = proof
            .to_str()
            .ok()
            .filter(|text| text.len() <= super::LONGEST);
        let proof = proof
            .and_then(Parsed::read)
            .ok_or(Why::Proof("the proof cannot be read"))?;
        let thumbprint = signed(&proof)?;
        if thumbprint != bound_to {
            return Err(Why::Proof("the proof is signed with another key"));
        }
        let text = |key: &str| proof.payload().get(key).and_then(|value| value.string());
        if text("htm").as_deref() != Some(request.method.as_str()) {
            return Err(Why::Proof("the proof is for another method"));
        }
        let at = text("htu").and_then(|htu| Url::parse(htu.split(['?', '#']).next()?).ok());
        let here =
            |url: &Url| url.same_origin(request.address) && url.path() == request.address.path();
        if !at.as_ref().is_some_and(here) {
            return Err(Why::Proof("the proof is for another URL"));
        }
        let ath = jose::encode(digest(&SHA256, request.token.as_bytes()).as_ref());
        if text("ath").as_deref() != Some(ath.as_str()) {
            return Err(Why::Proof("the proof is for another token"));
        }
        let made = proof.payload().get("iat").and_then(|iat| iat.u64());
        let made = made.ok_or(Why::Proof("the proof has no iat"))?;
        if made.abs_diff(now) > FRESH {
            return Err(Why::Proof(
                "the proof is too old, or its iat is in the future",
            ));
        }
        self.check_nonce(text("nonce"), now)?;
        let id = text("jti").filter(|id| !id.is_empty());
        let id = id.ok_or(Why::Proof("the proof has no jti"))?;
        self.once(&thumbprint, &id, (made, now), request.most)
    }

    fn check_nonce(&self, nonce: Option<String>, now: u64) -> Result<(), Why> {
        if self.nonces.is_none() {
            return Ok(());
        }
        let period = now / PERIOD;
        let good = [period, period.saturating_sub(1)].map(|period| self.nonce_of(period));
        match nonce.is_some() && good.contains(&nonce) {
            true => Ok(()),
            false => Err(Why::Nonce),
        }
    }

    /// Records a proof, which is valid once. Rejects it if it was seen before or cannot be remembered.
    fn once(
        &self,
        thumbprint: &str,
        id: &str,
        (made, now): (u64, u64),
        most: usize,
    ) -> Result<(), Why> {
        let mut key = [0; 32];
        let name = format!("{thumbprint} {id}");
        key.copy_from_slice(digest(&SHA256, name.as_bytes()).as_ref());
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.proofs.len() >= most && seen.swept + SWEEP <= now {
            seen.swept = now;
            seen.proofs.retain(|_, until| *until >= now);
        }
        if seen.proofs.len() >= most {
            return Err(Why::Unavailable("too many proofs were used recently"));
        }
        match seen.proofs.insert(key, made + FRESH) {
            Some(until) if until >= now => Err(Why::Proof("the proof was used before")),
            _ => Ok(()),
        }
    }
}

/// Verifies the self-signature of a proof and returns the thumbprint of its key.
fn signed(proof: &Parsed<'_>) -> Result<String, Why> {
    let typ = proof.header.get("typ").and_then(|typ| typ.string());
    if typ.as_deref() != Some("dpop+jwt") {
        return Err(Why::Proof("the proof has another type"));
    }
    let by = proof
        .algorithm()
        .map_err(|_| Why::Proof("the proof is signed with an unsupported algorithm"))?;
    let jwk = proof
        .header
        .get("jwk")
        .ok_or(Why::Proof("the proof has no key"))?;
    let key = PublicKey::read(&jwk).ok_or(Why::Proof("the key of the proof is invalid"))?;
    if !key.verifies(by, proof.text.as_bytes(), &proof.signature) {
        return Err(Why::Proof("the proof is not signed by its key"));
    }
    PublicKey::thumbprint(&jwk).ok_or(Why::Proof("the key of the proof is invalid"))
}
