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
        self.approvals
            .iter_mut()
            .find(|approval| &*approval.id == id)
    }

    pub(super) fn find_by_binding(
        &mut self,
        binding: &ApprovalBinding,
        fits: impl Fn(&PendingApproval) -> bool,
    ) -> Option<&mut PendingApproval> {
        let bound =
            |approval: &&mut PendingApproval| approval.stored.binding == *binding && fits(approval);
        self.approvals.iter_mut().find(bound)
    }

    /// Merges the approvals of the store into the index, including those of other processes, and drops those that the
    /// store no longer has.
    pub(super) fn merge_approvals(
        &mut self,
        approvals: Vec<StateRow>,
        times: (SystemTime, Duration),
    ) {
        let there =
            |approval: &PendingApproval| approvals.iter().any(|row| *row.key == *approval.id);
        // Version 0 means that the first write is still in flight, so the store does not list the approval yet.
        self.approvals
            .retain(|approval| approval.version == 0 || there(approval));
        for row in &approvals {
            let known = self.find_by_id(&row.key);
            if known
                .as_ref()
                .is_some_and(|approval| approval.version >= row.version)
            {
                continue;
            }
            let Some(kept) = StoredApproval::read(&row.value) else {
                self.approvals.retain(|approval| *approval.id != *row.key);
                continue;
            };
            match known {
                Some(approval) => approval.replace_stored(kept, row.version),
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
        let hears = |approval: &PendingApproval| {
            matches!(approval.status(), ApprovalStatus::Denied(..))
                && (approval.denied_calls.is_empty() || approval.calls.contains(&call.id))
        };
        let approval = self.find_by_binding(binding, hears)?;
        approval.denied_calls.insert(call.id.clone());
        approval.calls.insert(call.id.clone());
        let ApprovalStatus::Denied(_, reason) = approval.status() else {
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

    /// Finds the approval that a call can spend, or that it spent in an earlier round, and the status after redemption.
    /// An approval for which less was required than `needs` does not count.
    pub(super) fn find_redeemable(
        &mut self,
        call: &Call,
        binding: &ApprovalBinding,
        slot: Option<ApprovalSlot<'_>>,
        needs: &ApprovalRequirement,
    ) -> Option<(&mut PendingApproval, ApprovalStatus)> {
        let after = |approval: &PendingApproval| {
            let used = slot.is_some_and(|slot| slot.is_used && slot.id == &*approval.id);
            approval
                .status()
                .after_use(&call.id, call.round.number, used)
        };
        let mine =
            |approval: &PendingApproval| matches!(approval.status(), ApprovalStatus::Spent { .. });
        let fits = |approval: &PendingApproval, own: bool| {
            approval.stored.binding == *binding
                && approval.stored.requirement.covers(needs)
                && approval.covers_text_of(call)
                && after(approval).is_some()
                && mine(approval) == own
        };
        let at = |own| {
            self.approvals
                .iter()
                .position(|approval| fits(approval, own))
        };
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
        let over = |approval: &&PendingApproval| {
            slot.is_some_and(|slot| slot.id == &*approval.id)
                && approval.stored.binding == *binding
                && approval.status() == ApprovalStatus::Expired
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
            let approvals = self.approvals.iter();
            approvals.filter(|approval| approval.status() == ApprovalStatus::Pending)
        };
        let own = open()
            .filter(|approval| approval.stored.binding.caller == binding.caller)
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
        let approvals = self.approvals.iter_mut();
        let ended = approvals
            .filter(|approval| approval.is_live() && over(approval))
            .map(|approval| {
                approval.ended = Some(end.clone());
                approval.wake();
                EndingApproval::of(approval, end, store)
            });
        ended.collect()
    }

    /// Returns the earliest expiry of a live approval.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        let alive = self.approvals.iter().filter(|approval| approval.is_live());
        alive.map(|approval| approval.expiry.monotonic).min()
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
        let long = |approval: &mut PendingApproval| {
            !approval.is_live() && approval.expiry.past_by(life, clock)
        };
        gone.extend(self.approvals.extract_if(.., long));
        while self.approvals.len() > most {
            let Some(at) = self
                .approvals
                .iter()
                .position(|approval| !approval.is_live())
            else {
                break;
            };
            gone.push(self.approvals.remove(at));
        }
        gone
    }
}
