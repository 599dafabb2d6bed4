//! In-memory index of approvals and grants, and the lookups a call needs. Does no I/O.

use super::{
    ApprovalBinding, ApprovalLimits, ApprovalRequirement, ApprovalSlot, ApprovalStatus,
    codec::StoredApproval, expiry::EndingApproval, grant_index::GrantIndex,
    pending::PendingApproval,
};
use crate::{StateClock, StateRow, StateStore, humanize};
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::time::Instant;
use toolgate_core::{Call, Error, ErrorKind, RefusalReason};

/// In-memory index of all approvals and grants.
#[derive(Default)]
pub(super) struct ApprovalIndex {
    pub(super) approvals: Vec<PendingApproval>,
    pub(super) grants: GrantIndex,
    /// Change counter of the store at the last synchronization.
    pub(super) store_changes: Option<u64>,
}

impl ApprovalIndex {
    pub(super) fn find_by_id(&mut self, id: &str) -> Option<&mut PendingApproval> {
        self.approvals.iter_mut().find(|slip| &*slip.id == id)
    }

    pub(super) fn find_by_binding(
        &mut self,
        binding: &ApprovalBinding,
        fits: impl Fn(&PendingApproval) -> bool,
    ) -> Option<&mut PendingApproval> {
        let bound = |slip: &&mut PendingApproval| slip.stored.binding == *binding && fits(slip);
        self.approvals.iter_mut().find(bound)
    }

    /// Merges the approvals of the store into the index, including those of other processes, and drops those that the
    /// store no longer has.
    pub(super) fn merge_approvals(
        &mut self,
        approvals: Vec<StateRow>,
        times: (SystemTime, Duration),
    ) {
        let there = |slip: &PendingApproval| approvals.iter().any(|row| *row.key == *slip.id);
        // Version 0 means that the first write is still in flight, so the store does not list the approval yet.
        self.approvals
            .retain(|slip| slip.version == 0 || there(slip));
        for row in &approvals {
            let known = self.find_by_id(&row.key);
            if known
                .as_ref()
                .is_some_and(|slip| slip.version >= row.version)
            {
                continue;
            }
            let Some(kept) = StoredApproval::read(&row.value) else {
                self.approvals.retain(|slip| *slip.id != *row.key);
                continue;
            };
            match known {
                Some(slip) => slip.replace_stored(kept, row.version),
                None => {
                    let id: Arc<str> = row.key.as_str().into();
                    self.approvals
                        .push(PendingApproval::new(id, row.version, kept, times));
                }
            }
        }
    }

    /// Returns the denial of this call, if an approver denied it. An identical call with another id consumes the denial
    /// if no other call has received it.
    pub(super) fn take_denial(&mut self, call: &Call, binding: &ApprovalBinding) -> Option<Error> {
        let hears = |slip: &PendingApproval| {
            matches!(slip.status(), ApprovalStatus::Denied(..))
                && (slip.denied_calls.is_empty() || slip.calls.contains(&call.id))
        };
        let slip = self.find_by_binding(binding, hears)?;
        slip.denied_calls.insert(call.id.clone());
        slip.calls.insert(call.id.clone());
        let ApprovalStatus::Denied(_, reason) = slip.status() else {
            return None;
        };
        let text = match reason {
            Some(reason) => format!("refused: a person denied this call: {reason}"),
            None => "refused: a person denied this call".to_owned(),
        };
        Some(Error::new(
            ErrorKind::Refused(RefusalReason::Approver),
            text,
        ))
    }

