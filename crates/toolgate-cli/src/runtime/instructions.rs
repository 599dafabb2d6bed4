//! Server instructions for clients: the instructions of all servers that a caller may use.

use futures_util::FutureExt;
use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};
use toolgate::edge::InstructionsProvider;
use toolgate_core::{Caller, Catalog, ItemKind, ListRequest, Rule, ServerInstructions, Service};
use toolgate_policy::{AccessRules, pins::hidden_reason};

/// Instructions of the servers with an item visible to the caller. Contacts no server, so initialization never waits.
pub(crate) struct VisibleInstructions {
    /// Cached and sanitized lists of all servers.
    pub(crate) known: Arc<dyn Service>,
    pub(crate) access: AccessRules,
    /// Maximum size of the text in bytes.
    pub(crate) max_bytes: usize,
}

impl VisibleInstructions {
    fn catalogs(&self, caller: &Caller) -> Vec<Catalog> {
        let list = |kind| self.known.list(ListRequest::all(caller.clone(), kind));
        let lists = ItemKind::ALL.into_iter().map(list);
        // Cached lists are ready at once.
        let known = lists.filter_map(|list| list.now_or_never());
        known.filter_map(Result::ok).collect()
    }

    fn visible_servers(&self, caller: &Caller, catalogs: &[Catalog]) -> HashSet<Arc<str>> {
        let items = catalogs.iter().flat_map(|catalog| catalog.items());
        let seen = items.filter(|i| {
            i.withheld.is_none() && hidden_reason(i).is_none() && self.access.is_visible(caller, i)
        });
        seen.map(|item| item.origin.server.clone()).collect()
    }
}

impl InstructionsProvider for VisibleInstructions {
    fn instructions(&self, caller: &Caller) -> Option<String> {
        let catalogs = self.catalogs(caller);
        let seen = self.visible_servers(caller, &catalogs);
        let of_seen = |about: &&ServerInstructions| match &about.server {
            Some(server) => seen.contains(server),
            None => !seen.is_empty(),
        };
        let all = catalogs
            .iter()
            .flat_map(|catalog| catalog.server_instructions());
        // Each list of a server carries the same text.
        let words: BTreeSet<String> = all
            .filter(of_seen)
            .map(ServerInstructions::to_string)
            .collect();
        let words: Vec<String> = words.into_iter().collect();
        (!words.is_empty() && self.max_bytes > 0)
            .then(|| truncate_text(words.join("\n\n"), self.max_bytes))
    }
}

/// Truncates a text to a number of bytes and marks the cut.
fn truncate_text(mut text: String, most: usize) -> String {
    if text.len() > most {
        let end = (0..=most).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or(0));
        text.push('…');
    }
    text
}

#[cfg(test)]
#[path = "instructions/tests.rs"]
mod tests;
