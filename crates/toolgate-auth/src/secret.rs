//! What must not be seen: tokens, client secrets, verifiers.

use ring::digest::{SHA256, digest};

/// A text that nothing prints: it has no `Debug`, `Display` or `Serialize`, so no log and no record can have it.
///
/// ```compile_fail
/// println!("{:?}", toolgate_auth::Secret::new("s3cret"));
/// ```
#[derive(Clone)]
pub struct Secret(Box<str>);

impl Secret {
    /// Keeps a text.
    pub fn new(text: impl Into<Box<str>>) -> Secret {
        Secret(text.into())
    }

    /// The text itself, for the one place that needs it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether a text is this one. Digests are compared, so the time that it takes says nothing of the text.
    pub fn is(&self, text: &str) -> bool {
        digest(&SHA256, self.0.as_bytes()).as_ref() == digest(&SHA256, text.as_bytes()).as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn a_secret_is_compared_whole() {
        let secret = Secret::new("abc");
        assert!(secret.is("abc"));
        for other in ["", "ab", "abcd", "abd", "ABC"] {
            assert!(!secret.is(other), "{other}");
        }
    }
}