    /// Finds the approval that a call can spend, or that it spent in an earlier round, and the status after spending.
    /// An approval for which less was required than `needs` does not count.
    pub(super) fn find_redeemable(
        &mut self,
        call: &Call,
        binding: &ApprovalBinding,
        slot: Option<ApprovalSlot<'_>>,
        needs: &ApprovalRequirement,
    ) -> Option<(&mut PendingApproval, ApprovalStatus)> {
        let after = |slip: &PendingApproval| {
            let used = slot.is_some_and(|slot| slot.is_used && slot.id == &*slip.id);
            slip.status().after_use(&call.id, call.round.number, used)
        };
        let mine = |slip: &PendingApproval| matches!(slip.status(), ApprovalStatus::Spent { .. });
        let fits = |slip: &PendingApproval, own: bool| {
            slip.stored.binding == *binding
                && slip.stored.requirement.covers(needs)
                && slip.covers_text_of(call)
                && after(slip).is_some()
                && mine(slip) == own
        };
        let at = |own| self.approvals.iter().position(|slip| fits(slip, own));
        let at = at(true).or_else(|| at(false))?;
        let after = after(&self.approvals[at])?;
        Some((&mut self.approvals[at], after))
    }

    /// Returns an error if the approval that a retried call refers to has expired.
    pub(super) fn expiry_error(
        &self,
        binding: &ApprovalBinding,
        slot: Option<ApprovalSlot<'_>>,
    ) -> Option<Error> {
        let over = |slip: &&PendingApproval| {
            slot.is_some_and(|slot| slot.id == &*slip.id)
                && slip.stored.binding == *binding
                && slip.status() == ApprovalStatus::Expired
        };
        let stored = &self.approvals.iter().find(over)?.stored;
        let life = stored.expires_at.duration_since(stored.requested_at);
        let text = format!(
            "refused: nobody approved this call within {}; call again to request a new approval",
            humanize::duration(life.unwrap_or_default())
        );
        Some(Error::new(ErrorKind::Refused(RefusalReason::Expired), text))
    }

    /// Checks the limits on pending approvals, per caller and in total.
    pub(super) fn check_limits(
        &self,
        binding: &ApprovalBinding,
        limits: &ApprovalLimits,
    ) -> Result<(), Error> {
        let open = || {
            let slips = self.approvals.iter();
            slips.filter(|slip| slip.status() == ApprovalStatus::Pending)
        };
        let own = open()
            .filter(|slip| slip.stored.binding.caller == binding.caller)
            .count();
        let text = if own >= limits.max_pending_per_caller {
            format!("this caller already has {own} pending approvals; wait until some are decided")
        } else if open().count() >= limits.max_pending {
            "too many approvals are pending; try again later".to_owned()
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::Busy(None), text))
    }

    /// Ends the live approvals that match the predicate.
    pub(super) fn end_matching(
        &mut self,
        store: &dyn StateStore,
        end: &ApprovalStatus,
        over: impl Fn(&PendingApproval) -> bool,
    ) -> Vec<EndingApproval> {
        let slips = self.approvals.iter_mut();
        let ended = slips
            .filter(|slip| slip.is_live() && over(slip))
            .map(|slip| {
                slip.ended = Some(end.clone());
                slip.wake();
                EndingApproval::of(slip, end, store)
            });
        ended.collect()
    }

    /// Returns the earliest expiry of a live approval.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        let alive = self.approvals.iter().filter(|slip| slip.is_live());
        alive.map(|slip| slip.expiry.monotonic).min()
    }

    /// Performs the eviction of ended approvals: those that ended longer than `life` ago, and the oldest ones while more
    /// than `most` remain.
    pub(super) fn evict_ended(
        &mut self,
        life: Duration,
        most: usize,
        clock: &StateClock,
    ) -> Vec<PendingApproval> {
        let mut gone = Vec::new();
        let long = |slip: &mut PendingApproval| !slip.is_live() && slip.expiry.past_by(life, clock);
        gone.extend(self.approvals.extract_if(.., long));
        while self.approvals.len() > most {
            let Some(at) = self.approvals.iter().position(|slip| !slip.is_live()) else {
                break;
            };
            gone.push(self.approvals.remove(at));
        }
        gone
    }
}
