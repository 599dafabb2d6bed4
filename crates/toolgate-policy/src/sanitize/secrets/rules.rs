//! The active secret rules: built-in ones and those of the operator.

use super::{
    allowlist::{RuleMatch, SecretAllowlist},
    built_in,
    check::{SecretCheck, entropy, is_redacted},
    field::FIELD_RULE,
    keywords::KeywordSearch,
    rule_set::SecretRules,
};
use memchr::memmem::Finder;
use regex::{Regex, RegexBuilder};
use std::{
    borrow::Cow,
    fmt,
    ops::Range,
    sync::{Arc, LazyLock, OnceLock, PoisonError, RwLock},
};

/// Maximum distance between the start of a match of a built-in rule and its keyword, in bytes.
const LEAD_BYTES: usize = 128;

/// A secret rule.
#[derive(Clone)]
pub(super) struct SecretRule {
    pub(super) id: Arc<str>,
    /// Maximum distance between the start of a match and its keyword, in bytes.
    pub(super) lead: usize,
    pub(super) regex: Cow<'static, str>,
    pub(super) parts: RuleParts,
    compiled: OnceLock<Option<CompiledRule>>,
}

/// The parts of a rule besides its id and its regex.
#[derive(Clone, Debug, Default)]
pub(super) struct RuleParts {
    /// The capture group of the secret. `None` means the first group that matched, or else the whole match.
    pub(super) group: Option<usize>,
    /// Minimum entropy of the secret, exclusive, in bits per byte.
    pub(super) entropy: Option<f64>,
    pub(super) check: SecretCheck,
    /// The rule runs only if one of these words stands before a `=` or `:`, in any case. This excludes prose.
    pub(super) assigns: Vec<Cow<'static, str>>,
    /// Keywords, one of which is in every match. Lower-case ones match in any case.
    pub(super) keywords: Vec<Cow<'static, str>>,
    pub(super) allow: Vec<SecretAllowlist>,
}

/// The compiled pattern of a rule.
#[derive(Clone, Debug)]
pub(super) struct CompiledRule {
    pub(super) pattern: Regex,
    /// The capture group `judged`: the part of a match that the checks apply to, if not the whole secret.
    judged: Option<usize>,
}

/// All active rules.
pub(super) struct ActiveRules {
    pub(super) rules: Vec<SecretRule>,
    pub(super) keywords: KeywordSearch,
    /// Finders of the JSON escapes that can hide a character of a keyword.
    pub(super) hiding: [Finder<'static>; 2],
}

/// The active rules: the built-in ones and the installed ones.
static ACTIVE_RULES: LazyLock<RwLock<Arc<ActiveRules>>> =
    LazyLock::new(|| RwLock::new(Arc::new(ActiveRules::with(&[]))));

/// Returns the active rules.
pub(super) fn rules() -> Arc<ActiveRules> {
    ACTIVE_RULES
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}

/// Activates rules beside the built-in ones. Replaces those that were installed before.
pub(super) fn install(more: &[SecretRules]) {
    let new = Arc::new(ActiveRules::with(more));
    *ACTIVE_RULES.write().unwrap_or_else(PoisonError::into_inner) = new;
}

impl ActiveRules {
    pub(super) fn with(more: &[SecretRules]) -> ActiveRules {
        let more = more.iter().flat_map(|set| set.rules.iter().cloned());
        let rules: Vec<SecretRule> = built_in::rules().chain(more).collect();
        let words = rules.iter().map(|rule| rule.parts.keywords.as_slice());
        let field = built_in::borrowed(FIELD_RULE.keywords);
        ActiveRules {
            keywords: KeywordSearch::new(words.chain([field.as_slice()])),
            rules,
            hiding: [r"\u", r"\/"].map(Finder::new),
        }
    }
}

impl SecretRule {
    pub(super) fn new(
        id: &str,
        regex: Cow<'static, str>,
        compiled: Option<CompiledRule>,
        parts: RuleParts,
    ) -> SecretRule {
        SecretRule {
            id: id.into(),
            lead: LEAD_BYTES,
            regex,
            parts,
            compiled: match compiled {
                Some(compiled) => OnceLock::from(Some(compiled)),
                None => OnceLock::new(),
            },
        }
    }

    /// Returns the pattern, compiled on first use.
    pub(super) fn compiled(&self) -> Option<&CompiledRule> {
        let compile = || CompiledRule::new(&self.regex).ok();
        self.compiled.get_or_init(compile).as_ref()
    }

