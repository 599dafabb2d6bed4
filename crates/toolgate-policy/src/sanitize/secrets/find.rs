//! Search for secrets in text.

use super::{
    MARK_PREFIX,
    rules::{ActiveRules, rules},
};
use memchr::memmem::Finder;
use std::{ops::Range, sync::Arc};

/// A secret found in a text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct FoundSecret {
    /// Its byte range.
    pub(crate) range: Range<usize>,
    /// The id of the rule that matched.
    pub(crate) rule: Arc<str>,
}

/// Returns all secrets of a text, in order and without overlaps.
pub(crate) fn find(text: &str) -> Vec<FoundSecret> {
    find_by_rules(&rules(), text)
}

/// Returns the secrets that the given rules find.
pub(super) fn find_by_rules(rules: &ActiveRules, text: &str) -> Vec<FoundSecret> {
    let Some(starts) = starts(rules, text) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (rule, keyword) in rules.rules.iter().zip(starts) {
        let Some(keyword) = keyword else {
            continue;
        };
        let at = floor(text, keyword.saturating_sub(rule.lead));
        let rest = text.get(at..).unwrap_or_default();
        if rule.may_match(rest.as_bytes()) {
            rule.find(text, at, &mut |range| {
                let rule = rule.id.clone();
                found.push(FoundSecret { range, rule });
            });
        }
    }
    merge_overlaps(found)
}

/// Returns whether a raw JSON text may hold a secret: it has a keyword, or an escape that could hide one.
pub(crate) fn may_hold(raw: &str) -> bool {
    let rules = rules();
    let hides = |escape: &Finder| escape.find(raw.as_bytes()).is_some();
    rules.keywords.any(raw) || rules.hiding.iter().any(hides)
}

/// Returns the first keyword position of each rule; `None` if the text has no keyword.
fn starts(rules: &ActiveRules, text: &str) -> Option<Vec<Option<usize>>> {
    let mut starts: Option<Vec<Option<usize>>> = None;
    rules.keywords.each(text, &mut |at, rule| {
        let starts = starts.get_or_insert_with(|| vec![None; rules.rules.len()]);
        if let Some(start) = starts.get_mut(rule) {
            *start = Some(start.map_or(at, |start| start.min(at)));
        }
    });
    starts
}

/// Merges overlapping matches: the union of their ranges, with the rule that comes first in the file.
fn merge_overlaps(mut found: Vec<FoundSecret>) -> Vec<FoundSecret> {
    // The sort is stable: matches at one position stay in rule order.
    found.sort_by_key(|f| f.range.start);
    let mut apart: Vec<FoundSecret> = Vec::with_capacity(found.len());
    for next in found {
        match apart.last_mut().filter(|l| next.range.start < l.range.end) {
            Some(last) => last.range.end = last.range.end.max(next.range.end),
            None => apart.push(next),
        }
    }
    apart
}

/// Replaces each secret by `[redacted:RULE]` and calls `seen` for each. Returns `None` if there are none.
pub(crate) fn redact(text: &str, seen: &mut dyn FnMut(&Arc<str>)) -> Option<String> {
    let found = find(text);
    if found.is_empty() {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for FoundSecret { range, rule } in &found {
        seen(rule);
        out.push_str(text.get(copied..range.start).unwrap_or_default());
        out.push_str(&mark(rule));
        copied = range.end;
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Some(out)
}

/// Returns the redaction mark that replaces a secret.
pub(crate) fn mark(rule: &str) -> String {
    [MARK_PREFIX, rule, "]"].concat()
}

/// Rounds a byte index down to a character boundary.
fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
