//! A set of secret rules.

use super::rules::SecretRule;

/// Minimum length of a keyword, in bytes: the search compares aligned pairs of bytes.
pub(super) const MIN_KEYWORD_BYTES: usize = 3;
/// Rules that find secrets (tokens, keys) in text, read from a rule file of the operator (`SecretRules::parse`, with the
/// feature `secret-rule-files`).
///
/// ```
/// # #[cfg(feature = "secret-rule-files")] {
/// use toolgate_policy::{SecretRedactor, SecretRules, SecretRulesError};
///
/// let rules = SecretRules::parse(
///     "[[rules]]\nid = \"acme-token\"\nregex = '''acme_[0-9a-f]{32}'''\nkeywords = [\"acme_\"]",
/// )?;
/// assert_eq!(rules.len(), 1);
/// SecretRedactor::install(&[rules]);
///
/// let wrong: SecretRulesError = SecretRules::parse("rules = 1").unwrap_err();
/// eprintln!("{wrong}");
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct SecretRules {
    pub(super) rules: Vec<SecretRule>,
    pub(super) notes: Vec<String>,
}

impl SecretRules {
    /// Returns the number of rules for finding secrets.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Returns whether there are no rules for finding secrets.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns a note for each skipped rule of the rule file, with the reason.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}
