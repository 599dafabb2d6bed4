//! Decisions of approvers: approve, edit, remember, deny.

use super::{
    ApprovalChannel, ApprovalError, ApprovalService, ApprovalStatus, Approver, GrantTerms,
    GrantView, condition::GrantCondition, grant_index::GrantIndex, grants, id, is_harmless,
    pending::PendingApproval, redeem::conflict_error,
};
use crate::{WriteOutcome, WritePrecondition, passkeys::PasskeyAssertion, sanitize::text};
use toolgate_core::{ItemKind, Json};
use toolgate_journal::AuditEntry;
use toolgate_protocol::json::JsonKind;

// Reasons why an approval cannot be remembered, each with what to do.
const NO_USES_REASON: &str =
    "a grant with 0 uses would allow no later call; raise the number of uses";
const SEVERAL_APPROVERS_REASON: &str = "the call needs several approvers, an approver of some group or a passkey, and needs that each time; approve this call only";
const NEEDS_CONDITION_REASON: &str = "no trusted server marks the item as read-only or not destructive; add a condition, or approve this call only";
const EDITED_GRANT_REASON: &str = "the arguments of the call were edited; approve this call only";
const TOO_MANY_GRANTS_REASON: &str =
    "there are too many grants already; revoke some of them, or approve this call only";

/// Terms of an approver's decision to approve a call: edited arguments, or a grant for later calls.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ApprovalTerms {
    /// Arguments with which the approver replaces those of the call. Every rule judges it like the original arguments
    /// before anything is sent.
    pub edited_arguments: Option<Json>,
    /// Grant (remembered approval) to create for later calls.
    pub grant: Option<GrantTerms>,
    /// Signature of the approver's passkey over the text of [`ApprovalService::text_to_sign`].
    pub passkey: Option<PasskeyAssertion>,
}

impl ApprovalTerms {
    /// Returns approval terms that also create a grant (remembered approval) for later calls.
    pub fn with_grant(remember: GrantTerms) -> ApprovalTerms {
        ApprovalTerms {
            grant: Some(remember),
            ..ApprovalTerms::default()
        }
    }

    /// Returns approval terms that replace the arguments of the call.
    pub fn with_arguments(arguments: Json) -> ApprovalTerms {
        ApprovalTerms {
            edited_arguments: Some(arguments),
            ..ApprovalTerms::default()
        }
    }
}

impl ApprovalService {
    /// Approves one use of exactly the call that the pending approval with this id describes.
    ///
    /// The approval stays [`ApprovalStatus::Pending`] until the required number of approvers approved it.
    ///
    /// # Errors
    /// It is decided already, unknown, not this person's to decide, or the yes could not be kept or recorded; then
    /// nothing changed. With [`ApprovalError::GrantUnkept`] the yes counts for this call and only its grant is missing.
    pub async fn approve(
        &self,
        id: &str,
        approver: impl Into<Approver>,
        terms: ApprovalTerms,
    ) -> Result<ApprovalStatus, ApprovalError> {
        let approver = approver.into();
        self.sweep();
        let (approver, signed) = self.check_passkey(id, approver, &terms)?;
        let (record, grant) = self.check_approval(id, &approver, &terms)?;
        let record = match signed {
            Some(signed) => record.with("passkey", signed),
            None => record,
        };
        self.append_record(record).await?;
        // Recorded before it counts: a yes without a record must not let a call through.
        let put = self.store_approval(id, &approver, &terms).await;
        let standing = put.inspect_err(|why| self.undone("failed", id, &approver, &grant, why))?;
        let granted = match &grant {
            Some(grant) => self.grant(grant).await,
            None => Ok(()),
        };
        self.notify_change();
        granted.inspect_err(|why| self.undone("grant_failed", id, &approver, &grant, why))?;
        Ok(standing)
    }

    /// Stores a grant.
    async fn grant(&self, grant: &GrantView) -> Result<(), ApprovalError> {
        let row = Some(grant.json());
        let writing = self.store.write(
            grants::GRANTS_TABLE,
            &grant.id,
            row,
            WritePrecondition::Absent,
        );
        let written = writing.await.map_err(ApprovalError::GrantUnkept)?;
        self.sync();
        match written {
            WriteOutcome::Done(_) => Ok(()),
            WriteOutcome::Conflict => Err(ApprovalError::GrantUnkept(conflict_error())),
        }
    }

