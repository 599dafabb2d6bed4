//! The built-in secret rules, from `rules.json`: the rules of `rules.toml` in a form that needs no TOML reader. A test
//! compares both files.

use super::{
    check::SecretCheck,
    rules::{RuleParts, SecretRule},
};
use serde::Deserialize;

/// A rule as written in `rules.json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BuiltInRule {
    id: String,
    regex: String,
    keywords: Vec<String>,
    #[serde(default)]
    entropy: Option<f64>,
    #[serde(default)]
    check: SecretCheck,
    #[serde(default)]
    assigns: Vec<String>,
}

/// Reads the built-in rules. Their patterns are compiled lazily; a test compiles all of them.
///
/// # Errors
/// The file is not as expected, which a test excludes.
pub(super) fn rules() -> serde_json::Result<Vec<SecretRule>> {
    let written: Vec<BuiltInRule> = serde_json::from_str(include_str!("rules.json"))?;
    let rule = |rule: BuiltInRule| {
        let parts = RuleParts {
            group: None,
            entropy: rule.entropy,
            check: rule.check,
            assigns: rule.assigns,
            keywords: rule.keywords,
            allow: Vec::new(),
        };
        SecretRule::new(rule.id, rule.regex, None, parts)
    };
    Ok(written.into_iter().map(rule).collect())
}

#[cfg(test)]
#[cfg(feature = "secret-rule-files")]
mod tests {
    use super::*;
    use crate::SecretRules;

    /// If this fails, write the rule of `rules.toml` into `rules.json` as well.
    #[test]
    fn the_built_in_rules_are_those_of_the_rule_file() {
        let file = SecretRules::read(include_str!("rules.toml"), false).unwrap();
        let told = |rule: &SecretRule| {
            let SecretRule {
                id,
                lead,
                regex,
                parts,
                ..
            } = rule;
            format!("{id} {lead} {regex} {parts:?}")
        };
        let written: Vec<String> = file.rules.iter().map(told).collect();
        let read: Vec<String> = rules().unwrap().iter().map(told).collect();
        assert!(read.len() > 50);
        assert_eq!(read, written);
    }
}
