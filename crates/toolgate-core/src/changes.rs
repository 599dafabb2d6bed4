//! What went stale, never the new content.

use std::{any::Any, collections::BTreeMap, fmt, sync::Arc};
use tokio::sync::watch;
use toolgate_wire::method::definition::ItemKind;

/// How often things changed so far. Kept by whoever offers them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Stale {
    /// The list of tools.
    pub tools: u64,
    /// The lists of resources and templates.
    pub resources: u64,
    /// The list of prompts.
    pub prompts: u64,
    /// Single resources, by their URIs.
    pub updated: BTreeMap<Arc<str>, u64>,
}

impl Stale {
    /// How many resources are remembered at most; the rest are forgotten, the first in order first.
    const MOST: usize = 4096;

    /// Counts a change of a list.
    pub fn list(&mut self, kind: ItemKind) {
        match kind {
            ItemKind::Tool => self.tools += 1,
            ItemKind::Resource | ItemKind::Template => self.resources += 1,
            ItemKind::Prompt => self.prompts += 1,
        }
    }

    /// Counts a change of a resource.
    pub fn update(&mut self, uri: &str) {
        if self.updated.len() >= Stale::MOST && !self.updated.contains_key(uri) {
            self.updated.pop_first();
        }
        *self.updated.entry(uri.into()).or_default() += 1;
    }

    /// What is different from before.
    fn since(&self, before: &Stale) -> Changed {
        let lists = [
            (ItemKind::Tool, self.tools != before.tools),
            (ItemKind::Resource, self.resources != before.resources),
            (ItemKind::Prompt, self.prompts != before.prompts),
        ];
        let updated = self
            .updated
            .iter()
            .filter(|(uri, count)| before.updated.get(*uri) != Some(*count));
        Changed {
            lists: lists
                .into_iter()
                .filter_map(|(kind, changed)| changed.then_some(kind))
                .collect(),
            updated: updated.map(|(uri, _)| uri.clone()).collect(),
        }
    }
}

/// What changed since the last look.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Changed {
    /// These lists. Templates change with the resources.
    pub lists: Vec<ItemKind>,
    /// These resources.
    pub updated: Vec<Arc<str>>,
}

/// Tells when something went stale. Several changes may be told as one.
pub struct Changes {
    from: watch::Receiver<Stale>,
    seen: Stale,
    _held: Vec<Box<dyn Any + Send + Sync>>,
}

impl Changes {
    /// Changes that a sender counts.
    pub fn new(mut from: watch::Receiver<Stale>) -> Changes {
        let seen = from.borrow_and_update().clone();
        Changes {
            from,
            seen,
            _held: Vec::new(),
        }
    }

    /// Keeps something until nobody listens any more, for example a subscription.
    pub fn holding(mut self, held: impl Any + Send + Sync) -> Changes {
        self._held.push(Box::new(held));
        self
    }

    /// Waits for the next change; `None` when there will be none any more.
    pub async fn next(&mut self) -> Option<Changed> {
        self.from.changed().await.ok()?;
        let now = self.from.borrow_and_update().clone();
        let changed = now.since(&self.seen);
        self.seen = now;
        Some(changed)
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").field("seen", &self.seen).finish()
    }
}
