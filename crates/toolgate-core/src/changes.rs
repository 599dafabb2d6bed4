//! Change notifications: which lists and resources changed, without their new content.

use crate::ChangeFilter;
use futures_util::future::select_all;
use std::{any::Any, collections::BTreeMap, fmt, sync::Arc};
use tokio::sync::watch;
use toolgate_protocol::method::definition::ItemKind;

/// Counters of list changes and resource updates, maintained by the service that offers the items.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ChangeCounters {
    /// Number of changes of the list of tools so far.
    pub tools: u64,
    /// Number of changes of the lists of resources, templates and skills so far.
    pub resources: u64,
    /// Number of changes of the list of prompts so far.
    pub prompts: u64,
    /// Sequence number of the last update of each resource, by URI.
    pub updated: BTreeMap<Arc<str>, u64>,
}

impl ChangeCounters {
    /// Maximum number of resources to remember. Beyond it, the least recently updated one is evicted.
    const MAX_UPDATED_RESOURCES: usize = 4096;

    /// Counts a change of the list of items of this kind.
    pub fn count_list_change(&mut self, kind: ItemKind) {
        match kind {
            ItemKind::Tool => self.tools += 1,
            ItemKind::Resource | ItemKind::Template | ItemKind::Skill => self.resources += 1,
            ItemKind::Prompt => self.prompts += 1,
        }
    }

    /// Counts an update of the resource at this URI.
    pub fn count_update(&mut self, uri: &str) {
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
    fn changes_since(&self, before: &ChangeCounters) -> ChangeSet {
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

/// Lists and resources that changed since the stream's last report.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ChangeSet {
    /// Changed lists. Templates and skills change together with resources.
    pub lists: Vec<ItemKind>,
    /// URIs of updated resources.
    pub updated: Vec<Arc<str>>,
}

impl ChangeSet {
    /// Creates the changes of these lists, without updated resources.
    pub fn of_lists(lists: Vec<ItemKind>) -> ChangeSet {
        ChangeSet {
            lists,
            updated: Vec::new(),
        }
    }
}

/// Stream of change notifications. It may merge several changes into one.
///
/// Specification: [subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions).
pub struct ChangeStream {
    sources: Vec<ChangeSource>,
    /// Filter of the stream; `None` reports all changes.
    filter: Option<ChangeFilter>,
    _kept_alive: Vec<Box<dyn Any + Send + Sync>>,
}

/// One sender of changes, with its own filter and the state that was reported last.
struct ChangeSource {
    receiver: watch::Receiver<ChangeCounters>,
    reported: ChangeCounters,
    filter: Option<ChangeFilter>,
    /// URIs that callers see, by the URIs of the sender.
    renamed_uris: BTreeMap<Arc<str>, Arc<str>>,
}

impl ChangeStream {
    /// Creates a change stream from counters that a service maintains.
    pub fn new(mut from: watch::Receiver<ChangeCounters>) -> ChangeStream {
        let seen = from.borrow_and_update().clone();
        let source = ChangeSource {
            receiver: from,
            reported: seen,
            filter: None,
            renamed_uris: BTreeMap::new(),
        };
        ChangeStream {
            sources: vec![source],
            filter: None,
            _kept_alive: Vec::new(),
        }
    }

    /// Keeps a value, for example a subscription, alive until the change stream is dropped.
    pub fn keep_alive(mut self, value: impl Any + Send + Sync) -> ChangeStream {
        self._kept_alive.push(Box::new(value));
        self
    }

    /// Restricts the change stream to the lists and resources of a filter. Repeated filters intersect.
    pub fn filtered(mut self, filter: &ChangeFilter) -> ChangeStream {
        self.filter = Some(intersection(self.filter.as_ref(), filter));
        self
    }

    /// Merges two change streams; each one's filter continues to apply to its own changes.
    pub fn merged_with(self, other: ChangeStream) -> ChangeStream {
        let (mut one, other) = (
            self.with_filter_in_sources(),
            other.with_filter_in_sources(),
        );
        one.sources.extend(other.sources);
        one._kept_alive.extend(other._kept_alive);
        one
    }

    /// Renames the URIs of resources in the change stream.
    pub fn with_renamed_uris(self, names: &BTreeMap<Arc<str>, Arc<str>>) -> ChangeStream {
        let mut changes = self.with_filter_in_sources();
        for source in &mut changes.sources {
            for uri in source.filter.iter_mut().flat_map(|only| &mut only.uris) {
                if let Some(name) = names.get(uri.as_str()) {
                    *uri = name.to_string();
                }
            }
            let before = std::mem::take(&mut source.renamed_uris);
            let other = |name: &Arc<str>| names.get(name).unwrap_or(name).clone();
            source.renamed_uris = names.clone();
            source
                .renamed_uris
                .extend(before.iter().map(|(own, name)| (own.clone(), other(name))));
        }
        changes
    }

    /// Moves the filter of the stream into each of its sources.
    fn with_filter_in_sources(mut self) -> ChangeStream {
        if let Some(only) = self.filter.take() {
            for source in &mut self.sources {
                source.filter = Some(intersection(source.filter.as_ref(), &only));
            }
        }
        self
    }

    /// Returns the filter of the change stream; `None` if it reports all changes.
    pub fn filter(&self) -> Option<&ChangeFilter> {
        self.filter.as_ref()
    }

    /// Waits for the next changes of lists or resources. Returns `None` when all senders are gone.
    pub async fn next(&mut self) -> Option<ChangeSet> {
        loop {
            let source = self.next_changed_source().await?;
            let all = source.filter.is_none();
            let mut changed = source.take_changes();
            if let Some(only) = &self.filter {
                changed.retain_matching(only);
            } else if all {
                return Some(changed);
            }
            if !changed.is_empty() {
                return Some(changed);
            }
        }
    }

    /// Waits until a source changes and returns it. Sources without a sender are removed.
    async fn next_changed_source(&mut self) -> Option<&mut ChangeSource> {
        loop {
            if self.sources.is_empty() {
                return None;
            }
            let waiting = self.sources.iter_mut();
            let waiting = waiting.map(|source| Box::pin(source.receiver.changed()));
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
    fn take_changes(&mut self) -> ChangeSet {
        let now = self.receiver.borrow_and_update().clone();
        let mut changed = now.changes_since(&self.reported);
        self.reported = now;
        for uri in &mut changed.updated {
            if let Some(name) = self.renamed_uris.get(uri) {
                *uri = name.clone();
            }
        }
        if let Some(only) = &self.filter {
            changed.retain_matching(only);
        }
        changed
    }
}

/// Returns the intersection of two filters.
fn intersection(before: Option<&ChangeFilter>, want: &ChangeFilter) -> ChangeFilter {
    let mut want = want.clone();
    if let Some(before) = before {
        want.lists.retain(|kind| before.lists.contains(kind));
        want.uris.retain(|uri| before.uris.contains(uri));
    }
    want
}

impl ChangeSet {
    /// Removes all changes that the filter excludes. Templates and skills change together with resources.
    fn retain_matching(&mut self, want: &ChangeFilter) {
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
            .field("only", &self.filter)
            .finish()
    }
}

#[cfg(test)]
#[path = "changes/tests.rs"]
mod tests;
