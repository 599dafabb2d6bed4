//! PKCE: proves that the client that redeems a code is the one that requested it.
//!
//! Source: RFC 7636, with the method S256 only.

use crate::{Secret, jose};
use ring::{
    digest::{SHA256, digest},
    rand::{SecureRandom, SystemRandom},
};

use super::{AuthError, AuthErrorKind};

/// PKCE code verifier, for a single use.
pub(super) struct CodeVerifier(Secret);

impl CodeVerifier {
    /// Generates a verifier of 256 random bits.
    pub(super) fn new() -> Result<CodeVerifier, AuthError> {
        random_token().map(|text| CodeVerifier(Secret::new(text)))
    }

    /// Returns the code challenge for the authorization request.
    pub(super) fn challenge(&self) -> String {
        challenge(self.0.reveal())
    }

    /// Returns the code verifier for the token request.
    pub(super) fn reveal(&self) -> &str {
        self.0.reveal()
    }
}

fn challenge(verifier: &str) -> String {
    jose::encode(digest(&SHA256, verifier.as_bytes()))
}

/// Returns 256 random bits in Base64 (URL-safe, without padding).
pub(super) fn random_token() -> Result<String, AuthError> {
    let mut bytes = [0; 32];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| {
        AuthError::new(
            AuthErrorKind::Store,
            "the operating system provides no random numbers; check its random device, or restart the machine",
        )
    })?;
    Ok(jose::encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenge_equals_that_of_the_rfc_appendix() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(
            challenge(verifier),
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
        );
    }

    #[test]
    fn every_verifier_is_unique() {
        let (one, two) = (CodeVerifier::new().unwrap(), CodeVerifier::new().unwrap());
        assert!(one.reveal() != two.reveal() && one.reveal().len() == 43);
    }
}
