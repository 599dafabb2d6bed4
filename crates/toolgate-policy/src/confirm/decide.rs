//! Decisions of approvers: approve, edit, remember, deny.

use super::{
    ApprovalChannel, ApprovalError, ApprovalService, ApprovalStatus, Approver, GrantTerms,
    GrantView, claim::busy, condition::GrantCondition, grants, harmless, id, slip::PendingApproval,
};
use crate::{WriteOutcome, WritePrecondition, text};
use toolgate_core::{Item, ItemKind, Json};
use toolgate_journal::AuditEntry;
use toolgate_wire::json::JsonKind;

/// Terms of an approval decision: edited arguments, or a grant for later calls.
#[derive(Clone, Debug, Default)]
pub struct ApprovalTerms {
    /// Replacement for the arguments. Every rule judges it like the original arguments before anything is sent.
    pub edit: Option<Json>,
    /// Grant to create for later calls.
    pub remember: Option<GrantTerms>,
}

impl ApprovalTerms {
    /// Returns terms that also create a grant.
    pub fn remembered(remember: GrantTerms) -> ApprovalTerms {
        ApprovalTerms {
            edit: None,
            remember: Some(remember),
        }
    }

    /// Returns terms that replace the arguments.
    pub fn edited(arguments: Json) -> ApprovalTerms {
        ApprovalTerms {
            edit: Some(arguments),
            remember: None,
        }
    }
}

impl ApprovalService {
    /// Approves one use of exactly this call.
    ///
    /// The approval stays [`ApprovalStatus::Open`] until the required number of approvers approved it.
    ///
    /// # Errors
    /// It is decided already, unknown, not this person's to decide, or the yes could not be kept or recorded; then
    /// nothing changed. With [`ApprovalError::GrantUnkept`] the yes counts for this call and only its grant is missing.
    pub async fn approve(
        &self,
        id: &str,
        who: impl Into<Approver>,
        yes: ApprovalTerms,
    ) -> Result<ApprovalStatus, ApprovalError> {
        let who = who.into();
        self.sweep();
        let (record, grant) = self.yes(id, &who, &yes)?;
        self.written(record).await?;
        // Recorded before it counts: a yes without a record must not let a call through.
        let put = self.put(id, &who, &yes).await;
        let standing = put.inspect_err(|why| self.undone("failed", id, &who, &grant, why))?;
        let granted = match &grant {
            Some(grant) => self.grant(grant).await,
            None => Ok(()),
        };
        self.touch();
        granted.inspect_err(|why| self.undone("grant_failed", id, &who, &grant, why))?;
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
            WriteOutcome::Conflict => Err(ApprovalError::GrantUnkept(busy())),
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
        let Some(record) = self.book().slip(id).map(|slip| slip.record_by(state, who)) else {
            return;
        };
        let record = record.with("why", why.to_string());
        self.recorder.note(match grant {
            Some(grant) => record.with("grant", &*grant.id),
            None => record,
        });
    }

