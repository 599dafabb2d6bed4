//! Lists that clients received: a client is notified that a list changed only if it differs from the one it has.

use super::ProtocolServer;
use std::{
    hash::{BuildHasher, RandomState},
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::Notify;
use toolgate_core::{Caller, Catalog, Item, ItemKind, ListRequest, StartWait};

/// Time for which a change waits for list responses in flight to the client.
const MAX_LIST_WAIT: Duration = Duration::from_secs(60);

/// Keyed digest of the list that a client sees.
type ListDigest = u64;

/// The lists that one client received last.
#[derive(Debug, Default)]
pub(crate) struct ReceivedLists {
    kinds: Mutex<[ReceivedList; ItemKind::ALL.len()]>,
    /// Notified when a list request ends.
    answered: Notify,
}

#[derive(Debug, Default)]
struct ReceivedList {
    /// Requests for this list that are in flight.
    in_flight: usize,
    /// Number of requests that were answered so far.
    answers: u64,
    /// Digest of the list in the last answer.
    last_digest: Option<ListDigest>,
}

/// A list request in flight.
pub(crate) struct ListRequestGuard<'a> {
    lists: &'a ReceivedLists,
    kind: ItemKind,
}

/// The changes that one notification stream sent, by kind: the number of answers at that time, and the digest of the
/// list.
#[derive(Default)]
pub(crate) struct ReportedLists([Option<(u64, ListDigest)>; ItemKind::ALL.len()]);

impl ReceivedLists {
    /// Registers a list request.
    pub(crate) fn begin_request(&self, kind: ItemKind) -> ListRequestGuard<'_> {
        self.lock()[kind as usize].in_flight += 1;
        ListRequestGuard { lists: self, kind }
    }

    /// Returns the changed lists that differ from what the client received or was notified of. Waits for list responses
    /// in flight to the client, but not for upstream servers.
    pub(crate) async fn outdated(
        &self,
        server: &ProtocolServer,
        caller: &Caller,
        changed: &[ItemKind],
        told: &mut ReportedLists,
    ) -> Vec<ItemKind> {
        let mut outdated = Vec::new();
        for kind in changed {
            let mut differs = false;
            // Templates and skills share the notification of resources.
            for part in kinds_of_notification(*kind)
                .iter()
                .filter(|part| server.lists_kind(**part))
            {
                differs |= self.differs(server, caller, *part, told).await;
            }
            if differs {
                outdated.push(*kind);
            }
        }
        outdated
    }

    async fn differs(
        &self,
        server: &ProtocolServer,
        caller: &Caller,
        kind: ItemKind,
        told: &mut ReportedLists,
    ) -> bool {
        let at = kind as usize;
        let answered = self.wait_until_answered(at);
        // A client with many requests in flight may have one of them pending at any time.
        if tokio::time::timeout(MAX_LIST_WAIT, answered).await.is_err() {
            return true;
        }
        let mut ask = ListRequest::all(caller.clone(), kind);
        ask.start_wait = StartWait::None;
        let Ok(listed) = server.service.list(ask).await else {
            return true;
        };
        let now = list_digest(&listed);
        let kinds = self.lock();
        let list = &kinds[at];
        let since = told.0[at].map_or(0, |(answer, _)| answer);
        let differs = match (list.last_digest, told.0[at]) {
            (Some(given), _) if list.answers > since => given != now,
            (_, Some((_, told))) => told != now,
            // A client that never requested this list has no item of it.
            (_, None) => !listed.items().is_empty(),
        };
        told.0[at] = Some((list.answers, now));
        differs
    }

    /// Waits until no request for this list is in flight.
    async fn wait_until_answered(&self, at: usize) {
        loop {
            // `notify_waiters` wakes this future from here on, even before its first poll.
            let answered = self.answered.notified();
            if self.lock()[at].in_flight == 0 {
                return;
            }
            answered.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, [ReceivedList; ItemKind::ALL.len()]> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ListRequestGuard<'_> {
    /// Records that the client receives this list, from its first page.
    pub(crate) fn record(&self, listed: &Catalog) {
        let digest = list_digest(listed);
        let list = &mut self.lists.lock()[self.kind as usize];
        list.answers += 1;
        list.last_digest = Some(digest);
    }
}

impl Drop for ListRequestGuard<'_> {
    fn drop(&mut self) {
        self.lists.lock()[self.kind as usize].in_flight -= 1;
        self.lists.answered.notify_waiters();
    }
}

/// Adds kinds to the pending list changes, sorted and without duplicates.
pub(crate) fn add_pending(pending: &mut Vec<ItemKind>, lists: Vec<ItemKind>) {
    pending.extend(lists);
    pending.sort_unstable();
    pending.dedup();
}

/// Returns the digest of a list; each item is hashed once and memoized.
fn list_digest(listed: &Catalog) -> ListDigest {
    static DIGEST_KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    struct ItemDigest(u64);
    let of_item = |item: &Arc<Item>| {
        item.cached(|item| ItemDigest(DIGEST_KEY.hash_one(item.def.json().canonical())))
            .0
    };
    let each: Vec<u64> = listed.items().iter().map(of_item).collect();
    DIGEST_KEY.hash_one(each)
}

/// Returns the kinds that share one list-changed notification.
fn kinds_of_notification(kind: ItemKind) -> &'static [ItemKind] {
    match kind {
        ItemKind::Tool => &[ItemKind::Tool],
        ItemKind::Prompt => &[ItemKind::Prompt],
        ItemKind::Resource | ItemKind::Template | ItemKind::Skill => {
            &[ItemKind::Resource, ItemKind::Template, ItemKind::Skill]
        }
    }
}
