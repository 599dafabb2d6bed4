//! Redeeming approvals and grants for a call, and opening new approvals.

use super::{
    ApprovalBinding, ApprovalRequirement, ApprovalService, ApprovalSlot, ApprovalStatus,
    codec::StoredApproval, grants, id, pending::PendingApproval, wait::DecisionWait,
};
use crate::WriteOutcome;
use std::{sync::Arc, time::SystemTime};
use toolgate_core::{BoxFuture, Call, DecisionWaiter, Error, ErrorKind, Item, Json};
use toolgate_journal::AuditEntry;

/// Result of looking up an approval or a grant for a call.
#[derive(Debug)]
pub(super) enum RedeemOutcome {
    /// An approval, spent by this lookup.
    Spent {
        id: Arc<str>,
        why: String,
        /// Arguments as edited by the approver.
        edit: Option<Json>,
    },
    /// A grant (remembered approval).
    Granted { why: String },
    /// No approval yet.
    NotApproved,
}

/// A pending approval.
pub(super) struct OpenedApproval {
    pub(super) id: Arc<str>,
    pub(super) expires: SystemTime,
    pub(super) waiting: Arc<dyn DecisionWaiter>,
}

/// An approval whose redemption is being written to the store.
struct PendingRedemption {
    claim: RedeemOutcome,
    record: AuditEntry,
    writing: BoxFuture<'static, Result<WriteOutcome, Error>>,
}

impl ApprovalService {
    /// Redeems an approval for a call, or a grant if the call needs one approver only.
    ///
    /// A denial is an error. An approval is spent, and a use of a grant is counted.
    pub(super) async fn redeem(
        &self,
        call: &Call,
        item: &Item,
        binding: &ApprovalBinding,
        slot: Option<ApprovalSlot<'_>>,
        needs: &ApprovalRequirement,
    ) -> Result<RedeemOutcome, Error> {
        for _ in 0..ApprovalService::MAX_WRITE_ATTEMPTS {
            self.sweep();
            let Some(redemption) = self.begin_redemption(call, binding, slot, needs)? else {
                // One person gives a grant, perhaps before the rule required more.
                if needs.is_single()
                    && let Some(why) = self.redeem_grant(call, item, binding).await?
                {
                    return Ok(RedeemOutcome::Granted { why });
                }
                let expired = self.lock_index().expiry_error(binding, slot);
                return expired.map_or(Ok(RedeemOutcome::NotApproved), Err);
            };
            // The approval is spent in the store first, so that two concurrent calls cannot both use it, in any
            // process. If the audit record then fails or the caller disconnects, the approval is lost and nothing runs.
            let written = redemption.writing.await?;
            self.sync();
            if let WriteOutcome::Done(_) = written {
                self.notify_change();
                self.recorder.append(redemption.record)?.await?;
                return Ok(redemption.claim);
            }
        }
        Err(conflict_error())
    }

    fn begin_redemption(
        &self,
        call: &Call,
        binding: &ApprovalBinding,
        slot: Option<ApprovalSlot<'_>>,
        needs: &ApprovalRequirement,
    ) -> Result<Option<PendingRedemption>, Error> {
        let mut index = self.lock_index();
        if let Some(error) = index.take_denial(call, binding) {
            return Err(error);
        }
        let Some((approval, after)) = index.find_redeemable(call, binding, slot, needs) else {
            return Ok(None);
        };
        // The row is verified again: whoever can write to the store must not be able to approve a call.
        let signed = self.check_signatures(approval, &call.id);
        if let Err(why) = signed {
            let id = approval.id.clone();
            drop(index);
            return Err(self.end_unsigned(&id, &why));
        }
        let (id, edit) = (
            approval.id.clone(),
            approval.stored.edited_arguments.clone(),
        );
        let verb = if edit.is_some() { "edited " } else { "" };
        let yeses = approval.stored.approvers.iter().map(ToString::to_string);
        let why = format!("{id} {verb}by {}", yeses.collect::<Vec<_>>().join(" and "));
        let record = approval
            .record(after.as_str())
            .with("call", &*call.id)
            .with("round", call.round.number);
        let writing = approval.write(self.store.as_ref(), |kept| kept.status = after);
        Ok(Some(PendingRedemption {
            claim: RedeemOutcome::Spent { id, why, edit },
            record,
            writing,
        }))
    }

    /// Counts one use of a matching grant. A condition that fails to evaluate does not hold.
    async fn redeem_grant(
        &self,
        call: &Call,
        item: &Item,
        binding: &ApprovalBinding,
    ) -> Result<Option<String>, Error> {
        let speaks = |grant: &&grants::StoredApprovalGrant| grant.view.matches(binding);
        let (server, tool) = (&*binding.server, binding.tool.as_str());
        for _ in 0..ApprovalService::MAX_WRITE_ATTEMPTS {
            let now = self.now();
            let found = {
                let index = self.lock_index();
                let mut grants = index.grants.of_tool(server, tool).filter(speaks);
                grants
                    .find(|grant| grant_holds(grant, call, item, now))
                    .cloned()
            };
            let Some(grant) = found else {
                return Ok(None);
            };
            if self.count_grant_use(&grant).await? {
                let (id, approver) = (&grant.view.id, &grant.view.approver);
                return Ok(Some(format!("{id} remembered by {approver}")));
            }
        }
        Err(conflict_error())
    }

