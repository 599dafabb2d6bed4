//! What a client is told at its opening of how to use it all: the words of the servers that it may use.

use futures_util::FutureExt;
use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};
use toolgate::{About, Caller, Catalog, ItemKind, List, Rule, Service, edge::Instructs};
use toolgate_policy::{Access, pins::hidden};

/// The words of the servers of which a caller sees anything. Asks no server, so no opening waits for one.
pub(crate) struct Instructions {
    /// What is known of all, cleaned.
    pub(crate) known: Arc<dyn Service>,
    pub(crate) access: Access,
    /// The longest text, in bytes.
    pub(crate) most: usize,
}

impl Instructions {
    fn catalogs(&self, caller: &Caller) -> Vec<Catalog> {
        let list = |kind| self.known.list(List::all(caller.clone(), kind));
        let lists = ItemKind::ALL.into_iter().map(list);
        // Nothing that is known has to be waited for.
        let known = lists.filter_map(|list| list.now_or_never());
        known.filter_map(Result::ok).collect()
    }

    fn seen(&self, caller: &Caller, catalogs: &[Catalog]) -> HashSet<Arc<str>> {
        let items = catalogs.iter().flat_map(|catalog| catalog.items());
        let seen = items
            .filter(|i| i.withheld.is_none() && hidden(i).is_none() && self.access.sees(caller, i));
        seen.map(|item| item.origin.server.clone()).collect()
    }
}

impl Instructs for Instructions {
    fn instructions(&self, caller: &Caller) -> Option<String> {
        let catalogs = self.catalogs(caller);
        let seen = self.seen(caller, &catalogs);
        let of_seen = |about: &&About| match &about.server {
            Some(server) => seen.contains(server),
            None => !seen.is_empty(),
        };
        let all = catalogs.iter().flat_map(|catalog| catalog.about());
        // Each list of a server carries the same words.
        let words: BTreeSet<String> = all.filter(of_seen).map(About::to_string).collect();
        let words: Vec<String> = words.into_iter().collect();
        (!words.is_empty() && self.most > 0).then(|| cut(words.join("\n\n"), self.most))
    }
}

/// The text up to so many bytes, with a sign where it is cut.
fn cut(mut text: String, most: usize) -> String {
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
