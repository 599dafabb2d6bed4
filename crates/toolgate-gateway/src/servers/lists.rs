//! What a server lists, also while it cannot be asked: as it was last listed, in this run or in an earlier one.

use super::ServerSpec;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::{
    sync::watch,
    time::{Duration, Instant, timeout},
};
use toolgate::{BoxFuture, Catalog, ItemKind};

/// The last lists of servers, across restarts.
pub(crate) trait LastLists: Send + Sync {
    /// What a server listed when it was last asked; `None` where that is not known.
    fn read(&self, spec: &ServerSpec, kind: ItemKind) -> Option<Catalog>;

    /// Notes what a server listed. A list that cannot be noted is asked for again at the next start.
    fn write<'a>(
        &'a self,
        spec: &'a ServerSpec,
        kind: ItemKind,
        listed: &'a Catalog,
    ) -> BoxFuture<'a, ()>;
}

type ByKind<T> = [T; ItemKind::ALL.len()];

/// What a server lists, also while it cannot be asked.
pub(super) struct Lists {
    stored: Option<Arc<dyn LastLists>>,
    /// The last list of each kind; the outer `None` where the store was not asked yet.
    last: Mutex<ByKind<Option<Option<Catalog>>>>,
    /// Lists that took longer than callers wait.
    late: watch::Sender<ByKind<bool>>,
    /// Until when lists wait for a server of which nothing is known: only the first ones do.
    first_deadline: OnceLock<Instant>,
}

impl Lists {
    pub(super) fn new(stored: Option<Arc<dyn LastLists>>) -> Lists {
        Lists {
            stored,
            last: Mutex::default(),
            late: watch::Sender::default(),
            first_deadline: OnceLock::new(),
        }
    }

    /// A server came up. What is known is looked up again if it may have been noted elsewhere.
    pub(super) fn begin(&self, look_up: bool) {
        self.late.send_replace(ByKind::default());
        if look_up {
            self.last().fill(None);
        }
    }

    pub(super) fn last_known(&self, spec: &ServerSpec, kind: ItemKind) -> Option<Catalog> {
        let mut last = self.last();
        let read = || self.stored.as_ref()?.read(spec, kind);
        last[kind as usize].get_or_insert_with(read).clone()
    }

    /// Until when lists wait for the server to come up: all of them together no longer than that.
    pub(super) fn first_deadline(&self, wait: Duration) -> Instant {
        *self.first_deadline.get_or_init(|| Instant::now() + wait)
    }

    /// Notes what the server listed.
    pub(super) async fn remember(&self, spec: &ServerSpec, kind: ItemKind, listed: &Catalog) {
        let same = |last: &Catalog| last.same(listed);
        if self.last()[kind as usize]
            .as_ref()
            .is_some_and(|last| last.as_ref().is_some_and(same))
        {
            return;
        }
        if let Some(stored) = &self.stored {
            stored.write(spec, kind, listed).await;
        }
        self.last()[kind as usize] = Some(Some(listed.clone()));
    }

    /// Waits for a list unless it took too long before; `None` where it takes too long.
    pub(super) async fn in_time<T>(
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

    /// A list that took too long has been read.
    pub(super) fn came(&self, kind: ItemKind) {
        self.late.send_modify(|late| late[kind as usize] = false);
    }

    /// The next kind of which a list took too long.
    pub(super) async fn late(&self) -> ItemKind {
        let mut late = self.late.subscribe();
        loop {
            let is = |kind: &ItemKind| self.is_late(*kind);
            if let Some(kind) = ItemKind::ALL.into_iter().find(is) {
                return kind;
            }
            // The sender lives as long as this.
            let _ = late.changed().await;
        }
    }

    fn last(&self) -> MutexGuard<'_, ByKind<Option<Option<Catalog>>>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