    /// Records that an approval, or only its grant, did not take effect after it was recorded.
    fn undone(
        &self,
        state: &str,
        id: &str,
        who: &Approver,
        grant: &Option<GrantView>,
        why: &ApprovalError,
    ) {
        let Some(record) = self
            .lock_index()
            .find_by_id(id)
            .map(|approval| approval.record_with_approver(state, who))
        else {
            return;
        };
        let record = record.with("why", why.to_string());
        self.recorder.note(match grant {
            Some(grant) => record.with("grant", &*grant.id),
            None => record,
        });
    }

    /// Checks whether this approver may approve on these terms. Returns the audit entry and the grant to remember.
    fn check_approval(
        &self,
        id: &str,
        who: &Approver,
        yes: &ApprovalTerms,
    ) -> Result<(AuditEntry, Option<GrantView>), ApprovalError> {
        let mut index = self.lock_index();
        let spare = self.make_grant_capacity(&index.grants);
        let approval = stored_approval(index.find_by_id(id))?;
        let kept = &approval.stored;
        let next = approval
            .status()
            .after_approval(&kept.approvers, &kept.requirement, who)?;
        if who.channel != ApprovalChannel::Client
            && who.made_call(&kept.binding.caller, kept.requirement.approvers())
        {
            return Err(ApprovalError::OwnCall);
        }
        let state = match next {
            ApprovalStatus::Pending => "seconded",
            _ => "approved",
        };
        let mut record = approval.record_with_approver(state, who);
        if let Some(edit) = &yes.edited_arguments {
            check_editable(approval, edit)?;
            let mac = self.recorder.mac(edit.as_str().as_bytes());
            record = record
                .with("edited", true)
                .with("args_len", edit.as_str().len())
                .with("args_mac", mac.unwrap_or_default());
        }
        let Some(remember) = &yes.grant else {
            return Ok((record, None));
        };
        check_grant_terms(approval, remember)?;
        if yes.edited_arguments.is_some() {
            return Err(ApprovalError::GrantNotAllowed(EDITED_GRANT_REASON));
        }
        if !spare {
            return Err(ApprovalError::GrantNotAllowed(TOO_MANY_GRANTS_REASON));
        }
        let grant = id::random_id('g').map_err(ApprovalError::NotAudited)?;
        let grant = GrantView::new(
            grant,
            &kept.binding,
            who.clone(),
            remember,
            (&self.limits, self.now()),
        );
        Ok((record.with("grant", &*grant.id), Some(grant)))
    }

    /// Checks the limit on grants. At the limit, the oldest grant that no longer holds is deleted.
    fn make_grant_capacity(&self, grants: &GrantIndex) -> bool {
        if grants.len() < self.limits.max_grants {
            return true;
        }
        let now = self.now();
        let over = grants
            .iter()
            .filter(|grant| grant.view.end_reason(now).is_some());
        let Some(oldest) = over.min_by_key(|grant| grant.view.created_at) else {
            return false;
        };
        let expect = WritePrecondition::Version(oldest.version);
        drop(
            self.store
                .write(grants::GRANTS_TABLE, &oldest.view.id, None, expect),
        );
        true
    }

    /// Writes an approval to the store. A concurrent denial wins.
    async fn store_approval(
        &self,
        id: &str,
        who: &Approver,
        yes: &ApprovalTerms,
    ) -> Result<ApprovalStatus, ApprovalError> {
        for _ in 0..ApprovalService::MAX_WRITE_ATTEMPTS {
            let (next, writing) = {
                let mut index = self.lock_index();
                let approval = stored_approval(index.find_by_id(id))?;
                if approval.expiry.past(self.store.clock()) {
                    return Err(ApprovalError::Decided(ApprovalStatus::Expired));
                }
                let kept = &approval.stored;
                let next =
                    approval
                        .status()
                        .after_approval(&kept.approvers, &kept.requirement, who)?;
                let writing = approval.write(self.store.as_ref(), |kept| {
                    kept.status = next.clone();
                    kept.approvers.push(who.clone());
                    if kept.requirement.passkey {
                        kept.assertions.extend(yes.passkey.clone());
                    }
                    kept.edited_arguments = yes.edited_arguments.clone();
                });
                (next, writing)
            };
            let written = writing.await.map_err(ApprovalError::NotStored)?;
            self.sync();
            if let WriteOutcome::Done(_) = written {
                return Ok(next);
            }
        }
        Err(ApprovalError::NotStored(conflict_error()))
    }

