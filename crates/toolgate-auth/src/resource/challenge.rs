//! What a client is told whose token is missing or not good.

use http::StatusCode;

/// Why a token is refused. No variant holds any of it but, for the record, whom it is for and of whom.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Why {
    /// None was shown.
    Nothing,
    /// It is not good; why, for the record.
    Invalid(&'static str),
    /// It is for somebody else; for whom, for the record.
    Elsewhere(String),
    /// The proof of possession is not good.
    Proof(&'static str),
    /// The proof needs a nonce of ours.
    Nonce,
    /// It cannot be checked now.
    Unavailable(&'static str),
    /// Its issuer cannot be asked now; why, for the record.
    Away(String),
}

/// A refusal, ready to be answered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refused {
    status: StatusCode,
    challenges: Vec<String>,
    nonce: Option<String>,
    why: Box<str>,
    tried: bool,
}

impl Refused {
    pub(super) fn new(
        why: Why,
        metadata: &str,
        scopes: &[String],
        nonce: Option<String>,
    ) -> Refused {
        let (tried, status) = match &why {
            Why::Nothing | Why::Nonce => (false, StatusCode::UNAUTHORIZED),
            Why::Unavailable(_) | Why::Away(_) => (false, StatusCode::SERVICE_UNAVAILABLE),
            Why::Invalid(_) | Why::Elsewhere(_) | Why::Proof(_) => (true, StatusCode::UNAUTHORIZED),
        };
        let (scheme, error, words) = match why {
            Why::Nothing => ("Bearer", None, "no token was shown".to_owned()),
            Why::Invalid(words) => ("Bearer", Some("invalid_token"), words.to_owned()),
            Why::Elsewhere(words) => ("Bearer", Some("invalid_token"), words),
            Why::Proof(words) => ("DPoP", Some("invalid_dpop_proof"), words.to_owned()),
            Why::Nonce => {
                let words = "the proof has no nonce of this server";
                ("DPoP", Some("use_dpop_nonce"), words.to_owned())
            }
            Why::Unavailable(words) => ("Bearer", None, words.to_owned()),
            Why::Away(words) => ("Bearer", None, words),
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
            why: words.into(),
            tried,
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

    /// Why, for the record: of the token nothing but, where it is for somebody else, whom it is for and of whom.
    pub fn why(&self) -> &str {
        &self.why
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