    /// Whether this person may say this yes to it, what is recorded then, and what is remembered.
    fn yes(
        &self,
        id: &str,
        who: &Approver,
        yes: &ApprovalTerms,
    ) -> Result<(AuditEntry, Option<GrantView>), ApprovalError> {
        let mut book = self.book();
        let spare = self.spare(&book.grants);
        let slip = known(book.slip(id))?;
        let kept = &slip.kept;
        let next = slip.standing().approved(&kept.yeses, kept.needs, who)?;
        if who.by != ApprovalChannel::Client && who.made(&kept.binding.caller, kept.needs) {
            return Err(ApprovalError::Own);
        }
        let state = match next {
            ApprovalStatus::Open => "seconded",
            _ => "approved",
        };
        let mut record = slip.record_by(state, who);
        if let Some(edit) = &yes.edit {
            editable(slip, edit)?;
            let mac = self.recorder.mac(edit.as_str().as_bytes());
            record = record
                .with("edited", true)
                .with("args_len", edit.as_str().len())
                .with("args_mac", mac.unwrap_or_default());
        }
        let Some(remember) = &yes.remember else {
            return Ok((record, None));
        };
        may_remember(slip, remember)?;
        if !spare || yes.edit.is_some() {
            return Err(ApprovalError::NotRemembered);
        }
        let grant = id::fresh('g').map_err(ApprovalError::Unrecorded)?;
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
    fn spare(&self, grants: &[grants::StoredApprovalGrant]) -> bool {
        if grants.len() < self.limits.grants {
            return true;
        }
        let now = self.now();
        let over = grants.iter().filter(|grant| grant.view.over(now).is_some());
        let Some(oldest) = over.min_by_key(|grant| grant.view.since) else {
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
    async fn put(
        &self,
        id: &str,
        who: &Approver,
        yes: &ApprovalTerms,
    ) -> Result<ApprovalStatus, ApprovalError> {
        for _ in 0..ApprovalService::MAX_WRITE_ATTEMPTS {
            let (next, writing) = {
                let mut book = self.book();
                let slip = known(book.slip(id))?;
                if slip.expiry.past(self.store.clock()) {
                    return Err(ApprovalError::Decided(ApprovalStatus::Expired));
                }
                let kept = &slip.kept;
                let next = slip.standing().approved(&kept.yeses, kept.needs, who)?;
                let writing = slip.write(self.store.as_ref(), |kept| {
                    kept.standing = next.clone();
                    kept.yeses.push(who.clone());
                    kept.edit = yes.edit.clone();
                });
                (next, writing)
            };
            let written = writing.await.map_err(ApprovalError::Unkept)?;
            self.sync();
            if let WriteOutcome::Done(_) = written {
                return Ok(next);
            }
        }
        Err(ApprovalError::Unkept(busy()))
    }

    /// Denies a call, with a reason that the model reads. A denial overrides an approval that is not spent yet.
    ///
    /// # Errors
    /// The approval is unknown, spent, denied or expired, or the denial could not be stored or recorded. In this
    /// process it holds even if it could not be stored or recorded.
    pub async fn deny(
        &self,
        id: &str,
        who: impl Into<Approver>,
        reason: Option<String>,
    ) -> Result<(), ApprovalError> {
        let who = who.into();
        self.sweep();
        let reason = reason.map(|r| tidy(&r)).filter(|r| !r.is_empty());
        {
            let mut book = self.book();
            let slip = known(book.slip(id))?;
            if !slip.alive() {
                return Err(ApprovalError::Decided(slip.standing()));
            }
            // Set before the write: an approval must not be spent while the denial is being stored.
            slip.no = Some((who.clone(), reason.clone()));
            slip.wake();
        }
        self.touch();
        let record = self.put_no(id, &who, reason).await?;
        self.written(record).await
    }

    async fn put_no(
        &self,
        id: &str,
        who: &Approver,
        reason: Option<String>,
    ) -> Result<AuditEntry, ApprovalError> {
        let no = ApprovalStatus::Denied(who.clone(), reason.clone());
        for _ in 0..ApprovalService::MAX_WRITE_ATTEMPTS {
            let (record, writing) = {
                let mut book = self.book();
                let slip = known(book.slip(id))?;
                if !slip.kept.standing.alive() {
                    return Err(ApprovalError::Decided(slip.kept.standing.clone()));
                }
                let record = slip.record_by("denied", who);
                let writing = slip.write(self.store.as_ref(), |kept| kept.standing = no.clone());
                (record, writing)
            };
            let written = writing.await.map_err(ApprovalError::Unkept)?;
            self.sync();
            if let WriteOutcome::Done(_) = written {
                return Ok(record.with("reason", reason.unwrap_or_default()));
            }
        }
        Err(ApprovalError::Unkept(busy()))
    }
}

/// Returns the approval if it is already in the store.
fn known(slip: Option<&mut PendingApproval>) -> Result<&mut PendingApproval, ApprovalError> {
    slip.filter(|slip| slip.version > 0)
        .ok_or(ApprovalError::Unknown)
}

fn editable(slip: &PendingApproval, edit: &Json) -> Result<(), ApprovalError> {
    let why = if slip.kept.item.kind() != ItemKind::Tool {
        "only arguments of tools can be edited"
    } else if slip.kept.needs > 1 {
        "a call that needs several approvers cannot be edited; deny it with a reason"
    } else if edit.kind() != JsonKind::Object {
        "the arguments must be a JSON object"
    } else {
        return Ok(());
    };
    Err(ApprovalError::NotEdited(why.to_owned()))
}

fn may_remember(slip: &PendingApproval, remember: &GrantTerms) -> Result<(), ApprovalError> {
    if let Some(when) = &remember.when {
        let condition = GrantCondition::compile(when).map_err(ApprovalError::Condition)?;
        let narrows = condition.narrows(&slip.kept.item);
        narrows.map_err(ApprovalError::Condition)?;
    }
    if remember.uses == Some(0) || !rememberable(&slip.kept.item, slip.kept.needs, remember) {
        return Err(ApprovalError::NotRemembered);
    }
    Ok(())
}

fn rememberable(item: &Item, needs: u32, remember: &GrantTerms) -> bool {
    needs <= 1 && (harmless(item) || remember.when.is_some())
}

/// Returns the reason as the model reads it: sanitized, at most 1,000 characters.
fn tidy(reason: &str) -> String {
    const MAX_REASON_CHARS: usize = 1000;
    text::clean(reason.trim())
        .chars()
        .take(MAX_REASON_CHARS)
        .collect()
}
