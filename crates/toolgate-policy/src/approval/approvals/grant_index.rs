//! In-memory index of the grants in the store, by id and by tool.

use super::grants::{GRANTS_TABLE, StoredApprovalGrant};
use crate::StateStore;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

/// Ids of grants, by the server's own name of their tool.
type IdsByTool = HashMap<String, BTreeSet<Arc<str>>>;

/// Index of all grants. A use of a grant changes one entry of the store, and costs the same however many grants there
/// are.
#[derive(Default)]
pub(super) struct GrantIndex {
    by_id: BTreeMap<Arc<str>, StoredApprovalGrant>,
    by_server: HashMap<Arc<str>, IdsByTool>,
    /// Number of the store's changes that the index has.
    change_count: Option<u64>,
}

impl GrantIndex {
    /// Reads the grants that changed in the store since the last time.
    pub(super) fn sync(&mut self, store: &dyn StateStore) {
        let changes = store.changes_since(GRANTS_TABLE, self.change_count);
        let keys = changes.keys.unwrap_or_else(|| self.changed_versions(store));
        for key in keys.into_iter().collect::<BTreeSet<_>>() {
            self.remove(&key);
            let row = store.row(GRANTS_TABLE, &key);
            if let Some(grant) = row.as_ref().and_then(StoredApprovalGrant::read) {
                self.insert(grant);
            }
        }
        self.change_count = Some(changes.count);
    }

    /// Returns all grants, in the order of their ids.
    pub(super) fn iter(&self) -> impl Iterator<Item = &StoredApprovalGrant> {
        self.by_id.values()
    }

    /// Returns a grant.
    pub(super) fn get(&self, id: &str) -> Option<&StoredApprovalGrant> {
        self.by_id.get(id)
    }

    /// Returns the number of grants.
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Returns the grants for a tool, in the order of their ids.
    pub(super) fn of_tool<'a>(
        &'a self,
        server: &str,
        tool: &str,
    ) -> impl Iterator<Item = &'a StoredApprovalGrant> {
        let ids = self.by_server.get(server).and_then(|tools| tools.get(tool));
        let ids = ids.into_iter().flatten();
        ids.filter_map(|id| self.by_id.get(id))
    }

    /// Returns the ids whose versions differ from those of the store.
    fn changed_versions(&self, store: &dyn StateStore) -> Vec<String> {
        let stored: HashMap<String, u64> = store.versions(GRANTS_TABLE).into_iter().collect();
        let known = self.by_id.keys().filter(|id| !stored.contains_key(&***id));
        let removed: Vec<String> = known.map(ToString::to_string).collect();
        let is_current = |id: &str, version: u64| {
            let known = self.by_id.get(id);
            known.is_some_and(|grant| grant.version == version)
        };
        let changed = stored
            .into_iter()
            .filter(|(id, version)| !is_current(id, *version));
        removed
            .into_iter()
            .chain(changed.map(|(id, _)| id))
            .collect()
    }

    fn insert(&mut self, grant: StoredApprovalGrant) {
        let id = grant.view.id.clone();
        let tools = self.by_server.entry(grant.view.server.clone()).or_default();
        let ids = tools.entry(grant.view.tool.clone()).or_default();
        ids.insert(id.clone());
        self.by_id.insert(id, grant);
    }

    fn remove(&mut self, id: &str) {
        let Some(grant) = self.by_id.remove(id) else {
            return;
        };
        let (server, tool) = (&grant.view.server, &grant.view.tool);
        let Some(tools) = self.by_server.get_mut(server) else {
            return;
        };
        if let Some(ids) = tools.get_mut(tool) {
            ids.remove(id);
            if ids.is_empty() {
                tools.remove(tool);
            }
        }
        if tools.is_empty() {
            self.by_server.remove(server);
        }
    }
}