    /// Denies the call of the pending approval with this id, with a reason that the model reads. A denial overrides an
    /// approval that is not spent yet.
    ///
    /// # Errors
    /// The approval is unknown, spent, denied or expired, or the denial could not be stored or recorded. In this
    /// process it holds even if it could not be stored or recorded.
    pub async fn deny(
        &self,
        id: &str,
        approver: impl Into<Approver>,
        reason: Option<String>,
    ) -> Result<(), ApprovalError> {
        let approver = approver.into();
        self.sweep();
        let reason = reason
            .map(|r| sanitize_reason(&r))
            .filter(|r| !r.is_empty());
        {
            let mut index = self.lock_index();
            let approval = stored_approval(index.find_by_id(id))?;
            if !approval.is_live() {
                return Err(ApprovalError::Decided(approval.status()));
            }
            // Set before the write: an approval must not be spent while the denial is being stored.
            approval.denial = Some((approver.clone(), reason.clone()));
            approval.wake();
        }
        self.notify_change();
        let record = self.store_denial(id, &approver, reason).await?;
        self.append_record(record).await
    }

    async fn store_denial(
        &self,
        id: &str,
        who: &Approver,
        reason: Option<String>,
    ) -> Result<AuditEntry, ApprovalError> {
        let no = ApprovalStatus::Denied(who.clone(), reason.clone());
        for _ in 0..ApprovalService::MAX_WRITE_ATTEMPTS {
            let (record, writing) = {
                let mut index = self.lock_index();
                let approval = stored_approval(index.find_by_id(id))?;
                if !approval.stored.status.is_live() {
                    return Err(ApprovalError::Decided(approval.stored.status.clone()));
                }
                let record = approval.record_with_approver("denied", who);
                let writing = approval.write(self.store.as_ref(), |kept| kept.status = no.clone());
                (record, writing)
            };
            let written = writing.await.map_err(ApprovalError::NotStored)?;
            self.sync();
            if let WriteOutcome::Done(_) = written {
                return Ok(record.with("reason", reason.unwrap_or_default()));
            }
        }
        Err(ApprovalError::NotStored(conflict_error()))
    }
}

/// Returns the approval if it is already in the store.
fn stored_approval(
    approval: Option<&mut PendingApproval>,
) -> Result<&mut PendingApproval, ApprovalError> {
    approval
        .filter(|approval| approval.version > 0)
        .ok_or(ApprovalError::Unknown)
}

fn check_editable(approval: &PendingApproval, edit: &Json) -> Result<(), ApprovalError> {
    let why = if approval.stored.item.kind() != ItemKind::Tool {
        "only the arguments of a tool can be edited"
    } else if approval.stored.requirement.approvers() > 1 {
        "the call needs several approvers; deny it with a reason instead"
    } else if edit.kind() != JsonKind::Object {
        "the edited arguments are not a JSON object"
    } else {
        return Ok(());
    };
    Err(ApprovalError::NotEditable(why.to_owned()))
}

fn check_grant_terms(
    approval: &PendingApproval,
    remember: &GrantTerms,
) -> Result<(), ApprovalError> {
    if let Some(when) = &remember.condition {
        let condition = GrantCondition::compile(when).map_err(ApprovalError::InvalidCondition)?;
        let narrows = condition.check_narrows(&approval.stored.item);
        narrows.map_err(ApprovalError::InvalidCondition)?;
    }
    let why = if remember.max_uses == Some(0) {
        NO_USES_REASON
    } else if !approval.stored.requirement.is_single() {
        SEVERAL_APPROVERS_REASON
    } else if remember.condition.is_none() && !is_harmless(&approval.stored.item) {
        NEEDS_CONDITION_REASON
    } else {
        return Ok(());
    };
    Err(ApprovalError::GrantNotAllowed(why))
}

/// Returns the reason as the model reads it: sanitized, at most 1,000 characters.
fn sanitize_reason(reason: &str) -> String {
    const MAX_REASON_CHARS: usize = 1000;
    text::sanitize_text(reason.trim())
        .chars()
        .take(MAX_REASON_CHARS)
        .collect()
}
