//! What a client is told whose token is missing or not good.

use super::verify::PROOFS;
use http::StatusCode;

/// Why a token is refused. No variant holds any of it but, for the record, whom it is for and of whom.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Why {
    /// None was shown.
    Nothing,
    /// What was shown cannot be read; why.
    Malformed(&'static str),
    /// It is not good; why, for the record.
    Invalid(&'static str),
    /// It is for somebody else; for whom, for the record.
    Elsewhere(String),
    /// It is good for whoever has it, and its issuer's are to be bound to a key.
    Unbound,
    /// The proof of possession is not good.
    Proof(&'static str),
    /// The proof needs a nonce of ours.
    Nonce,
    /// It cannot be checked now.
    Unavailable(&'static str),
    /// Its issuer cannot be asked now; why, for the record.
    Away(String),
    /// The issuer would have to be asked, and may not be for this request.
    Unasked,
}

/// What stands in each challenge of a server.
pub(super) struct Words<'a> {
    /// Where its metadata is.
    pub(super) metadata: &'a str,
    pub(super) scopes: &'a [String],
    /// Whether tokens are taken that are not bound to a key.
    pub(super) bearer: bool,
    /// Whether some are taken with a proof only.
    pub(super) proofs: bool,
}

/// A refusal, ready to be answered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refused {
    status: StatusCode,
    challenges: Vec<String>,
    nonce: Option<String>,
    why: Box<str>,
    told: &'static str,
    tried: bool,
}

/// Said of every token that is not good.
const NOT_GOOD: &str = "this token is not good here; sign in again";

impl Refused {
    pub(super) fn new(why: Why, words: &Words<'_>, nonce: Option<String>) -> Refused {
        let no = StatusCode::UNAUTHORIZED;
        let (status, error, said) = match &why {
            Why::Nothing => (no, None, "no token was shown"),
            Why::Malformed(said) => (StatusCode::BAD_REQUEST, Some("invalid_request"), *said),
            Why::Invalid(said) => (no, Some("invalid_token"), *said),
            Why::Elsewhere(said) => (no, Some("invalid_token"), said.as_str()),
            Why::Unbound => (no, Some("invalid_token"), "the token is not bound to a key"),
            Why::Proof(said) => (no, Some("invalid_dpop_proof"), *said),
            Why::Nonce => {
                let said = "the proof has no nonce of this server";
                (no, Some("use_dpop_nonce"), said)
            }
            Why::Unavailable(said) => (StatusCode::SERVICE_UNAVAILABLE, None, *said),
            Why::Away(said) => (StatusCode::SERVICE_UNAVAILABLE, None, said.as_str()),
            Why::Unasked => {
                let said = "no issuer may be asked for this request";
                (StatusCode::TOO_MANY_REQUESTS, None, said)
            }
        };
        let told = match &why {
            Why::Nothing | Why::Nonce => {
                "a token is needed here: the header WWW-Authenticate says where to get one"
            }
            Why::Malformed(_) => {
                "the header Authorization cannot be read here; send it once, as Bearer and one token"
            }
            Why::Invalid(_) | Why::Elsewhere(_) | Why::Unbound | Why::Proof(_) => NOT_GOOD,
            Why::Unavailable(_) | Why::Away(_) => "tokens cannot be checked now; try again later",
            Why::Unasked => {
                "too many wrong tokens came from this address, so the issuer of this one is not asked now; come again in a minute"
            }
        };
        let (bearer, dpop) = match &why {
            Why::Unbound | Why::Proof(_) | Why::Nonce => (false, true),
            Why::Unavailable(_) | Why::Away(_) | Why::Unasked => (false, false),
            _ => (words.bearer, words.proofs),
        };
        let bearer = bearer.then(|| challenge(false, error, words.scopes, words.metadata));
        let dpop = dpop.then(|| challenge(true, error, words.scopes, words.metadata));
        Refused {
            status,
            challenges: bearer.into_iter().chain(dpop).collect(),
            nonce,
            why: said.into(),
            told,
            tried: matches!(
                why,
                Why::Malformed(_)
                    | Why::Invalid(_)
                    | Why::Elsewhere(_)
                    | Why::Unbound
                    | Why::Proof(_)
            ),
        }
    }

    /// The same, with other words for a person.
    #[must_use]
    pub(super) fn saying(self, told: &'static str) -> Refused {
        Refused { told, ..self }
    }

    /// 401, 400 for what cannot be read, 503 where the issuer cannot be asked, or 429 where it may not be.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The values of `WWW-Authenticate`.
    pub fn challenges(&self) -> &[String] {
        &self.challenges
    }

    /// The value of `DPoP-Nonce`, where the client needs one.
    pub fn nonce(&self) -> Option<&str> {
        self.nonce.as_deref()
    }

    /// What a person can make of it; the same words for every token that is not good.
    pub fn told(&self) -> &'static str {
        self.told
    }

    /// Why, for the record: of the token nothing but, where it is for somebody else, whom it is for and of whom.
    pub fn why(&self) -> &str {
        &self.why
    }

    /// Whether a token was shown that is not good.
    pub fn tried(&self) -> bool {
        self.tried
    }
}

/// The challenge of one scheme.
fn challenge(dpop: bool, error: Option<&str>, scopes: &[String], metadata: &str) -> String {
    let mut challenge = match dpop {
        true => format!("DPoP algs=\"{}\", ", PROOFS.join(" ")),
        false => "Bearer ".to_owned(),
    };
    challenge.push_str(&format!("resource_metadata=\"{metadata}\""));
    if let Some(error) = error {
        challenge.push_str(&format!(", error=\"{error}\""));
    }
    if !scopes.is_empty() {
        challenge.push_str(&format!(", scope=\"{}\"", scopes.join(" ")));
    }
    challenge
}

/// The challenge to a client whose token lacks scopes.
pub(super) fn insufficient(words: &Words<'_>) -> String {
    let error = Some("insufficient_scope");
    challenge(!words.bearer, error, words.scopes, words.metadata)
}
