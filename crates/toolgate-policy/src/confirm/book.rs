//! In-memory index of approvals and grants, and the lookups a call needs. Does no I/O.

use super::{
    ApprovalBinding, ApprovalLimits, ApprovalStatus, StoredApprovalGrant, kept::StoredApproval,
    over::EndingApproval, slip::PendingApproval,
};
use crate::{StateClock, StateRow, StateStore, words};
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::time::Instant;
use toolgate_core::{Call, Error, ErrorKind, RefusalReason};

/// In-memory index of all approvals and grants.
#[derive(Default)]
pub(super) struct ApprovalIndex {
    pub(super) slips: Vec<PendingApproval>,
    pub(super) grants: Vec<StoredApprovalGrant>,
    /// Change counter of the store at the last synchronization.
    pub(super) seen: Option<u64>,
}

impl ApprovalIndex {
    pub(super) fn slip(&mut self, id: &str) -> Option<&mut PendingApproval> {
        self.slips.iter_mut().find(|slip| &*slip.id == id)
    }

    pub(super) fn bound(
        &mut self,
        binding: &ApprovalBinding,
        fits: impl Fn(&PendingApproval) -> bool,
    ) -> Option<&mut PendingApproval> {
        let bound = |slip: &&mut PendingApproval| slip.kept.binding == *binding && fits(slip);
        self.slips.iter_mut().find(bound)
    }

    /// Merges the rows of the store into the index, including those of other processes, and drops approvals that the
    /// store no longer has.
    pub(super) fn take(
        &mut self,
        approvals: Vec<StateRow>,
        grants: Vec<StateRow>,
        times: (SystemTime, Duration),
    ) {
        let there = |slip: &PendingApproval| approvals.iter().any(|row| *row.key == *slip.id);
        // Version 0 means that the first write is still in flight, so the store does not list the approval yet.
        self.slips.retain(|slip| slip.version == 0 || there(slip));
        for row in &approvals {
            let known = self.slip(&row.key);
            if known
                .as_ref()
                .is_some_and(|slip| slip.version >= row.version)
            {
                continue;
            }
            let Some(kept) = StoredApproval::read(&row.value) else {
                self.slips.retain(|slip| *slip.id != *row.key);
                continue;
            };
            match known {
                Some(slip) => slip.take(kept, row.version),
                None => {
                    let id: Arc<str> = row.key.as_str().into();
                    self.slips
                        .push(PendingApproval::new(id, row.version, kept, times));
                }
            }
        }
        self.grants = grants
            .iter()
            .filter_map(StoredApprovalGrant::read)
            .collect();
    }

    /// Returns the denial of this call, if an approver denied it. An identical call with another id consumes the denial
    /// if no other call has received it.
    pub(super) fn denied(&mut self, call: &Call, binding: &ApprovalBinding) -> Option<Error> {
        let hears = |slip: &PendingApproval| {
            matches!(slip.standing(), ApprovalStatus::Denied(..))
                && (slip.told.is_empty() || slip.calls.contains(&call.id))
        };
        let slip = self.bound(binding, hears)?;
        slip.told.insert(call.id.clone());
        slip.calls.insert(call.id.clone());
        let ApprovalStatus::Denied(_, reason) = slip.standing() else {
            return None;
        };
        let text = match reason {
            Some(reason) => format!("denied by a person: {reason}"),
            None => "denied by a person".to_owned(),
        };
        Some(Error::new(ErrorKind::Refused(RefusalReason::Person), text))
    }

    /// Finds the approval that a call can spend, or that it spent in an earlier round, and the status after spending.
    pub(super) fn usable(
        &mut self,
        call: &Call,
        binding: &ApprovalBinding,
        slot: Option<&str>,
    ) -> Option<(&mut PendingApproval, ApprovalStatus)> {
        let after = |slip: &PendingApproval| {
            let named = Some(&*slip.id) == slot;
            slip.standing().spent(&call.id, call.round.number, named)
        };
        let mine = |slip: &PendingApproval| matches!(slip.standing(), ApprovalStatus::Spent { .. });
        let fits = |slip: &PendingApproval, own: bool| {
            slip.kept.binding == *binding && after(slip).is_some() && mine(slip) == own
        };
        let at = |own| self.slips.iter().position(|slip| fits(slip, own));
        let at = at(true).or_else(|| at(false))?;
        let after = after(&self.slips[at])?;
        Some((&mut self.slips[at], after))
    }

    /// Returns an error if the approval that a retried call refers to has expired.
    pub(super) fn expired(
        &self,
        binding: &ApprovalBinding,
        slot: Option<&str>,
        limits: &ApprovalLimits,
    ) -> Option<Error> {
        let over = |slip: &&PendingApproval| {
            Some(&*slip.id) == slot
                && slip.kept.binding == *binding
                && slip.standing() == ApprovalStatus::Expired
        };
        self.slips.iter().find(over)?;
        let text = format!(
            "denied: the call was not approved within {}",
            words::span(limits.life)
        );
        Some(Error::new(ErrorKind::Refused(RefusalReason::Expired), text))
    }

    /// Checks the limits on pending approvals, per caller and in total.
    pub(super) fn room(
        &self,
        binding: &ApprovalBinding,
        limits: &ApprovalLimits,
    ) -> Result<(), Error> {
        let open = || {
            let slips = self.slips.iter();
            slips.filter(|slip| slip.standing() == ApprovalStatus::Open)
        };
        let own = open()
            .filter(|slip| slip.kept.binding.caller == binding.caller)
            .count();
        let text = if own >= limits.per_caller {
            format!("this caller already has {own} pending approvals; wait until some are decided")
        } else if open().count() >= limits.open {
            "too many approvals are pending; try again later".to_owned()
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::Busy(None), text))
    }

    /// Ends the live approvals that match the predicate.
    pub(super) fn expire(
        &mut self,
        store: &dyn StateStore,
        end: &ApprovalStatus,
        over: impl Fn(&PendingApproval) -> bool,
    ) -> Vec<EndingApproval> {
        let slips = self.slips.iter_mut();
        let ended = slips.filter(|slip| slip.alive() && over(slip)).map(|slip| {
            slip.over = Some(end.clone());
            slip.wake();
            EndingApproval::of(slip, end, store)
        });
        ended.collect()
    }

    /// Returns the earliest expiry of a live approval.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        let alive = self.slips.iter().filter(|slip| slip.alive());
        alive.map(|slip| slip.expiry.steady).min()
    }

    /// Evicts approvals that ended longer than `life` ago. While more than `most` remain, evicts the oldest ended ones.
    pub(super) fn forget(
        &mut self,
        life: Duration,
        most: usize,
        clock: &StateClock,
    ) -> Vec<PendingApproval> {
        let mut gone = Vec::new();
        let long = |slip: &mut PendingApproval| !slip.alive() && slip.expiry.past_by(life, clock);
        gone.extend(self.slips.extract_if(.., long));
        while self.slips.len() > most {
            let Some(at) = self.slips.iter().position(|slip| !slip.alive()) else {
                break;
            };
            gone.push(self.slips.remove(at));
        }
        gone
    }
}
