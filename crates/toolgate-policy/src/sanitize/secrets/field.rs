//! Rule for JSON members: a string is a secret because of its member name.

use super::check::{SecretCheck, is_basic};

/// A rule that finds secrets by member name.
pub(crate) struct FieldRule {
    pub(crate) id: &'static str,
    /// The rule runs only on text with one of these keywords, in any case.
    pub(crate) keywords: &'static [&'static str],
    /// Suffixes of member names, in lower case without `_`, `-` and spaces: `dbPassword` ends with `password`.
    ends: &'static [&'static str],
    check: SecretCheck,
}

/// The rule for member names of secrets.
pub(crate) const FIELD_RULE: FieldRule = FieldRule {
    id: "secret-field",
    keywords: &[
        "password",
        "passwd",
        "passphrase",
        "secret",
        "api_key",
        "api-key",
        "apikey",
        "private_key",
        "privatekey",
        "private-key",
        "token",
        "connection_string",
        "connectionstring",
        "\"auth\"",
        "\"_auth\"",
    ],
    ends: &[
        "password",
        "passwd",
        "passphrase",
        "clientsecret",
        "apisecret",
        "apikey",
        "secretkey",
        "privatekey",
        "secretaccesskey",
        "accesstoken",
        "refreshtoken",
        "authtoken",
        "sessiontoken",
        "bearertoken",
        "apitoken",
        "bottoken",
        "clienttoken",
        "connectionstring",
    ],
    check: SecretCheck::Mixed,
};

impl FieldRule {
    /// Returns whether the string of a member is a secret.
    pub(crate) fn holds(&self, key: &str, value: &str) -> bool {
        if !(6..=4096).contains(&value.len()) || key.len() > 128 {
            return false;
        }
        if value.contains(char::is_whitespace) {
            return false;
        }
        let plain = key.chars().filter(|c| !matches!(c, '_' | '-' | ' '));
        let plain: String = plain.map(|c| c.to_ascii_lowercase()).collect();
        match plain.as_str() {
            // Registry credentials, as Docker and npm store them.
            "auth" => is_basic(value),
            plain => self.ends.iter().any(|end| plain.ends_with(end)) && self.check.holds(value),
        }
    }
}
