//! Resource links that callers were given in results. No list contains these resources, but the caller may read them.
//!
//! Source: page server/tools, "Resource Links". A bounded memory, divided by caller, that stores the member that gave
//! each link.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};
use toolgate_core::{
    Caller, Content, ContentKind, Definition, DefinitionPin, Item, ItemKind, Origin, Outcome,
    Output, Service,
};
use toolgate_protocol::json::ObjectWriter;

/// Limits on the resource links in call results that an aggregate of servers remembers, so that callers can read them.
/// The oldest links are evicted first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct LinkLimits {
    /// Maximum number of remembered resource links per caller. Default: 256. With 0, no unlisted link can be read.
    pub per_caller: usize,
    /// Maximum number of callers whose resource links are remembered. Default: 1,024.
    pub callers: usize,
    /// Maximum length of the URI of a remembered resource link, in bytes; longer ones are not remembered. Default: 8
    /// KiB.
    pub max_uri_bytes: usize,
}

impl Default for LinkLimits {
    fn default() -> LinkLimits {
        LinkLimits {
            per_caller: 256,
            callers: 1024,
            max_uri_bytes: 8 * 1024,
        }
    }
}

/// Resource links that callers were given.
#[derive(Default)]
pub(super) struct ResourceLinkMemory {
    pub(super) limits: LinkLimits,
    given: Arc<Mutex<RememberedLinks>>,
}

#[derive(Default)]
struct RememberedLinks {
    /// Links of each caller, newest last.
    links: HashMap<Caller, VecDeque<RememberedLink>>,
    /// Callers that were given a link, the most recent last.
    callers: VecDeque<Caller>,
}

/// Remembered link. It stores only a SHA-256 of the URI, which may be long: the caller sends it again to read.
struct RememberedLink {
    uri: [u8; 32],
    member: Weak<dyn Service>,
    origin: Origin,
}

/// Resource link that a caller was given.
#[derive(Clone)]
pub(super) struct GivenResourceLink {
    uri: String,
    /// The member that gave the link. A replacement under the same id does not match.
    member: Weak<dyn Service>,
    /// Origin of the member at the time it gave the link.
    origin: Origin,
}

impl ResourceLinkMemory {
    /// Remembers the links in an outcome.
    pub(super) fn remember(
        &self,
        caller: &Caller,
        of: &Arc<dyn Service>,
        origin: &Origin,
        outcome: &Outcome,
    ) {
        let Outcome::Done(output) = outcome else {
            return;
        };
        let links: Vec<RememberedLink> = uris(output)
            .filter(|uri| uri.len() <= self.limits.max_uri_bytes)
            .map(|uri| RememberedLink {
                uri: digest(&uri),
                member: Arc::downgrade(of),
                origin: origin.clone(),
            })
            .collect();
        if !links.is_empty() && self.limits.per_caller > 0 && self.limits.callers > 0 {
            self.given().remember(caller, links, &self.limits);
        }
    }

    /// Shares the memory of `old`.
    pub(super) fn share_memory(&mut self, old: &ResourceLinkMemory) {
        self.given = old.given.clone();
    }

    /// Returns the link of this caller to that URI.
    pub(super) fn find(&self, caller: &Caller, uri: &str) -> Option<GivenResourceLink> {
        self.given().find(caller, uri)
    }

    fn given(&self) -> MutexGuard<'_, RememberedLinks> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GivenResourceLink {
    /// Returns whether that service gave the link.
    pub(super) fn is_from(&self, service: &Arc<dyn Service>) -> bool {
        std::ptr::addr_eq(self.member.as_ptr(), Arc::as_ptr(service))
    }

    /// Returns the linked resource as an unlisted item.
    pub(super) fn item(&self) -> Option<Arc<Item>> {
        let mut o = ObjectWriter::new();
        o.str("uri", &self.uri);
        o.str("name", &self.uri);
        let def = Definition::read(ItemKind::Resource, o.finish()).ok()?;
        let item = Item::new(self.origin.clone(), def);
        Some(Arc::new(item.with_pin(Arc::new(DefinitionPin::unlisted()))))
    }
}

impl RememberedLinks {
    fn remember(&mut self, caller: &Caller, links: Vec<RememberedLink>, limits: &LinkLimits) {
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

    fn find(&self, caller: &Caller, uri: &str) -> Option<GivenResourceLink> {
        let own = self.links.get(caller)?;
        let wanted = digest(uri);
        let known = own.iter().find(|link| link.uri == wanted)?;
        Some(GivenResourceLink {
            uri: uri.to_owned(),
            member: known.member.clone(),
            origin: known.origin.clone(),
        })
    }
}

fn digest(uri: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(ring::digest::digest(&ring::digest::SHA256, uri.as_bytes()).as_ref());
    bytes
}

/// Returns the URIs of the resource links in a result.
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
