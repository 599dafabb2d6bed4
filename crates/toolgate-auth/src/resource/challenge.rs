//! Rejections and `WWW-Authenticate` challenges.

use super::verify::DPOP_ALGORITHMS;
use http::StatusCode;

/// Reason for which a token is rejected. No variant contains the token; audience and issuer appear for the audit log.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum RejectionReason {
    /// The request has no token.
    MissingToken,
    /// The credentials cannot be parsed; with the reason.
    Malformed(&'static str),
    /// The token is invalid; with the reason for the audit log.
    Invalid(&'static str),
    /// The token has another audience; with its audience and issuer for the audit log.
    WrongAudience(String),
    /// The token is a bearer token, but its issuer requires DPoP-bound tokens.
    NotBound,
    /// The DPoP proof is invalid; with the reason.
    InvalidProof(&'static str),
    /// The DPoP proof needs a nonce of this server.
    MissingNonce,
    /// The token cannot be verified at the moment; with the reason.
    Unavailable(&'static str),
    /// The issuer is unreachable; with the reason for the audit log.
    IssuerUnreachable(String),
    /// Introspection would be necessary and is not permitted for this request.
    IntrospectionNotAllowed,
}

/// Parameters of every challenge of a resource server.
pub(super) struct ChallengeParameters<'a> {
    /// URL of the protected resource metadata.
    pub(super) metadata_url: &'a str,
    pub(super) scopes: &'a [String],
    /// True if bearer tokens without DPoP are accepted.
    pub(super) accepts_bearer: bool,
    /// True if some issuers require DPoP-bound tokens.
    pub(super) accepts_dpop: bool,
}

/// Rejection of an unauthenticated request: HTTP status, challenges and reason.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TokenRejection {
    status: StatusCode,
    challenges: Vec<String>,
    nonce: Option<String>,
    reason: Box<str>,
    message: &'static str,
    had_invalid_token: bool,
}

/// Text for every invalid token.
const INVALID_TOKEN_MESSAGE: &str = "this token is not valid here; sign in again";

impl TokenRejection {
    pub(super) fn new(
        why: RejectionReason,
        words: &ChallengeParameters<'_>,
        nonce: Option<String>,
    ) -> TokenRejection {
        let no = StatusCode::UNAUTHORIZED;
        let (status, error, said) = match &why {
            RejectionReason::MissingToken => (no, None, "the request has no token"),
            RejectionReason::Malformed(said) => {
                (StatusCode::BAD_REQUEST, Some("invalid_request"), *said)
            }
            RejectionReason::Invalid(said) => (no, Some("invalid_token"), *said),
            RejectionReason::WrongAudience(said) => (no, Some("invalid_token"), said.as_str()),
            RejectionReason::NotBound => (
                no,
                Some("invalid_token"),
                "the token is not DPoP-bound, but only DPoP-bound tokens from its issuer are accepted",
            ),
            RejectionReason::InvalidProof(said) => (no, Some("invalid_dpop_proof"), *said),
            RejectionReason::MissingNonce => {
                let said = "the DPoP proof has no valid nonce from this server";
                (no, Some("use_dpop_nonce"), said)
            }
            RejectionReason::Unavailable(said) => (StatusCode::SERVICE_UNAVAILABLE, None, *said),
            RejectionReason::IssuerUnreachable(said) => {
                (StatusCode::SERVICE_UNAVAILABLE, None, said.as_str())
            }
            RejectionReason::IntrospectionNotAllowed => {
                let said = "introspection is not permitted for this request";
                (StatusCode::TOO_MANY_REQUESTS, None, said)
            }
        };
        let told = match &why {
            RejectionReason::MissingToken => {
                "a token is required; the WWW-Authenticate header links to the metadata that names its issuer"
            }
            RejectionReason::MissingNonce => {
                "the DPoP proof needs a nonce from this server; retry with the nonce in the DPoP-Nonce header"
            }
            RejectionReason::Malformed(_) => {
                "the Authorization header is malformed; send it once, with the scheme Bearer or DPoP and one token"
            }
            RejectionReason::Invalid(_)
            | RejectionReason::WrongAudience(_)
            | RejectionReason::NotBound => INVALID_TOKEN_MESSAGE,
            RejectionReason::InvalidProof(_) => {
                "the DPoP proof is not valid for this request and token; send a new proof"
            }
            RejectionReason::Unavailable(_) | RejectionReason::IssuerUnreachable(_) => {
                "tokens cannot be checked now; try again later"
            }
            RejectionReason::IntrospectionNotAllowed => {
                "too many invalid tokens came from this address, so this token is not checked now; try again in a minute"
            }
        };
        let (bearer, dpop) = match &why {
            RejectionReason::NotBound
            | RejectionReason::InvalidProof(_)
            | RejectionReason::MissingNonce => (false, true),
            RejectionReason::Unavailable(_)
            | RejectionReason::IssuerUnreachable(_)
            | RejectionReason::IntrospectionNotAllowed => (false, false),
            _ => (words.accepts_bearer, words.accepts_dpop),
        };
        let bearer = bearer.then(|| challenge(false, error, words.scopes, words.metadata_url));
        let dpop = dpop.then(|| challenge(true, error, words.scopes, words.metadata_url));
        TokenRejection {
            status,
            challenges: bearer.into_iter().chain(dpop).collect(),
            nonce,
            reason: said.into(),
            message: told,
            had_invalid_token: matches!(
                why,
                RejectionReason::Malformed(_)
                    | RejectionReason::Invalid(_)
                    | RejectionReason::WrongAudience(_)
                    | RejectionReason::NotBound
                    | RejectionReason::InvalidProof(_)
            ),
        }
    }

    /// Replaces the text for the user.
    #[must_use]
    pub(super) fn with_message(self, told: &'static str) -> TokenRejection {
        TokenRejection {
            message: told,
            ..self
        }
    }

    /// Returns the HTTP status of the rejection, usually 401. It is 400 if the credentials cannot be parsed, 503 if the
    /// issuer is unreachable, or 429 if introspection is not permitted now.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the values of the response header `WWW-Authenticate`.
    pub fn challenges(&self) -> &[String] {
        &self.challenges
    }

    /// Returns the value of the response header `DPoP-Nonce`, if the client needs a nonce.
    pub fn nonce(&self) -> Option<&str> {
        self.nonce.as_deref()
    }

    /// Returns the rejection's text for the user. It is the same for every invalid token.
    pub fn message(&self) -> &'static str {
        self.message
    }

    /// Returns the reason of the rejection, for the audit log and for a person who signed in to get the token. Of the
    /// token, the reason contains at most the audience and the issuer.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Returns whether the rejected request carried an invalid token.
    #[doc(hidden)]
    pub fn had_invalid_token(&self) -> bool {
        self.had_invalid_token
    }
}

/// Builds the challenge of one scheme.
fn challenge(dpop: bool, error: Option<&str>, scopes: &[String], metadata: &str) -> String {
    let mut challenge = match dpop {
        true => format!("DPoP algs=\"{}\", ", DPOP_ALGORITHMS.join(" ")),
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

/// Builds the `insufficient_scope` challenge.
pub(super) fn insufficient_scope(words: &ChallengeParameters<'_>) -> String {
    let error = Some("insufficient_scope");
    challenge(
        !words.accepts_bearer,
        error,
        words.scopes,
        words.metadata_url,
    )
}
