//! Index of the rules that match an item by name.

use crate::access::names::{self, ItemNames};
use std::sync::Arc;
use toolgate_core::{Item, ItemKind};

/// Rules of a list that match the names of an item.
///
/// The names of a tool or a prompt never change, so its item caches the rules. A call then costs the same with many rules
/// for other tools.
pub(crate) struct MatchingRules<R> {
    rules: Arc<[R]>,
    indexes: Vec<usize>,
}

impl<R: Send + Sync + 'static> MatchingRules<R> {
    /// Returns the rules that match an item, or the resource at a URI.
    pub(crate) fn of(
        rules: &Arc<[R]>,
        item: &Item,
        uri: Option<&str>,
        matches: impl Fn(&R, &ItemNames) -> bool,
    ) -> Arc<MatchingRules<R>> {
        let find = |item: &Item| {
            let names = names::of(item, uri);
            let matching = rules.iter().enumerate();
            let matching = matching.filter(|(_, rule)| matches(rule, &names));
            MatchingRules {
                rules: rules.clone(),
                indexes: matching.map(|(index, _)| index).collect(),
            }
        };
        match item.kind() {
            ItemKind::Tool | ItemKind::Prompt => {
                item.cached_while(|known| Arc::ptr_eq(&known.rules, rules), find)
            }
            ItemKind::Resource | ItemKind::Template | ItemKind::Skill => Arc::new(find(item)),
        }
    }

    /// Returns the rules in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &R> {
        let rule = |index: &usize| self.rules.get(*index);
        self.indexes.iter().filter_map(rule)
    }
}
