//! Tokens that are signed: read strictly, and what they must say.

use super::{Claims, challenge::Why, verify::Signed};
use crate::jose::decode;
use toolgate_core::Principal;
use toolgate_wire::json::{Json, Kind, Limits};

/// How far the clocks of issuers may be off, in seconds.
pub(super) const SKEW: u64 = 60;
/// Actors of a chain that are read; a longer chain is refused.
const CHAIN: usize = 8;
/// The longest subject, client or scope, in bytes.
const WORD: usize = 255;
/// What the name of a caller without a subject begins with.
const CLIENT: &str = "client=";
/// Scopes of one token.
const SCOPES: usize = 256;

/// A token in its three parts. Nothing of it is believed yet.
pub(super) struct Parsed<'a> {
    pub(super) header: Json,
    payload: Json,
    /// What is signed.
    pub(super) text: &'a str,
    pub(super) signature: Vec<u8>,
}

impl<'a> Parsed<'a> {
    /// Reads a token; `None` for what is none.
    pub(super) fn read(token: &'a str) -> Option<Parsed<'a>> {
        let (text, signature) = token.rsplit_once('.')?;
        let (header, payload) = text.split_once('.')?;
        if payload.contains('.') {
            return None;
        }
        let object = |part: &str| {
            let json = Json::read(decode(part)?, &Limits::default()).ok()?;
            (json.kind() == Kind::Object).then_some(json)
        };
        Some(Parsed {
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

    /// How it is signed, where that is an algorithm and the header wants nothing that is not understood.
    pub(super) fn algorithm(&self) -> Result<Signed, Why> {
        if self.header.get("crit").is_some() || self.header.get("b64").is_some() {
            return Err(Why::Invalid(
                "the token has extensions that are not known here",
            ));
        }
        let name = self.header.get("alg").and_then(|alg| alg.string());
        name.and_then(|name| Signed::named(&name))
            .ok_or(Why::Invalid(
                "the token is signed by an algorithm that is not taken",
            ))
    }

    /// Whether its type is that of access tokens, or none. Proofs and tokens about logins are no access tokens.
    pub(super) fn type_fits(&self) -> bool {
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

/// What a token has to say besides.
pub(super) struct Wanted<'a> {
    pub(super) issuer: &'a str,
    /// Whom it is for: one of these.
    pub(super) resource: &'a str,
    pub(super) audiences: &'a [String],
    pub(super) now: u64,
    /// Whether it must say when it ends and whom it names.
    pub(super) strict: bool,
}

/// What a payload says, where it is good here and now.
pub(super) fn claims(payload: &Json, wanted: &Wanted<'_>) -> Result<Claims, Why> {
    let text = |key: &str| payload.get(key).and_then(|value| value.string());
    if !is_for(payload, wanted) {
        let aud = payload.get("aud").map(|aud| aud.as_str().to_owned());
        let aud = super::cut(&aud.unwrap_or_else(|| "nobody".to_owned()));
        return Err(Why::Elsewhere(format!(
            "the token is for somebody else: its aud is {aud}, its iss {}",
            super::cut(&text("iss").unwrap_or_else(|| "not said".to_owned()))
        )));
    }
    let expires = number(payload, "exp")?;
    match expires {
        Some(end) if end.saturating_add(SKEW) <= wanted.now => {
            return Err(Why::Invalid("the token has expired"));
        }
        None if wanted.strict => return Err(Why::Invalid("the token says no end")),
        _ => {}
    }
    let begins = number(payload, "nbf")?.max(number(payload, "iat")?);
    if begins.is_some_and(|begin| begin > wanted.now.saturating_add(SKEW)) {
        return Err(Why::Invalid("the token is not good yet"));
    }
    let client = match (text("client_id"), text("azp")) {
        (Some(id), _) | (None, Some(id)) => Some(word(id)?),
        (None, None) => None,
    };
    let subject = match (text("sub"), &client) {
        // So are those named who have only a client: no subject may pass for one of them.
        (Some(subject), _) if subject.starts_with(CLIENT) => {
            return Err(Why::Invalid("a name in the token cannot be one"));
        }
        (Some(subject), _) => word(subject)?,
        (None, Some(client)) if !wanted.strict => format!("{CLIENT}{client}"),
        _ => return Err(Why::Invalid("the token names nobody")),
    };
    let mut principal = Principal::new(wanted.issuer, subject);
    principal.client = client;
    principal.scopes = scopes(payload)?;
    principal.actors = actors(payload)?;
    let bound_to = match payload.get("cnf") {
        None => None,
        Some(cnf) => {
            let key = cnf.get("jkt").and_then(|jkt| jkt.string());
            // Bound to something that cannot be checked here: not to be taken for unbound.
            Some(key.ok_or(Why::Invalid(
                "the token is bound in a way that is not known here",
            ))?)
        }
    };
    Ok(Claims {
        principal,
        expires,
        bound_to,
    })
}

fn is_for(payload: &Json, wanted: &Wanted<'_>) -> bool {
    let is_us = |name: Json| {
        let name = name.string();
        name.is_some_and(|name| name == wanted.resource || wanted.audiences.contains(&name))
    };
    match payload.get("aud") {
        Some(aud) if aud.kind() == Kind::Array => aud.items().any(is_us),
        Some(aud) => is_us(aud),
        None => false,
    }
}

/// Seconds since 1970; a fraction is cut off.
fn number(payload: &Json, key: &str) -> Result<Option<u64>, Why> {
    let Some(value) = payload.get(key) else {
        return Ok(None);
    };
    let number = value
        .f64()
        .filter(|n| n.is_finite() && (0.0..=1e12).contains(n));
    let number = number.ok_or(Why::Invalid("a time in the token is none"))?;
    Ok(Some(number as u64))
}

/// A name that can stand in rules and records.
fn word(text: String) -> Result<String, Why> {
    let plain = !text.is_empty() && text.len() <= WORD && !text.chars().any(char::is_control);
    match plain && text.trim() == text {
        true => Ok(text),
        false => Err(Why::Invalid("a name in the token cannot be one")),
    }
}

fn scopes(payload: &Json) -> Result<Vec<String>, Why> {
    let mut scopes: Vec<String> = match (payload.get("scope"), payload.get("scp")) {
        (Some(scope), _) | (None, Some(scope)) => match scope.kind() {
            Kind::Array => scope.items().filter_map(|one| one.string()).collect(),
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
        scope.len() <= WORD
            && scope
                .bytes()
                .all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\')
    };
    if scopes.len() > SCOPES || !scopes.iter().all(plain) {
        return Err(Why::Invalid("the scopes of the token cannot be read"));
    }
    scopes.sort();
    scopes.dedup();
    Ok(scopes)
}

/// Who acts for the subject: `act`, and the ones before in it (RFC 8693).
fn actors(payload: &Json) -> Result<Vec<String>, Why> {
    let mut chain = Vec::new();
    let mut next = payload.get("act");
    while let Some(actor) = next {
        if chain.len() == CHAIN {
            return Err(Why::Invalid("too many act for the subject of the token"));
        }
        let name = actor.get("sub").or_else(|| actor.get("client_id"));
        let name = name.and_then(|name| name.string());
        chain.push(word(
            name.ok_or(Why::Invalid("an actor in the token has no name"))?,
        )?);
        next = actor.get("act");
    }
    Ok(chain)
}
