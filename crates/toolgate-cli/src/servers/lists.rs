//! Lists of a server's items, also while it is down: from this run or from an earlier one.

use super::ServerSpec;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::{
    sync::watch,
    time::{Duration, Instant, timeout},
};
use toolgate_core::{BoxFuture, Catalog, ItemKind};

/// Storage of the last known lists of servers, across restarts.
pub(crate) trait LastLists: Send + Sync {
    /// Returns the last known list of a server; `None` if there is none.
    fn read(&self, spec: &ServerSpec, kind: ItemKind) -> Option<Catalog>;

    /// Stores a list. If that fails, the next start asks the server again.
    fn write<'a>(
        &'a self,
        spec: &'a ServerSpec,
        kind: ItemKind,
        listed: &'a Catalog,
    ) -> BoxFuture<'a, ()>;
}

type ByKind<T> = [T; ItemKind::ALL.len()];

/// Lists of a server's items, also while it is down.
pub(super) struct ServerLists {
    stored: Option<Arc<dyn LastLists>>,
    /// Last known list of each kind. The outer `None` means that the storage was not read yet.
    last: Mutex<ByKind<Option<Option<Catalog>>>>,
    /// Lists that took longer than callers wait.
    late: watch::Sender<ByKind<bool>>,
    /// Deadline until which lists wait for a server without a known list. Only the first lists wait.
    first_deadline: OnceLock<Instant>,
}

impl ServerLists {
    pub(super) fn new(stored: Option<Arc<dyn LastLists>>) -> ServerLists {
        ServerLists {
            stored,
            last: Mutex::default(),
            late: watch::Sender::default(),
            first_deadline: OnceLock::new(),
        }
    }

    /// Resets the state when a server came up. `look_up` reads the storage again, because another part may have
    /// written to it.
    pub(super) fn reset(&self, look_up: bool) {
        self.late.send_replace(ByKind::default());
        if look_up {
            self.lock_last().fill(None);
        }
    }

    pub(super) fn last_known(&self, spec: &ServerSpec, kind: ItemKind) -> Option<Catalog> {
        let mut last = self.lock_last();
        let read = || self.stored.as_ref()?.read(spec, kind);
        last[kind as usize].get_or_insert_with(read).clone()
    }

    /// Returns the deadline until which lists wait for the server to come up. All of them share it.
    pub(super) fn first_deadline(&self, wait: Duration) -> Instant {
        *self.first_deadline.get_or_init(|| Instant::now() + wait)
    }

    /// Stores a list of the server.
    pub(super) async fn store(&self, spec: &ServerSpec, kind: ItemKind, listed: &Catalog) {
        {
            let mut last = self.lock_last();
            let last = &mut last[kind as usize];
            let same = |last: &Catalog| last.is_same_snapshot(listed);
            if last.as_ref().and_then(Option::as_ref).is_some_and(same) {
                return;
            }
            // Before it is written, so that parallel requests do not write it, too.
            *last = Some(Some(listed.clone()));
        }
        if let Some(stored) = &self.stored {
            stored.write(spec, kind, listed).await;
        }
    }

    /// Waits for a list, unless it took too long before; `None` if it takes too long.
    pub(super) async fn within<T>(
        &self,
        kind: ItemKind,
        wait: Duration,
        list: impl Future<Output = T>,
    ) -> Option<T> {
        if self.is_late(kind) {
            return None;
        }
        let listed = timeout(wait, list).await.ok();
        if listed.is_none() {
            self.late.send_modify(|late| late[kind as usize] = true);
        }
        listed
    }

    pub(super) fn is_late(&self, kind: ItemKind) -> bool {
        self.late.borrow()[kind as usize]
    }

    /// Marks a late list as complete.
    pub(super) fn mark_complete(&self, kind: ItemKind) {
        self.late.send_modify(|late| late[kind as usize] = false);
    }

    /// Waits for a list that took too long, and returns its kind.
    pub(super) async fn next_late(&self) -> ItemKind {
        let mut late = self.late.subscribe();
        loop {
            let is = |kind: &ItemKind| self.is_late(*kind);
            if let Some(kind) = ItemKind::ALL.into_iter().find(is) {
                return kind;
            }
            // The sender lives as long as this value.
            let _ = late.changed().await;
        }
    }

    fn lock_last(&self) -> MutexGuard<'_, ByKind<Option<Option<Catalog>>>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
