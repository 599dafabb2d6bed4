//! Confusable names, and texts that mention tools of other servers.

use super::skeleton::skeleton;
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};
use toolgate_core::{Item, ItemKind};
use unicode_normalization::UnicodeNormalization;

/// Indexes of two items with confusable names.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) struct ConfusablePair(pub(super) usize, pub(super) usize);

/// Returns the comparison forms of a name. Two names are confusables (homoglyphs) if they share one.
///
/// Case is folded before and after confusable characters are merged: `I` looks like `l` and means `i`.
pub(crate) fn comparison_forms(name: &str) -> [String; 2] {
    let plain: String = name.nfkc().collect();
    let shape = |text: &str| {
        let shape: String = skeleton(text).collect();
        let kept = shape
            .to_lowercase()
            .nfkc()
            .filter(|c| !is_separator(*c))
            .collect::<String>();
        // Applied again: a lower-case letter may have a skeleton of its own.
        skeleton(&kept).filter(|c| !is_separator(*c)).collect()
    };
    [shape(&plain), shape(&plain.to_lowercase())]
}

/// Reports whether a character separates words in a name.
fn is_separator(c: char) -> bool {
    matches!(c, '_' | '-' | '.' | ' ' | '/' | ':') || is_dash(c)
}

fn is_dash(c: char) -> bool {
    ('\u{2010}'..='\u{2015}').contains(&c)
}

/// Reports whether two names are confusable and not equal.
#[cfg(test)]
pub(super) fn are_confusable(one: &str, two: &str) -> bool {
    let (a, b) = (comparison_forms(one), comparison_forms(two));
    one != two && a.iter().any(|form| b.contains(form))
}

/// Returns the pairs of tools or prompts with confusable names (confusables, homoglyphs): on different servers, or on one
/// server if a name is not ASCII.
///
/// The same name on two servers is not a pair, as prefixes distinguish them. Confusable full names are a pair.
pub(super) fn confusable_pairs(items: &[Arc<Item>]) -> BTreeSet<ConfusablePair> {
    let mut local: HashMap<String, Vec<usize>> = HashMap::new();
    let mut wire: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, item) in items.iter().enumerate() {
        if !matches!(item.kind(), ItemKind::Tool | ItemKind::Prompt) {
            continue;
        }
        for (name, of) in [
            (item.local_name.as_str(), &mut local),
            (item.def.name(), &mut wire),
        ] {
            for form in BTreeSet::from(comparison_forms(name)) {
                of.entry(form).or_default().push(at);
            }
        }
    }
    let near = |a: usize, b: usize| {
        let (a, b) = (&items[a], &items[b]);
        a.origin.server != b.origin.server || !(a.local_name.is_ascii() && b.local_name.is_ascii())
    };
    let locals = pairs_in(&local).filter(|p| items[p.0].local_name != items[p.1].local_name);
    let wires = pairs_in(&wire);
    locals
        .chain(wires)
        .filter(|p| near(p.0, p.1))
        .take(MAX_CONFUSABLE_PAIRS)
        .collect()
}

/// Maximum number of reported pairs. A server with so many confusable names has been reported often enough.
const MAX_CONFUSABLE_PAIRS: usize = 10_000;

fn pairs_in(of: &HashMap<String, Vec<usize>>) -> impl Iterator<Item = ConfusablePair> {
    of.values().flat_map(|all| {
        let rest = |n: usize| all[n + 1..].iter().copied();
        let each = all.iter().enumerate();
        each.flat_map(move |(n, a)| rest(n).map(|b| ConfusablePair(*a, b)))
    })
}

/// Names of all tools, to find texts that mention tools of other servers.
pub(super) struct ToolNameIndex(HashMap<String, HashSet<Arc<str>>>);

impl ToolNameIndex {
    /// Collects the full, wire and local names of tools. Local names that could be ordinary words are skipped.
    pub(super) fn of(items: &[Arc<Item>]) -> ToolNameIndex {
        let mut names: HashMap<String, HashSet<Arc<str>>> = HashMap::new();
        for item in items.iter().filter(|item| item.kind() == ItemKind::Tool) {
            let own = is_distinctive(&item.local_name).then(|| item.local_name.clone());
            let all = [item.full_name(), item.def.name().to_owned()];
            for name in all
                .into_iter()
                .chain(own)
                .filter(|name| is_distinctive(name))
            {
                names
                    .entry(name)
                    .or_default()
                    .insert(item.origin.server.clone());
            }
        }
        ToolNameIndex(names)
    }

    /// Returns the tools of other servers that a text mentions.
    pub(super) fn mentions(&self, text: &str, server: &str) -> BTreeSet<&str> {
        let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        let words = text
            .split(|c| !part(c))
            .map(|word| word.trim_matches(['.', '-']));
        let known = words.filter_map(|word| self.0.get_key_value(word));
        let foreign = known.filter(|(_, servers)| !servers.contains(server));
        foreign.map(|(name, _)| name.as_str()).collect()
    }
}

/// Reports whether a name is not an ordinary word: at least 6 characters, with a separator, digit or capital inside.
fn is_distinctive(name: &str) -> bool {
    let inside = |c: char| matches!(c, '_' | '-' | '.') || c.is_ascii_digit() || c.is_uppercase();
    name.chars().count() >= 6 && name.chars().skip(1).any(inside)
}
