//! Principals that an authorization server attests.

/// Principal that an authorization server attests in a verified access token. Contains no token.
///
/// Standard: [actors, RFC 8693, section 4.1](https://www.rfc-editor.org/rfc/rfc8693#section-4.1).
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Principal {
    /// Issuer identifier of the authorization server that issued the token.
    pub issuer: String,
    /// Subject of the token; unique at the issuer.
    pub subject: String,
    /// Client id of the program that obtained the token, if the issuer states it.
    pub client: Option<String>,
    /// Scopes of the token, sorted.
    pub scopes: Vec<String>,
    /// Actors that act for the subject, the current one first (RFC 8693, section 4.1).
    pub actors: Vec<String>,
}

impl Principal {
    /// Creates a principal from issuer and subject, without scopes.
    pub fn new(issuer: impl Into<String>, subject: impl Into<String>) -> Principal {
        Principal {
            issuer: issuer.into(),
            subject: subject.into(),
            ..Principal::default()
        }
    }

    /// Returns true if the principal's token has this scope.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.scopes.iter().any(|has| has == scope)
    }
}
