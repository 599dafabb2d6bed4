//! The rules of `secrets.toml`, ready to search.

use super::check::Check;
use aho_corasick::{AhoCorasick, MatchKind};
use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use std::sync::{Arc, LazyLock};

/// The file, as it stands.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) rule: Vec<RuleText>,
    pub(super) field: FieldText,
}

/// One rule of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleText {
    pub(super) id: Arc<str>,
    pub(super) keywords: Vec<String>,
    pattern: String,
    #[serde(default)]
    check: Check,
    #[cfg_attr(not(test), expect(dead_code, reason = "samples are for the tests"))]
    pub(super) yes: Vec<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "samples are for the tests"))]
    pub(super) no: Vec<String>,
}

/// The rule about members of JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FieldText {
    id: Arc<str>,
    keywords: Vec<String>,
    ends: Vec<String>,
    check: Check,
    #[cfg_attr(not(test), expect(dead_code, reason = "samples are for the tests"))]
    pub(super) yes: Vec<(String, String)>,
    #[cfg_attr(not(test), expect(dead_code, reason = "samples are for the tests"))]
    pub(super) no: Vec<(String, String)>,
}

/// One rule, compiled.
pub(super) struct Rule {
    pub(super) id: Arc<str>,
    pub(super) pattern: Regex,
    /// The groups of the pattern that hold the secret; none where it is the whole match.
    pub(super) groups: Vec<usize>,
    pub(super) check: Check,
}

/// All rules, compiled.
pub(super) struct Rules {
    pub(super) rules: Vec<Rule>,
    /// Finds keywords, all in one pass.
    pub(super) keywords: AhoCorasick,
    /// The rules of each keyword, and of those that it holds.
    pub(super) of_keyword: Vec<Vec<usize>>,
    pub(super) field: Field,
}

/// Which members of JSON hold a secret by their name.
pub(super) struct Field {
    pub(super) id: Arc<str>,
    ends: Vec<String>,
    check: Check,
}

impl Field {
    /// Whether the string of a member is a secret.
    pub(super) fn holds(&self, key: &str, value: &str) -> bool {
        if !(6..=4096).contains(&value.len()) || key.len() > 128 {
            return false;
        }
        if value.contains(char::is_whitespace) || !self.names(key) {
            return false;
        }
        self.check.holds(value)
    }

    fn names(&self, key: &str) -> bool {
        let plain = key.chars().filter(|c| !matches!(c, '_' | '-' | ' '));
        let plain: String = plain.map(|c| c.to_ascii_lowercase()).collect();
        self.ends.iter().any(|end| plain.ends_with(end))
    }
}

/// The text of the rules.
pub(super) const TEXT: &str = include_str!("secrets.toml");

/// The rules; compiled when they are first used.
#[allow(
    clippy::expect_used,
    reason = "the file is a part of the program, and a test reads it"
)]
pub(super) static RULES: LazyLock<Rules> =
    LazyLock::new(|| Rules::read(TEXT).expect("secrets.toml is well formed"));

impl Rules {
    fn read(text: &str) -> Result<Rules, Box<dyn std::error::Error + Send + Sync>> {
        let file: File = toml::from_str(text)?;
        let mut keywords: Vec<&str> = file
            .rule
            .iter()
            .flat_map(|r| &r.keywords)
            .map(String::as_str)
            .collect();
        keywords.extend(file.field.keywords.iter().map(String::as_str));
        keywords.sort_unstable();
        keywords.dedup();
        let of = |keyword: &&str| -> Vec<usize> {
            let held = |rule: &RuleText| rule.keywords.iter().any(|k| keyword.contains(k.as_str()));
            let rules = file.rule.iter().enumerate();
            rules
                .filter(|(_, rule)| held(rule))
                .map(|(nth, _)| nth)
                .collect()
        };
        let of_keyword = keywords.iter().map(of).collect();
        let search = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&keywords)?;
        let rules: Result<_, _> = file.rule.iter().map(Rule::compile).collect();
        Ok(Rules {
            rules: rules?,
            keywords: search,
            of_keyword,
            field: Field {
                id: file.field.id,
                ends: file.field.ends,
                check: file.field.check,
            },
        })
    }
}

impl Rule {
    fn compile(rule: &RuleText) -> Result<Rule, regex::Error> {
        // Bytes, not characters: word boundaries of Unicode would make the search slow.
        let pattern = RegexBuilder::new(&unicode_negations(&rule.pattern))
            .unicode(false)
            .build()?;
        let names = pattern.capture_names().enumerate();
        let groups = names.filter_map(|(nth, name)| name.map(|_| nth)).collect();
        Ok(Rule {
            id: rule.id.clone(),
            pattern,
            groups,
            check: rule.check,
        })
    }
}

/// Lets `[^…]` stand for characters: as bytes it could cut one in two.
fn unicode_negations(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(at) = rest.find("[^") {
        out.push_str(&rest[..at]);
        let class = &rest[at..];
        // The first `]` that is not escaped ends the class: in these rules none stands first in one.
        let mut escaped = false;
        let end = class.char_indices().skip(1).find(|(_, c)| {
            let ends = *c == ']' && !escaped;
            escaped = *c == '\\' && !escaped;
            ends
        });
        let end = end.map_or(class.len(), |(at, _)| at + 1);
        out.push_str("(?u-i:");
        out.push_str(&class[..end].replace(r"\s", r" \t\r\n"));
        out.push(')');
        rest = &class[end..];
    }
    out.push_str(rest);
    out
}
