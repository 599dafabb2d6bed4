//! JWT access tokens: strict parser and claims validation.

use super::{ClaimMapping, TokenClaims, challenge::RejectionReason, verify::TokenAlgorithm};
use crate::{Url, jose::decode};
use toolgate_core::Principal;
use toolgate_protocol::json::{Json, JsonKind, JsonLimits};

/// Tolerated clock skew of issuers in seconds.
pub(super) const CLOCK_SKEW_SECONDS: u64 = 60;
/// Maximum length of an actor chain (`act`); a longer chain is rejected.
const MAX_ACTOR_CHAIN: usize = 8;
/// Maximum length of a subject, client or scope in bytes.
const MAX_CLAIM_NAME_BYTES: usize = 255;
/// Prefix of the name of a caller without a subject.
const CLIENT_NAME_PREFIX: &str = "client=";
/// Maximum number of scopes in a token.
const MAX_TOKEN_SCOPES: usize = 256;

/// Parsed JWT. Nothing of it is trusted yet.
pub(super) struct ParsedJwt<'a> {
    pub(super) header: Json,
    payload: Json,
    /// Signed text: header and payload.
    pub(super) text: &'a str,
    pub(super) signature: Vec<u8>,
}

impl<'a> ParsedJwt<'a> {
    /// Parses a JWT; `None` if the text is not one.
    pub(super) fn parse(token: &'a str) -> Option<ParsedJwt<'a>> {
        let (text, signature) = token.rsplit_once('.')?;
        let (header, payload) = text.split_once('.')?;
        if payload.contains('.') {
            return None;
        }
        let object = |part: &str| {
            let json = Json::read(decode(part)?, &JsonLimits::default()).ok()?;
            (json.kind() == JsonKind::Object).then_some(json)
        };
        Some(ParsedJwt {
            header: object(header)?,
            payload: object(payload)?,
            text,
            signature: decode(signature)?,
        })
    }

    pub(super) fn issuer(&self) -> Option<String> {
        self.payload.get("iss")?.string()
    }

    pub(super) fn payload(&self) -> &Json {
        &self.payload
    }

    /// Returns the signature algorithm. Rejects unsupported algorithms and critical header extensions.
    pub(super) fn algorithm(&self) -> Result<TokenAlgorithm, RejectionReason> {
        if self.header.get("crit").is_some() || self.header.get("b64").is_some() {
            return Err(RejectionReason::Invalid(
                "the header of the token has crit or b64, which is not supported",
            ));
        }
        let name = self.header.get("alg").and_then(|alg| alg.string());
        name.and_then(|name| TokenAlgorithm::from_name(&name))
            .ok_or(RejectionReason::Invalid(
                "the token is signed with an unsupported algorithm; the issuer must use ES256, EdDSA, PS256 or RS256",
            ))
    }

    /// Returns whether `typ` is that of access tokens or absent. A DPoP proof, for example, has another type.
    pub(super) fn is_access_token_type(&self) -> bool {
        let Some(typ) = self.header.get("typ") else {
            return true;
        };
        let typ = typ.string().map(|typ| typ.to_ascii_lowercase());
        let typ = typ
            .as_deref()
            .map(|typ| typ.strip_prefix("application/").unwrap_or(typ));
        matches!(typ, Some("jwt" | "at+jwt"))
    }
}

/// Expected claims of an access token.
pub(super) struct ExpectedClaims<'a> {
    pub(super) issuer: &'a str,
    /// Accepted audiences: URLs of resources, and the additional names.
    pub(super) resources: &'a [Url],
    pub(super) audiences: &'a [String],
    pub(super) now: u64,
    /// True if `exp` and `sub` are mandatory.
    pub(super) strict: bool,
    pub(super) mapping: &'a ClaimMapping,
}

