//! Finds secrets in a text.

use super::{
    MARK,
    keywords::KEYWORDS,
    rules::{RULES, Rule, Rules},
};
use memchr::memmem::Finder;
use std::ops::Range;

/// A secret in a text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Found {
    /// Where it is.
    pub(super) range: Range<usize>,
    /// By which rule.
    pub(super) rule: &'static str,
}

/// How far before its keyword a secret may begin, in bytes.
const LEAD: usize = 64;

/// All secrets of a text, in their order; none overlaps another.
pub(super) fn find(text: &str) -> Vec<Found> {
    by_rules(&RULES, text)
}

/// The same by these rules.
pub(super) fn by_rules(rules: &Rules, text: &str) -> Vec<Found> {
    let Some(starts) = starts(rules, text) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (rule, keyword) in rules.rules.iter().zip(starts) {
        if let Some(keyword) = keyword {
            by_rule(rule, text, keyword, &mut found);
        }
    }
    apart(found)
}

/// Whether the text of a JSON value may hold a secret: it has a keyword, or an escape that could hide one.
pub(super) fn may_hold(raw: &str) -> bool {
    let hides = |escape: &Finder| escape.find(raw.as_bytes()).is_some();
    KEYWORDS.any(raw) || RULES.hiding.iter().any(hides)
}

/// Where to begin with each rule; `None` where no keyword is in the text.
fn starts(rules: &Rules, text: &str) -> Option<Vec<Option<usize>>> {
    let mut starts: Option<Vec<Option<usize>>> = None;
    KEYWORDS.each(text, &mut |at, rule| {
        let starts = starts.get_or_insert_with(|| vec![None; rules.rules.len()]);
        if let Some(start) = starts.get_mut(rule) {
            *start = Some(start.map_or(at, |start| start.min(at)));
        }
    });
    starts
}

fn by_rule(rule: &Rule, text: &str, keyword: usize, found: &mut Vec<Found>) {
    let mut at = floor(text, keyword.saturating_sub(LEAD));
    if !rule
        .text
        .may_find(text.get(at..).unwrap_or_default().as_bytes())
    {
        return;
    }
    let compiled = rule.compiled();
    let mut places = compiled.pattern.capture_locations();
    while at <= text.len() {
        let Some(whole) = compiled.pattern.captures_read_at(&mut places, text, at) else {
            return;
        };
        let group = compiled.groups.iter().find_map(|nth| places.get(*nth));
        let (from, to) = group.unwrap_or((whole.start(), whole.end()));
        let secret = text.get(from..to).unwrap_or_default();
        if rule.text.check.holds(secret) {
            found.push(Found {
                range: from..to,
                rule: rule.text.id,
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
pub(super) fn redact(text: &str, seen: &mut dyn FnMut(&'static str)) -> Option<String> {
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
