//! Change notifications: which lists and resources changed, without their new content.

use crate::ChangeFilter;
use futures_util::future::select_all;
use std::{any::Any, collections::BTreeMap, fmt, sync::Arc};
use tokio::sync::watch;
use toolgate_wire::method::definition::ItemKind;

/// Counters of changes so far, maintained by the service that offers the items.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ChangeCounters {
    /// Changes of the list of tools.
    pub tools: u64,
    /// Changes of the lists of resources, templates and skills.
    pub resources: u64,
    /// Changes of the list of prompts.
    pub prompts: u64,
    /// Last update of each resource, by URI, as a sequence number across all resources.
    pub updated: BTreeMap<Arc<str>, u64>,
}

impl ChangeCounters {
    /// Maximum number of resources to remember. Beyond it, the least recently updated one is evicted.
    const MAX_UPDATED_RESOURCES: usize = 4096;

    /// Counts a change of a list.
    pub fn list(&mut self, kind: ItemKind) {
        match kind {
            ItemKind::Tool => self.tools += 1,
            ItemKind::Resource | ItemKind::Template | ItemKind::Skill => self.resources += 1,
            ItemKind::Prompt => self.prompts += 1,
        }
    }

    /// Counts an update of a resource.
    pub fn update(&mut self, uri: &str) {
        if self.updated.len() >= ChangeCounters::MAX_UPDATED_RESOURCES
            && !self.updated.contains_key(uri)
        {
            let oldest = self.updated.iter().min_by_key(|(_, number)| **number);
            let oldest = oldest.map(|(uri, _)| uri.clone());
            oldest.and_then(|uri| self.updated.remove(&uri));
        }
        // A new sequence number makes an evicted resource read as changed when it is updated again.
        let number = self.updated.values().max().map_or(1, |last| last + 1);
        self.updated.insert(uri.into(), number);
    }

    /// Returns the differences from an earlier state.
    fn since(&self, before: &ChangeCounters) -> ChangeSet {
        let lists = [
            (ItemKind::Tool, self.tools != before.tools),
            (ItemKind::Resource, self.resources != before.resources),
            (ItemKind::Prompt, self.prompts != before.prompts),
        ];
        let updated = self
            .updated
            .iter()
            .filter(|(uri, count)| before.updated.get(*uri) != Some(*count));
        ChangeSet {
            lists: lists
                .into_iter()
                .filter_map(|(kind, changed)| changed.then_some(kind))
                .collect(),
            updated: updated.map(|(uri, _)| uri.clone()).collect(),
        }
    }
}

/// Changes since the last report.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ChangeSet {
    /// Changed lists. Templates and skills change together with resources.
    pub lists: Vec<ItemKind>,
    /// URIs of updated resources.
    pub updated: Vec<Arc<str>>,
}

/// Stream of change notifications. It may merge several changes into one.
pub struct ChangeStream {
    sources: Vec<ChangeSource>,
    /// Filter of the stream; `None` reports all changes.
    only: Option<ChangeFilter>,
    _held: Vec<Box<dyn Any + Send + Sync>>,
}

/// One sender of changes, with its own filter and the state that was reported last.
struct ChangeSource {
    from: watch::Receiver<ChangeCounters>,
    seen: ChangeCounters,
    only: Option<ChangeFilter>,
    /// URIs that callers see, by the URIs of the sender.
    names: BTreeMap<Arc<str>, Arc<str>>,
}

impl ChangeStream {
    /// Creates a stream of the changes that a sender counts.
    pub fn new(mut from: watch::Receiver<ChangeCounters>) -> ChangeStream {
        let seen = from.borrow_and_update().clone();
        let source = ChangeSource {
            from,
            seen,
            only: None,
            names: BTreeMap::new(),
        };
        ChangeStream {
            sources: vec![source],
            only: None,
            _held: Vec::new(),
        }
    }

    /// Keeps a value alive until the stream is dropped, for example a subscription.
    pub fn holding(mut self, held: impl Any + Send + Sync) -> ChangeStream {
        self._held.push(Box::new(held));
        self
    }