/// Validates the claims of an access token.
pub(super) fn validate_claims(
    payload: &Json,
    wanted: &ExpectedClaims<'_>,
) -> Result<TokenClaims, RejectionReason> {
    let text = |key: &str| payload.get(key).and_then(|value| value.string());
    if !has_audience(payload, wanted) {
        let aud = payload.get("aud").map(|aud| aud.as_str().to_owned());
        let aud = super::sanitize_for_audit(&aud.unwrap_or_else(|| "missing".to_owned()));
        return Err(RejectionReason::WrongAudience(format!(
            "the token is for another audience: its aud is {aud}, its iss {}",
            super::sanitize_for_audit(&text("iss").unwrap_or_else(|| "missing".to_owned()))
        )));
    }
    let expires = numeric_date(payload, "exp")?;
    match expires {
        Some(end) if end.saturating_add(CLOCK_SKEW_SECONDS) <= wanted.now => {
            return Err(RejectionReason::Invalid("the token has expired"));
        }
        None if wanted.strict => {
            return Err(RejectionReason::Invalid("the token has no exp claim"));
        }
        _ => {}
    }
    let begins = numeric_date(payload, "nbf")?.max(numeric_date(payload, "iat")?);
    if begins.is_some_and(|begin| begin > wanted.now.saturating_add(CLOCK_SKEW_SECONDS)) {
        return Err(RejectionReason::Invalid(
            "the token is not valid yet: its nbf or iat claim is in the future",
        ));
    }
    let client = match (text("client_id"), text("azp")) {
        (Some(id), _) | (None, Some(id)) => Some(validate_name(id)?),
        (None, None) => None,
    };
    let subject = match (text("sub"), &client) {
        // This prefix marks callers that have only a client id; no subject may imitate one.
        (Some(subject), _) if subject.starts_with(CLIENT_NAME_PREFIX) => {
            return Err(RejectionReason::Invalid(
                "the sub claim of the token begins with client=, which is reserved for callers without a subject",
            ));
        }
        (Some(subject), _) => validate_name(subject)?,
        (None, Some(client)) if !wanted.strict => format!("{CLIENT_NAME_PREFIX}{client}"),
        _ => return Err(RejectionReason::Invalid("the token has no sub claim")),
    };
    let mut principal = Principal::new(wanted.issuer, subject);
    principal.client = client;
    principal.scopes = parse_scopes(payload)?;
    principal.actors = parse_actor_chain(payload)?;
    let bound_to = match payload.get("cnf") {
        None => None,
        Some(cnf) => {
            let key = cnf.get("jkt").and_then(|jkt| jkt.string());
            // Another binding, such as mTLS, cannot be verified here; the token must not count as unbound.
            Some(key.ok_or(RejectionReason::Invalid(
                "the token is bound by another method than DPoP (its cnf claim has no jkt)",
            ))?)
        }
    };
    Ok(TokenClaims {
        principal,
        attributes: wanted
            .mapping
            .attributes(payload)
            .map_err(RejectionReason::Invalid)?,
        expires,
        key_thumbprint: bound_to,
    })
}

fn has_audience(payload: &Json, wanted: &ExpectedClaims<'_>) -> bool {
    let is_us = |name: Json| {
        let name = name.string();
        name.is_some_and(|name| {
            wanted.resources.iter().any(|url| url.as_str() == name)
                || wanted.audiences.contains(&name)
        })
    };
    match payload.get("aud") {
        Some(aud) if aud.kind() == JsonKind::Array => aud.items().any(is_us),
        Some(aud) => is_us(aud),
        None => false,
    }
}

/// Returns a time in seconds since the Unix epoch; fractions are truncated.
fn numeric_date(payload: &Json, key: &str) -> Result<Option<u64>, RejectionReason> {
    let Some(value) = payload.get(key) else {
        return Ok(None);
    };
    let number = value
        .f64()
        .filter(|n| n.is_finite() && (0.0..=1e12).contains(n));
    let number = number.ok_or(RejectionReason::Invalid(
        "a time in the token (exp, nbf or iat) is not a valid number",
    ))?;
    Ok(Some(number as u64))
}

/// Validates a name for use in rules and audit records.
fn validate_name(text: String) -> Result<String, RejectionReason> {
    let plain = !text.is_empty()
        && text.len() <= MAX_CLAIM_NAME_BYTES
        && !text.chars().any(char::is_control);
    match plain && text.trim() == text {
        true => Ok(text),
        false => Err(RejectionReason::Invalid(
            "a name in the token (sub, client_id, azp or act) is empty or too long, or has spaces around it or control characters in it",
        )),
    }
}

fn parse_scopes(payload: &Json) -> Result<Vec<String>, RejectionReason> {
    let mut scopes: Vec<String> = match (payload.get("scope"), payload.get("scp")) {
        (Some(scope), _) | (None, Some(scope)) => match scope.kind() {
            JsonKind::Array => scope.items().filter_map(|one| one.string()).collect(),
            _ => {
                let text = scope.string().unwrap_or_default();
                text.split(' ')
                    .filter(|s| !s.is_empty())
                    .map(str::to_owned)
                    .collect()
            }
        },
        (None, None) => Vec::new(),
    };
    let plain = |scope: &String| {
        scope.len() <= MAX_CLAIM_NAME_BYTES
            && scope
                .bytes()
                .all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\')
    };
    if scopes.len() > MAX_TOKEN_SCOPES || !scopes.iter().all(plain) {
        return Err(RejectionReason::Invalid(
            "the scope or scp claim of the token has too many scopes or a malformed one",
        ));
    }
    scopes.sort();
    scopes.dedup();
    Ok(scopes)
}

/// Returns the actor chain of `act` (RFC 8693), outermost first.
fn parse_actor_chain(payload: &Json) -> Result<Vec<String>, RejectionReason> {
    let mut chain = Vec::new();
    let mut next = payload.get("act");
    while let Some(actor) = next {
        if chain.len() == MAX_ACTOR_CHAIN {
            return Err(RejectionReason::Invalid(
                "the act claim of the token is nested too deeply",
            ));
        }
        let name = actor.get("sub").or_else(|| actor.get("client_id"));
        let name = name.and_then(|name| name.string());
        chain.push(validate_name(name.ok_or(RejectionReason::Invalid(
            "an act claim of the token has neither sub nor client_id",
        ))?)?);
        next = actor.get("act");
    }
    Ok(chain)
}
