//! Who stands behind a caller that an authorization server named.

/// What a checked token says of a caller. Holds no token.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Principal {
    /// The authorization server that says so.
    pub issuer: String,
    /// Whom it names; unique at that issuer.
    pub subject: String,
    /// The client program that the token was given to, where the issuer says which.
    pub client: Option<String>,
    /// What the token is good for, sorted.
    pub scopes: Vec<String>,
    /// Who acts for the subject, the one that acts now first.
    pub actors: Vec<String>,
}

impl Principal {
    /// Somebody whom an issuer names, with no scopes.
    pub fn new(issuer: impl Into<String>, subject: impl Into<String>) -> Principal {
        Principal {
            issuer: issuer.into(),
            subject: subject.into(),
            ..Principal::default()
        }
    }

    /// Whether the token is good for a scope.
    pub fn has(&self, scope: &str) -> bool {
        self.scopes.iter().any(|has| has == scope)
    }
}
