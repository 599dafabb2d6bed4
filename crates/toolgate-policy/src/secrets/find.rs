//! Finds secrets in a text.

use super::{
    MARK,
    rules::{RULES, Rule, Rules},
};
use std::{ops::Range, sync::Arc};

/// A secret in a text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Found {
    /// Where it is.
    pub(super) range: Range<usize>,
    /// By which rule.
    pub(super) rule: Arc<str>,
}

/// How far before its keyword a secret may begin, in bytes.
const LEAD: usize = 64;

/// All secrets of a text, in their order; none overlaps another.
pub(super) fn find(text: &str) -> Vec<Found> {
    let rules = &*RULES;
    let Some(starts) = starts(rules, text) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (rule, start) in rules.rules.iter().zip(starts) {
        if let Some(start) = start {
            by_rule(rule, text, start, &mut found);
        }
    }
    apart(found)
}

/// Whether the text of a JSON value may hold a secret: it has a keyword, or an escape that could hide one.
pub(super) fn may_hold(raw: &str) -> bool {
    RULES.keywords.is_match(raw) || raw.contains("\\u") || raw.contains("\\/")
}

/// Where to begin with each rule; `None` where no keyword is in the text.
fn starts(rules: &Rules, text: &str) -> Option<Vec<Option<usize>>> {
    let mut starts: Option<Vec<Option<usize>>> = None;
    for hit in rules.keywords.find_iter(text) {
        let starts = starts.get_or_insert_with(|| vec![None; rules.rules.len()]);
        let own = rules.of_keyword.get(hit.pattern().as_usize());
        for rule in own.into_iter().flatten() {
            if let Some(start @ None) = starts.get_mut(*rule) {
                *start = Some(floor(text, hit.start().saturating_sub(LEAD)));
            }
        }
    }
    starts
}

fn by_rule(rule: &Rule, text: &str, start: usize, found: &mut Vec<Found>) {
    let mut at = start;
    let mut places = rule.pattern.capture_locations();
    while at <= text.len() {
        let Some(whole) = rule.pattern.captures_read_at(&mut places, text, at) else {
            return;
        };
        let group = rule.groups.iter().find_map(|nth| places.get(*nth));
        let (from, to) = group.unwrap_or((whole.start(), whole.end()));
        let secret = text.get(from..to).unwrap_or_default();
        if rule.check.holds(secret) {
            found.push(Found {
                range: from..to,
                rule: rule.id.clone(),
            });
        }
        // One character is in every match, so this moves on.
        at = to.max(whole.start() + 1);
        while !text.is_char_boundary(at) {
            at += 1;
        }
    }
}

/// Of those that overlap, one: as long as both, with the name of the rule that stands first in the file.
fn apart(mut found: Vec<Found>) -> Vec<Found> {
    // Stable: at one place, the order of the rules stays.
    found.sort_by_key(|f| f.range.start);
    let mut apart: Vec<Found> = Vec::with_capacity(found.len());
    for next in found {
        match apart.last_mut().filter(|l| next.range.start < l.range.end) {
            Some(last) => last.range.end = last.range.end.max(next.range.end),
            None => apart.push(next),
        }
    }
    apart
}

/// The text with each secret replaced by `[redacted:RULE]`; `seen` hears of each.
pub(super) fn redact(text: &str, seen: &mut dyn FnMut(&Arc<str>)) -> Option<String> {
    let found = find(text);
    if found.is_empty() {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for Found { range, rule } in &found {
        seen(rule);
        out.push_str(text.get(copied..range.start).unwrap_or_default());
        out.push_str(&mark(rule));
        copied = range.end;
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Some(out)
}

/// What stands in the place of a secret.
pub(super) fn mark(rule: &str) -> String {
    [MARK, rule, "]"].concat()
}

/// The character that a byte belongs to begins there.
fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
