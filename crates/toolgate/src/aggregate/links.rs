//! Links to resources that callers were given in results: no list shows them, and they may be read.
//!
//! Source: page server/tools, "Resource Links". A memory of limited size, a part of it for each caller, with the member
//! that gave the link.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use toolgate_core::{
    Caller, Content, ContentKind, Definition, Item, ItemKind, Origin, Outcome, Output,
};
use toolgate_wire::json::ObjectWriter;

/// How many links are remembered. What was given longest ago is forgotten first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LinkLimits {
    /// Of each caller; 256. With 0 none can be read.
    pub per_caller: usize,
    /// Callers; 1,024.
    pub callers: usize,
    /// The longest URI, in bytes; 8 KiB.
    pub uri: usize,
}

impl Default for LinkLimits {
    fn default() -> LinkLimits {
        LinkLimits {
            per_caller: 256,
            callers: 1024,
            uri: 8 * 1024,
        }
    }
}

/// The links that callers were given.
#[derive(Default)]
pub(super) struct Links {
    pub(super) limits: LinkLimits,
    given: Mutex<Given>,
}

#[derive(Default)]
struct Given {
    /// The newest last.
    links: HashMap<Caller, VecDeque<Link>>,
    /// Who was given a link; the last one last.
    callers: VecDeque<Caller>,
}

#[derive(Clone)]
struct Link {
    uri: String,
    /// The member that gave it.
    from: usize,
    /// What the member said of itself when it gave it.
    origin: Origin,
}

impl Links {
    /// Remembers the links of a result.
    pub(super) fn note(&self, caller: &Caller, from: usize, origin: &Origin, outcome: &Outcome) {
        let Outcome::Done(output) = outcome else {
            return;
        };
        let links: Vec<Link> = uris(output)
            .filter(|uri| uri.len() <= self.limits.uri)
            .map(|uri| Link {
                uri,
                from,
                origin: origin.clone(),
            })
            .collect();
        if !links.is_empty() && self.limits.per_caller > 0 && self.limits.callers > 0 {
            self.given().note(caller, links, &self.limits);
        }
    }

    /// The member that gave this caller a link to a resource.
    pub(super) fn from(&self, caller: &Caller, uri: &str) -> Option<usize> {
        Some(self.given().find(caller, uri)?.from)
    }

    /// The resource behind a link that this caller was given.
    pub(super) fn item(&self, caller: &Caller, uri: &str) -> Option<Arc<Item>> {
        let link = self.given().find(caller, uri)?;
        let mut o = ObjectWriter::new();
        o.str("uri", uri);
        o.str("name", uri);
        let def = Definition::read(ItemKind::Resource, o.finish()).ok()?;
        Some(Arc::new(Item::new(link.origin, def)))
    }

    fn given(&self) -> MutexGuard<'_, Given> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Given {
    fn note(&mut self, caller: &Caller, links: Vec<Link>, limits: &LinkLimits) {
        self.callers.retain(|known| known != caller);
        self.callers.push_back(caller.clone());
        if self.callers.len() > limits.callers
            && let Some(oldest) = self.callers.pop_front()
        {
            self.links.remove(&oldest);
        }
        let own = self.links.entry(caller.clone()).or_default();
        for link in links {
            own.retain(|known| known.uri != link.uri);
            own.push_back(link);
            if own.len() > limits.per_caller {
                own.pop_front();
            }
        }
    }

    fn find(&self, caller: &Caller, uri: &str) -> Option<Link> {
        let own = self.links.get(caller)?;
        own.iter().find(|link| link.uri == uri).cloned()
    }
}

/// The URIs of the links in a result.
fn uris(output: &Output) -> impl Iterator<Item = String> {
    let blocks: Vec<&Content> = match output {
        Output::Tool(result) => result.content.iter().collect(),
        Output::Prompt(prompt) => prompt.messages.iter().map(|m| &m.content).collect(),
        Output::Resource(_) | Output::Complete(_) => Vec::new(),
    };
    let links = blocks
        .into_iter()
        .filter(|b| b.kind == ContentKind::ResourceLink);
    let uris: Vec<String> = links.filter_map(|b| b.json.get("uri")?.string()).collect();
    uris.into_iter()
}

#[cfg(test)]
#[path = "links/tests.rs"]
mod tests;