    /// Returns whether the pattern may match: a cheap test that excludes prose without an assignment.
    pub(super) fn may_match(&self, text: &[u8]) -> bool {
        let words = &self.parts.assigns;
        let assigns = |sign: usize| {
            let before = text.get(..sign).unwrap_or_default();
            let between = |b: &u8| matches!(b, b' ' | 0x9..=0xd | b'"' | b'\'' | b'\\');
            let end = before
                .iter()
                .rposition(|b| !between(b))
                .map_or(0, |at| at + 1);
            words.iter().any(|word| {
                let own = end
                    .checked_sub(word.len())
                    .and_then(|from| before.get(from..end));
                own.is_some_and(|own| own.eq_ignore_ascii_case(word.as_bytes()))
            })
        };
        words.is_empty() || memchr::memchr2_iter(b'=', b':', text).any(assigns)
    }

    /// Finds all secrets from a position of a text on.
    pub(super) fn find(&self, text: &str, mut at: usize, found: &mut dyn FnMut(Range<usize>)) {
        let Some(compiled) = self.compiled() else {
            return;
        };
        let mut places = compiled.pattern.capture_locations();
        while at <= text.len() {
            let Some(whole) = compiled.pattern.captures_read_at(&mut places, text, at) else {
                return;
            };
            let group = match self.parts.group {
                Some(nth) => places.get(nth),
                None => (1..places.len()).find_map(|nth| places.get(nth)),
            };
            let whole = (whole.start(), whole.end());
            let (from, to) = group.unwrap_or(whole);
            let secret = text.get(from..to).unwrap_or_default();
            let judged = compiled.judged.and_then(|nth| places.get(nth));
            let judged = judged
                .and_then(|(from, to)| text.get(from..to))
                .unwrap_or(secret);
            if !secret.is_empty()
                && self.is_secret(
                    &RuleMatch {
                        text,
                        whole,
                        secret,
                    },
                    judged,
                )
            {
                found(from..to);
            }
            // The search advances by at least one character.
            at = to.max(whole.0 + 1);
            while !text.is_char_boundary(at) {
                at += 1;
            }
        }
    }

    fn is_secret(&self, matched: &RuleMatch<'_>, judged: &str) -> bool {
        // Already redacted text stays, so that sanitizing is idempotent.
        !is_redacted(matched.secret)
            && self.parts.entropy.is_none_or(|bits| entropy(judged) > bits)
            && self.parts.check.holds(judged)
            && !self.parts.allow.iter().any(|list| list.holds(matched))
    }
}

#[cfg(test)]
impl SecretRule {
    pub(super) fn is_compiled(&self) -> bool {
        self.compiled.get().is_some()
    }
}

impl fmt::Debug for SecretRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretRule({})", self.id)
    }
}

impl CompiledRule {
    /// Compiles a regex.
    ///
    /// # Errors
    /// Returns the error as one line.
    pub(super) fn new(regex: &str) -> Result<CompiledRule, String> {
        // Matches bytes instead of characters where possible: Unicode word boundaries would make the search slow.
        let bytes = RegexBuilder::new(&unicode_negations(regex))
            .unicode(false)
            .build();
        let pattern = bytes.or_else(|_| Regex::new(regex));
        let pattern = pattern.map_err(|why| in_one_line(&why.to_string()))?;
        let mut names = pattern.capture_names().enumerate();
        let judged = names.find_map(|(nth, name)| (name == Some("judged")).then_some(nth));
        Ok(CompiledRule { pattern, judged })
    }
}

/// Returns the last line of a regex error; the lines before it draw the position of the fault.
pub(super) fn in_one_line(text: &str) -> String {
    let last = text
        .lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty());
    let last = last.unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}
/// Makes `[^…]` match whole characters: as bytes it could split one.
fn unicode_negations(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(at) = rest.find("[^") {
        out.push_str(&rest[..at]);
        let class = &rest[at..];
        // The first unescaped `]` ends the class: no rule has one as the first character of a class.
        let mut escaped = false;
        let end = class.char_indices().skip(1).find(|(_, c)| {
            let ends = *c == ']' && !escaped;
            escaped = *c == '\\' && !escaped;
            ends
        });
        let end = end.map_or(class.len(), |(at, _)| at + 1);
        out.push_str("(?u:");
        out.push_str(&class[..end].replace(r"\s", r" \t\r\n"));
        out.push(')');
        rest = &class[end..];
    }
    out.push_str(rest);
    out
}
