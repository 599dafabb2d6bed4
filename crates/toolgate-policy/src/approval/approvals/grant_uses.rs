//! Uses of grants: parallel calls that use one grant share a write to the store.

use super::{ApprovalService, grants::GRANTS_TABLE, grants::StoredApprovalGrant};
use crate::{WriteOutcome, WritePrecondition};
use futures_util::future::OptionFuture;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Mutex as AsyncMutex, oneshot};
use toolgate_core::Error;

/// Uses of grants that wait to be counted.
#[derive(Default)]
pub(super) struct GrantUseQueue {
    /// Serializes the writes, so that they do not conflict at the store.
    turn: AsyncMutex<()>,
    waiting: Mutex<Vec<WaitingUse>>,
}

/// Use of a grant by a call that waits for its turn.
struct WaitingUse {
    grant: Arc<str>,
    counted: oneshot::Sender<()>,
}

impl GrantUseQueue {
    fn add(&self, grant: &Arc<str>) -> oneshot::Receiver<()> {
        let (counted, told) = oneshot::channel();
        let grant = grant.clone();
        self.lock().push(WaitingUse { grant, counted });
        told
    }

    /// Removes the waiting uses of a grant. Uses by calls that ended meanwhile do not count.
    fn take(&self, grant: &Arc<str>) -> Vec<WaitingUse> {
        let mut waiting = self.lock();
        waiting.retain(|one| !one.counted.is_closed());
        waiting.extract_if(.., |one| one.grant == *grant).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<WaitingUse>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ApprovalService {
    /// Counts a use of a grant in the store. The uses by parallel calls are counted in one write, unless the grant
    /// limits them: a call that ends during the write must not lose uses of others. Returns `false` if the grant has
    /// ended or changed meanwhile.
    ///
    /// A grant never changes but for its uses, so a condition that held before the wait holds after it.
    pub(super) async fn count_grant_use(&self, grant: &StoredApprovalGrant) -> Result<bool, Error> {
        let id = &grant.view.id;
        let shares = grant.view.max_uses.is_none();
        let counted = shares.then(|| self.grant_uses.add(id));
        let _turn = tokio::select! {
            biased;
            // An error means that the write of another call failed, which would have counted this use.
            Some(counted) = OptionFuture::from(counted) => return Ok(counted.is_ok()),
            turn = self.grant_uses.turn.lock() => turn,
        };
        let now = self.now();
        let (others, row, version) = {
            let index = self.lock_index();
            let current = index.grants.get(id);
            let Some(current) = current.filter(|grant| grant.view.end_reason(now).is_none()) else {
                return Ok(false);
            };
            // Without the use of this call, which no longer waits.
            let others = self.grant_uses.take(id);
            let uses = 1 + others.len() as u64;
            let row = current.view.with_more_uses(uses, now).json();
            (others, row, current.version)
        };
        let expect = WritePrecondition::Version(version);
        let written = self.store.write(GRANTS_TABLE, id, Some(row), expect);
        let written = written.await?;
        self.sync();
        let is_done = matches!(written, WriteOutcome::Done(_));
        if is_done {
            for other in others {
                // The call may have ended.
                let _ = other.counted.send(());
            }
        }
        Ok(is_done)
    }
}