    /// Creates an approval, or returns the pending one with the same binding.
    pub(super) async fn open_approval(
        self: &Arc<ApprovalService>,
        call: &Call,
        item: &Arc<Item>,
        binding: ApprovalBinding,
        reasons: &[String],
        needs: &ApprovalRequirement,
    ) -> Result<OpenedApproval, Error> {
        let (opened, record) = self.insert_approval(call, item, binding, reasons, needs)?;
        let Some(record) = record else {
            return Ok(opened);
        };
        let placed = UnstoredApproval(self, &opened.id);
        self.recorder.append(record)?.await?;
        let writing = {
            let mut index = self.lock_index();
            let approval = index.find_by_id(&opened.id).ok_or_else(conflict_error)?;
            approval.write(self.store.as_ref(), |_| {})
        };
        let written = writing.await?;
        self.sync();
        drop(placed);
        self.notify_change();
        match written {
            WriteOutcome::Done(_) => Ok(opened),
            WriteOutcome::Conflict => Err(conflict_error()),
        }
    }

    fn insert_approval(
        self: &Arc<ApprovalService>,
        call: &Call,
        item: &Arc<Item>,
        binding: ApprovalBinding,
        reasons: &[String],
        needs: &ApprovalRequirement,
    ) -> Result<(OpenedApproval, Option<AuditEntry>), Error> {
        let mut index = self.lock_index();
        let waits = |approval: &PendingApproval| {
            approval.is_live()
                && approval.stored.requirement.covers(needs)
                && approval.covers_text_of(call)
        };
        if let Some(approval) = index.find_by_binding(&binding, waits) {
            approval.calls.insert(call.id.clone());
            return Ok((self.opened_approval(approval), None));
        }
        index.check_limits(&binding, &self.limits)?;
        let id = loop {
            let id = id::random_id('a')?;
            if index.find_by_id(&id).is_none() {
                break id;
            }
        };
        let (now, life) = (self.now(), self.limits.lifetime_of(call));
        let kept = StoredApproval {
            binding,
            item: item.clone(),
            arguments: call.arguments().raw().clone(),
            reasons: reasons.to_vec(),
            request_info: call.request_info.without_transport_parts(),
            call: call.id.clone(),
            requested_at: now,
            expires_at: now + life,
            requirement: needs.clone(),
            approvers: Vec::new(),
            assertions: Vec::new(),
            edited_arguments: None,
            status: ApprovalStatus::Pending,
        };
        let approval = PendingApproval::new(id, 0, kept, (now, life));
        let arguments = approval.stored.arguments.as_str();
        let mut record = approval
            .record(ApprovalStatus::Pending.as_str())
            .with("call", &*call.id)
            .with("reasons", reasons)
            .with("needs", needs.approvers())
            .with("args_len", arguments.len())
            .with(
                "args_mac",
                self.recorder.mac(arguments.as_bytes()).unwrap_or_default(),
            );
        if !needs.groups.is_empty() {
            record = record.with("needs_groups", serde_json::json!(needs.groups));
        }
        let opened = self.opened_approval(&approval);
        index.approvals.push(approval);
        Ok((opened, Some(record)))
    }

    fn opened_approval(self: &Arc<ApprovalService>, approval: &PendingApproval) -> OpenedApproval {
        let wait = DecisionWait {
            service: self.clone(),
            id: approval.id.clone(),
            decided: approval.decided.subscribe(),
            expiry: approval.expiry,
            caller: approval.stored.binding.caller.clone(),
            server: approval.stored.binding.server.clone(),
        };
        OpenedApproval {
            id: approval.id.clone(),
            expires: approval.expiry.wall,
            waiting: Arc::new(wait),
        }
    }

    /// Counts the callers that wait for an approval.
    pub(super) fn count_waiters(&self, id: &str, more: bool) {
        if let Some(approval) = self.lock_index().find_by_id(id) {
            approval.waiters = if more {
                approval.waiters + 1
            } else {
                approval.waiters.saturating_sub(1)
            };
        }
        self.notify_change();
    }
}

fn grant_holds(
    grant: &grants::StoredApprovalGrant,
    call: &Call,
    item: &Item,
    now: SystemTime,
) -> bool {
    if grant.view.end_reason(now).is_some() {
        return false;
    }
    let Some(when) = &grant.when else {
        return true;
    };
    when.evaluate(call, item).unwrap_or_else(|why| {
        let text = format!(
            "the condition of the grant {} cannot be evaluated: {why}",
            grant.view.id
        );
        call.decision_log.add("confirm", "stricter", text);
        false
    })
}

/// The error of a change that other processes keep overtaking.
pub(super) fn conflict_error() -> Error {
    Error::new(
        ErrorKind::Busy(None),
        "other processes keep changing the approval; try again",
    )
}

/// Guard of an approval that is not in the store yet: removes it from the index if the write never succeeds.
struct UnstoredApproval<'a>(&'a ApprovalService, &'a Arc<str>);

impl Drop for UnstoredApproval<'_> {
    fn drop(&mut self) {
        let unkept = |approval: &PendingApproval| approval.id == *self.1 && approval.version == 0;
        self.0
            .lock_index()
            .approvals
            .retain(|approval| !unkept(approval));
    }
}
