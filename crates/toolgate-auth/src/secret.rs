//! Secret strings: tokens, client secrets, PKCE verifiers.

use ring::digest::{SHA256, digest};

/// Secret string, for example a token; without `Debug`, `Display` and `Serialize` it cannot appear in logs.
///
/// ```compile_fail
/// println!("{:?}", toolgate_auth::Secret::new("s3cret"));
/// ```
#[derive(Clone)]
pub struct Secret(Box<str>);

impl Secret {
    /// Creates a secret from its plain text.
    pub fn new(text: impl Into<Box<str>>) -> Secret {
        Secret(text.into())
    }

    /// Returns the plain text of the secret, for the one place that sends or stores it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Compares a text with the secret in constant time, by their SHA-256 digests.
    pub fn matches(&self, text: &str) -> bool {
        digest(&SHA256, self.0.as_bytes()).as_ref() == digest(&SHA256, text.as_bytes()).as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn compares_the_whole_secret() {
        let secret = Secret::new("abc");
        assert!(secret.matches("abc"));
        for other in ["", "ab", "abcd", "abd", "ABC"] {
            assert!(!secret.matches(other), "{other}");
        }
    }
}
