//! The rules of the table, ready to search.

use super::{check::Check, table::RULES as TABLE};
use memchr::memmem::Finder;
use regex::{Regex, RegexBuilder};
use std::sync::{LazyLock, OnceLock};

/// One rule of the table.
pub(super) struct RuleText {
    pub(super) id: &'static str,
    /// The rule is tried only on text that holds one of them, spelled exactly so.
    pub(super) keywords: &'static [&'static str],
    /// A regular expression over ASCII without look-around. Where it has named groups, only what they hold is redacted.
    pub(super) pattern: &'static str,
    /// What the secret must be besides. A checked secret is none where it is a placeholder.
    pub(super) check: Check,
    /// Where the pattern finds something, one of these words stands before a `=` or `:` in any case; none where that is not so.
    pub(super) assigns: &'static [&'static str],
}

/// The rule about members of JSON.
pub(super) struct FieldText {
    pub(super) id: &'static str,
    pub(super) keywords: &'static [&'static str],
    pub(super) ends: &'static [&'static str],
    pub(super) check: Check,
}

/// One rule, compiled when a text first holds a keyword of it.
pub(super) struct Rule {
    pub(super) text: &'static RuleText,
    compiled: OnceLock<Compiled>,
}

/// The pattern of a rule.
pub(super) struct Compiled {
    pub(super) pattern: Regex,
    /// The groups of the pattern that hold the secret; none where it is the whole match.
    pub(super) groups: Vec<usize>,
}

/// All rules.
pub(super) struct Rules {
    pub(super) rules: Vec<Rule>,
    /// Find the escapes of JSON that can stand for a sign of a keyword.
    pub(super) hiding: [Finder<'static>; 2],
}

/// The rules, ready when they are first used.
pub(super) static RULES: LazyLock<Rules> = LazyLock::new(Rules::new);

impl Rules {
    pub(super) fn new() -> Rules {
        let rule = |text| Rule {
            text,
            compiled: OnceLock::new(),
        };
        Rules {
            rules: TABLE.iter().map(rule).collect(),
            hiding: [r"\u", r"\/"].map(Finder::new),
        }
    }
}

impl RuleText {
    /// Whether the pattern may find something: prose that has a keyword in it is told from an assignment at a glance.
    pub(super) fn may_find(&self, text: &[u8]) -> bool {
        let assigns = |sign: usize| {
            let before = text.get(..sign).unwrap_or_default();
            let between = |b: &u8| matches!(b, b' ' | 0x9..=0xd | b'"' | b'\'' | b'\\');
            let end = before
                .iter()
                .rposition(|b| !between(b))
                .map_or(0, |at| at + 1);
            self.assigns.iter().any(|word| {
                let own = end
                    .checked_sub(word.len())
                    .and_then(|from| before.get(from..end));
                own.is_some_and(|own| own.eq_ignore_ascii_case(word.as_bytes()))
            })
        };
        self.assigns.is_empty() || memchr::memchr2_iter(b'=', b':', text).any(assigns)
    }
}

impl Rule {
    #[allow(
        clippy::expect_used,
        reason = "the pattern is a part of the program, and a test compiles all of them"
    )]
    pub(super) fn compiled(&self) -> &Compiled {
        self.compiled
            .get_or_init(|| Compiled::new(self.text.pattern).expect("a pattern of the table"))
    }
}

#[cfg(test)]
impl Rule {
    pub(super) fn is_compiled(&self) -> bool {
        self.compiled.get().is_some()
    }
}

impl Compiled {
    pub(super) fn new(pattern: &str) -> Result<Compiled, regex::Error> {
        // Bytes, not characters: word boundaries of Unicode would make the search slow.
        let pattern = RegexBuilder::new(&unicode_negations(pattern))
            .unicode(false)
            .build()?;
        let names = pattern.capture_names().enumerate();
        let groups = names.filter_map(|(nth, name)| name.map(|_| nth)).collect();
        Ok(Compiled { pattern, groups })
    }
}

impl FieldText {
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