    /// Restricts the stream to these lists and resources. Repeated filters intersect.
    pub fn only(mut self, want: &ChangeFilter) -> ChangeStream {
        self.only = Some(both(self.only.as_ref(), want));
        self
    }

    /// Merges two streams; each one's filter continues to apply to its own changes.
    pub fn and(self, other: ChangeStream) -> ChangeStream {
        let (mut one, other) = (self.settled(), other.settled());
        one.sources.extend(other.sources);
        one._held.extend(other._held);
        one
    }

    /// Renames the URIs of resources in the stream.
    pub fn renamed(self, names: &BTreeMap<Arc<str>, Arc<str>>) -> ChangeStream {
        let mut changes = self.settled();
        for source in &mut changes.sources {
            for uri in source.only.iter_mut().flat_map(|only| &mut only.uris) {
                if let Some(name) = names.get(uri.as_str()) {
                    *uri = name.to_string();
                }
            }
            let before = std::mem::take(&mut source.names);
            let other = |name: &Arc<str>| names.get(name).unwrap_or(name).clone();
            source.names = names.clone();
            source
                .names
                .extend(before.iter().map(|(own, name)| (own.clone(), other(name))));
        }
        changes
    }

    /// Moves the filter of the stream into each of its sources.
    fn settled(mut self) -> ChangeStream {
        if let Some(only) = self.only.take() {
            for source in &mut self.sources {
                source.only = Some(both(source.only.as_ref(), &only));
            }
        }
        self
    }

    /// Returns the filter of the stream; `None` if it reports all changes.
    pub fn told(&self) -> Option<&ChangeFilter> {
        self.only.as_ref()
    }

    /// Waits for the next changes. Returns `None` when all senders are gone.
    pub async fn next(&mut self) -> Option<ChangeSet> {
        loop {
            let source = self.changed().await?;
            let all = source.only.is_none();
            let mut changed = source.take();
            if let Some(only) = &self.only {
                changed.narrow(only);
            } else if all {
                return Some(changed);
            }
            if !changed.is_empty() {
                return Some(changed);
            }
        }
    }

    /// Waits until a source changes and returns it. Sources without a sender are removed.
    async fn changed(&mut self) -> Option<&mut ChangeSource> {
        loop {
            if self.sources.is_empty() {
                return None;
            }
            let waiting = self.sources.iter_mut();
            let waiting = waiting.map(|source| Box::pin(source.from.changed()));
            let (changed, at, rest) = select_all(waiting).await;
            drop(rest);
            if changed.is_ok() {
                return self.sources.get_mut(at);
            }
            drop(self.sources.remove(at));
        }
    }
}

impl ChangeSource {
    /// Returns the changes since the last call.
    fn take(&mut self) -> ChangeSet {
        let now = self.from.borrow_and_update().clone();
        let mut changed = now.since(&self.seen);
        self.seen = now;
        for uri in &mut changed.updated {
            if let Some(name) = self.names.get(uri) {
                *uri = name.clone();
            }
        }
        if let Some(only) = &self.only {
            changed.narrow(only);
        }
        changed
    }
}

/// Returns the intersection of two filters.
fn both(before: Option<&ChangeFilter>, want: &ChangeFilter) -> ChangeFilter {
    let mut want = want.clone();
    if let Some(before) = before {
        want.lists.retain(|kind| before.lists.contains(kind));
        want.uris.retain(|uri| before.uris.contains(uri));
    }
    want
}

impl ChangeSet {
    /// Removes all changes that the filter excludes. Templates and skills change together with resources.
    fn narrow(&mut self, want: &ChangeFilter) {
        let wanted = |kind: &ItemKind| {
            let with = [ItemKind::Template, ItemKind::Skill];
            want.lists.contains(kind)
                || (*kind == ItemKind::Resource && with.iter().any(|k| want.lists.contains(k)))
        };
        self.lists.retain(wanted);
        self.updated
            .retain(|uri| want.uris.iter().any(|wanted| **wanted == **uri));
    }

    fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.updated.is_empty()
    }
}

impl fmt::Debug for ChangeStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangeStream")
            .field("sources", &self.sources.len())
            .field("only", &self.only)
            .finish()
    }
}

#[cfg(test)]
#[path = "changes/tests.rs"]
mod tests;
