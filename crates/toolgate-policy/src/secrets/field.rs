//! The rule about members of JSON whose string is a secret by the name of its key.

use super::check::{Check, is_basic};

/// The rule about members.
pub(super) struct FieldRule {
    pub(super) id: &'static str,
    /// It is tried only on text that holds one of them, in any case.
    pub(super) keywords: &'static [&'static str],
    /// How the names of such keys end, in lower case without `_`, `-` and blanks: `dbPassword` ends with `password`.
    ends: &'static [&'static str],
    check: Check,
}

/// The names of members with secrets.
pub(super) const FIELD: FieldRule = FieldRule {
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
    check: Check::Mixed,
};

impl FieldRule {
    /// Returns whether the string of a member is a secret.
    pub(super) fn holds(&self, key: &str, value: &str) -> bool {
        if !(6..=4096).contains(&value.len()) || key.len() > 128 {
            return false;
        }
        if value.contains(char::is_whitespace) {
            return false;
        }
        let plain = key.chars().filter(|c| !matches!(c, '_' | '-' | ' '));
        let plain: String = plain.map(|c| c.to_ascii_lowercase()).collect();
        match plain.as_str() {
            // The credentials of a registry, as Docker and npm keep them.
            "auth" => is_basic(value),
            plain => self.ends.iter().any(|end| plain.ends_with(end)) && self.check.holds(value),
        }
    }
}
