//! The proof that who redeems a code is who asked for it.
//!
//! Source: RFC 7636, with the method S256 only.

use crate::{Secret, jose};
use ring::{
    digest::{SHA256, digest},
    rand::{SecureRandom, SystemRandom},
};

use super::{AuthError, AuthErrorKind};

/// A verifier. Used once.
pub(super) struct Verifier(Secret);

impl Verifier {
    /// A new one, of 256 random bits.
    pub(super) fn new() -> Result<Verifier, AuthError> {
        random().map(|text| Verifier(Secret::new(text)))
    }

    /// What is sent first.
    pub(super) fn challenge(&self) -> String {
        challenge(self.0.reveal())
    }

    /// What is sent with the code.
    pub(super) fn reveal(&self) -> &str {
        self.0.reveal()
    }
}

fn challenge(verifier: &str) -> String {
    jose::encode(digest(&SHA256, verifier.as_bytes()))
}

/// 256 random bits in Base64.
pub(super) fn random() -> Result<String, AuthError> {
    let mut bytes = [0; 32];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled
        .map_err(|_| AuthError::new(AuthErrorKind::Store, "the system gives no random numbers"))?;
    Ok(jose::encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_that_of_the_appendix() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(
            challenge(verifier),
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
        );
    }

    #[test]
    fn each_verifier_is_another() {
        let (one, two) = (Verifier::new().unwrap(), Verifier::new().unwrap());
        assert!(one.reveal() != two.reveal() && one.reveal().len() == 43);
    }
}
