//! `[passkeys]`: passkeys with which approvers sign calls.

use super::{
    reader::{SettingError, SettingPath},
    rule::ConfigRule,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// Length of a SHA-256 digest in hexadecimal.
const DIGEST_CHARS: usize = 64;

/// Passkeys of approvers, `[passkeys]`. The section turns them on: the console can then enroll passkeys, and links to the
/// console begin with `http://localhost`, because a passkey cannot belong to an IP address.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct PasskeysSection {
    /// Trust anchor: SHA-256 digest of a change in the list of passkeys, in hexadecimal. `toolgate passkeys list` prints
    /// it. No passkey counts if the list lacks this change. A rule with `passkey = true` needs an anchor. With it, the
    /// console cannot change the config.
    anchor: Option<String>,
}

/// Settings of passkeys.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct PasskeyConfig {
    /// Digest of a change that the list must contain.
    pub(crate) anchor: Option<String>,
}

impl PasskeyConfig {
    /// Checks the settings of passkeys.
    pub(super) fn check(section: PasskeysSection) -> Result<PasskeyConfig, SettingError> {
        let is_digest = |text: &String| {
            text.len() == DIGEST_CHARS
                && text
                    .bytes()
                    .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        match section.anchor {
            Some(text) if !is_digest(&text) => Err(SettingError::about(
                SettingPath::new(&["passkeys", "anchor"]),
                "is not the digest of a change; write 64 hexadecimal digits, which `toolgate passkeys list` prints",
            )),
            anchor => Ok(PasskeyConfig { anchor }),
        }
    }
}

/// Checks that each rule which needs passkeys can be met.
pub(super) fn check_rules(
    rules: &[ConfigRule],
    passkeys: Option<&PasskeyConfig>,
) -> Result<(), SettingError> {
    if passkeys.is_some_and(|passkeys| passkeys.anchor.is_some()) {
        return Ok(());
    }
    let needs = |rule: &&ConfigRule| rule.approvals.as_ref().is_some_and(|needs| needs.passkey);
    let Some(rule) = rules.iter().find(needs) else {
        return Ok(());
    };
    let section = match &rule.view {
        Some(view) => SettingPath::new(&["view", view.as_str(), "rule"]),
        None => SettingPath::new(&["rule"]),
    };
    Err(SettingError::about(
        section.index(rule.number - 1).key("approvals"),
        "can never be met, because the config trusts no passkey: write [passkeys], enroll the first passkey at the console, and set anchor to the digest that it shows",
    ))
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use std::path::Path;

    fn read(text: &str) -> Result<Config, String> {
        let text = format!("[server.s]\ncommand = [\"true\"]\n{text}");
        Config::parse(Path::new("toolgate.toml"), &text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_rule_with_passkeys_needs_an_anchor() {
        let rule =
            "[[rule]]\ntools = [\"s.*\"]\naction = \"ask\"\napprovals = { passkey = true }\n";
        for section in ["", "[passkeys]\n"] {
            let error = read(&format!("{section}{rule}")).unwrap_err();
            assert!(error.contains("trusts no passkey"), "{error}");
        }
        let view = "[view.v]\nservers = [\"s\"]\n[[view.v.rule]]\ntools = [\"s.*\"]\naction = \"ask\"\napprovals = { passkey = true }\n";
        let error = read(view).unwrap_err();
        assert!(error.contains("trusts no passkey"), "{error}");
        let anchor = "ab".repeat(32);
        let config = read(&format!("[passkeys]\nanchor = \"{anchor}\"\n{rule}{view}")).unwrap();
        assert!(config.rules.iter().all(|rule| {
            let needs = rule.approvals.as_ref().unwrap();
            needs.passkey && needs.approvers() == 1
        }));
        assert_eq!(config.passkeys.unwrap().anchor, Some(anchor.clone()));
        for wrong in ["", "abc", &anchor.to_uppercase(), &format!("{anchor}00")] {
            let error = read(&format!("[passkeys]\nanchor = \"{wrong}\"\n")).unwrap_err();
            assert!(error.contains("64 hexadecimal digits"), "{error}");
        }
        assert_eq!(read("[passkeys]\n").unwrap().passkeys.unwrap().anchor, None);
        assert_eq!(read("").unwrap().passkeys, None);
    }

    #[test]
    fn the_console_is_at_localhost_if_passkeys_are_on() {
        let at = |text: &str, listener: &str| read(text).unwrap().console_at(listener);
        let plain = "http://127.0.0.1:8665/";
        assert_eq!(at("", plain), plain);
        assert_eq!(at("[passkeys]\n", plain), "http://localhost:8665/");
        assert_eq!(at("[passkeys]\n", "http://[::1]:1/"), "http://localhost:1/");
        let other = "http://10.0.0.1:8665/";
        assert_eq!(at("[passkeys]\n", other), other);
        let url = "[passkeys]\n";
        let config = format!(
            "console_url = \"https://t.example.com\"\n{url}[server.s]\ncommand = [\"true\"]\n"
        );
        let config = Config::parse(Path::new("toolgate.toml"), &config).unwrap();
        assert_eq!(config.console_at(plain), "https://t.example.com/");
    }
}
