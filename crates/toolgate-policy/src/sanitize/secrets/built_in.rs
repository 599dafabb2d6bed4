//! The built-in secret rules: `rule_table.rs`, which a test writes from `rules.toml`, so that no program parses them.

use super::{
    check::SecretCheck,
    rule_table::RULES,
    rules::{RuleParts, SecretRule},
};
use std::borrow::Cow;

/// A built-in secret rule, as written in `rule_table.rs`.
pub(super) struct BuiltInRule {
    pub(super) id: &'static str,
    pub(super) regex: &'static str,
    pub(super) keywords: &'static [&'static str],
    pub(super) entropy: Option<f64>,
    pub(super) check: SecretCheck,
    pub(super) assigns: &'static [&'static str],
}

/// Returns the built-in rules. Their patterns are compiled lazily; a test compiles all of them.
pub(super) fn rules() -> impl Iterator<Item = SecretRule> {
    RULES.iter().map(|rule| {
        let parts = RuleParts {
            group: None,
            entropy: rule.entropy,
            check: rule.check,
            assigns: borrowed(rule.assigns),
            keywords: borrowed(rule.keywords),
            allow: Vec::new(),
        };
        SecretRule::new(rule.id, Cow::Borrowed(rule.regex), None, parts)
    })
}

/// Returns words that are part of the program, without a copy of their text.
pub(super) fn borrowed(words: &[&'static str]) -> Vec<Cow<'static, str>> {
    words.iter().map(|&word| Cow::Borrowed(word)).collect()
}

#[cfg(test)]
#[cfg(feature = "secret-rule-files")]
mod tests {
    use super::*;
    use crate::SecretRules;
    use std::{env, fs, path::Path};

    /// Returns `rule_table.rs` as it should be.
    fn table(rules: &[SecretRule]) -> String {
        let line = |rule: &SecretRule| {
            let SecretRule {
                id, regex, parts, ..
            } = rule;
            let RuleParts {
                group: None,
                entropy,
                check,
                assigns,
                keywords,
                allow,
            } = parts
            else {
                panic!("the table has no column for the group of {id}");
            };
            assert!(
                allow.is_empty(),
                "the table has no column for the allowlists of {id}"
            );
            format!(
                "    BuiltInRule {{ id: {id:?}, regex: {regex:?}, keywords: &{keywords:?}, entropy: {entropy:?}, check: SecretCheck::{check:?}, assigns: &{assigns:?} }},\n"
            )
        };
        let lines: String = rules.iter().map(line).collect();
        format!(
            "//! The table of the built-in secret rules. A test of `built_in.rs` writes it from `rules.toml`.\n\nuse super::{{built_in::BuiltInRule, check::SecretCheck}};\n\n#[rustfmt::skip]\npub(super) const RULES: &[BuiltInRule] = &[\n{lines}];\n"
        )
    }

    /// If this fails after a change of `rules.toml`, run it with `TOOLGATE_WRITE_SNAPSHOTS=1`.
    #[test]
    fn the_built_in_rules_are_those_of_the_rule_file() {
        let file = SecretRules::read(include_str!("rules.toml"), false).unwrap();
        assert!(file.rules.len() > 50);
        let table = table(&file.rules);
        if env::var_os("TOOLGATE_WRITE_SNAPSHOTS").is_some() {
            let path =
                Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sanitize/secrets/rule_table.rs");
            fs::write(path, table).unwrap();
            return;
        }
        assert_eq!(table, include_str!("rule_table.rs"));
        let read = file.rules.iter().map(|rule| rule.lead);
        assert!(read.eq(rules().map(|rule| rule.lead)));
    }
}
