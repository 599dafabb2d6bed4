//! What a client is told whose token is missing or not good.

use http::StatusCode;

/// Where clients look for the metadata of a resource.
pub(super) const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// Why a token is refused. No variant holds any of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Why {
    /// None was shown.
    Nothing,
    /// It is not good; why, for the record.
    Invalid(&'static str),
    /// The proof of possession is not good.
    Proof(&'static str),
    /// The proof needs a nonce of ours.
    Nonce,
    /// The issuer cannot be asked now.
    Unavailable(&'static str),
}

/// A refusal, ready to be answered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refused {
    status: StatusCode,
    challenges: Vec<String>,
    nonce: Option<String>,
    why: &'static str,
    tried: bool,
}

impl Refused {
    pub(super) fn new(
        why: Why,
        metadata: &str,
        scopes: &[String],
        nonce: Option<String>,
    ) -> Refused {
        let mut status = StatusCode::UNAUTHORIZED;
        let (scheme, error, words) = match why {
            Why::Nothing => ("Bearer", None, "no token was shown"),
            Why::Invalid(words) => ("Bearer", Some("invalid_token"), words),
            Why::Proof(words) => ("DPoP", Some("invalid_dpop_proof"), words),
            Why::Nonce => (
                "DPoP",
                Some("use_dpop_nonce"),
                "the proof has no nonce of this server",
            ),
            Why::Unavailable(words) => {
                status = StatusCode::SERVICE_UNAVAILABLE;
                ("Bearer", None, words)
            }
        };
        let mut challenge = format!("{scheme} resource_metadata=\"{metadata}\"");
        if let Some(error) = error {
            challenge.push_str(&format!(", error=\"{error}\""));
        }
        if !scopes.is_empty() {
            challenge.push_str(&format!(", scope=\"{}\"", scopes.join(" ")));
        }
        Refused {
            status,
            challenges: Vec::from_iter((status == StatusCode::UNAUTHORIZED).then_some(challenge)),
            nonce,
            why: words,
            tried: !matches!(why, Why::Nothing | Why::Nonce | Why::Unavailable(_)),
        }
    }

    /// 401, or 503 where the issuer cannot be asked.
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
        match (self.status, self.tried) {
            (StatusCode::SERVICE_UNAVAILABLE, _) => "tokens cannot be checked now; try again later",
            (_, true) => "this token is not good here; sign in again",
            (_, false) => {
                "a token is needed here: the header WWW-Authenticate says where to get one"
            }
        }
    }

    /// Why, for the record: never a part of the token.
    pub fn why(&self) -> &'static str {
        self.why
    }

    /// Whether a token was shown that is not good.
    pub fn tried(&self) -> bool {
        self.tried
    }
}

/// The challenge to a client whose token lacks scopes.
pub(super) fn insufficient(scopes: &[String], metadata: &str) -> String {
    format!(
        "Bearer resource_metadata=\"{metadata}\", error=\"insufficient_scope\", scope=\"{}\"",
        scopes.join(" ")
    )
}
