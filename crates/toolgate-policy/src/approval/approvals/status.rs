//! Status of an approval and its transitions. Reads no clock and no disk.

use super::{ApprovalError, ApprovalRequirement, Approver};
use serde_json::{Value, json};
use std::sync::Arc;

/// Status of an approval of a call: pending, approved, denied, expired, revoked or spent.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ApprovalStatus {
    /// The approval is not decided yet.
    Pending,
    /// The call is approved for one use, by this (the last required) approver.
    Approved(Approver),
    /// The call is denied by this approver, with the reason that the model reads.
    Denied(Approver, Option<String>),
    /// The approval was not decided, or not spent on its call, in time.
    Expired,
    /// The caller's API key was revoked before the approval was spent on its call.
    Revoked,
    /// The approval was used by one call, and covers the later rounds of that call.
    Spent {
        /// Id of the call that used the approval.
        call: Arc<str>,
        /// Number of the last round of the call that used the approval.
        round: u32,
        /// Approver who approved the call.
        by: Approver,
    },
}

impl ApprovalStatus {
    /// Returns the name of the approval status in audit records.
    pub fn as_str(&self) -> &'static str {
        match self {
            ApprovalStatus::Pending => "asked",
            ApprovalStatus::Approved(_) => "approved",
            ApprovalStatus::Denied(..) => "denied",
            ApprovalStatus::Expired => "expired",
            ApprovalStatus::Revoked => "revoked",
            ApprovalStatus::Spent { .. } => "spent",
        }
    }

    /// Reports whether the approval can still be decided or spent.
    pub(super) fn is_live(&self) -> bool {
        matches!(self, ApprovalStatus::Pending | ApprovalStatus::Approved(_))
    }

    /// Returns the status after one more approval. It stays open until the requirement is met.
    pub(super) fn after_approval(
        &self,
        yeses: &[Approver],
        needs: &ApprovalRequirement,
        who: &Approver,
    ) -> Result<ApprovalStatus, ApprovalError> {
        if *self != ApprovalStatus::Pending {
            return Err(ApprovalError::Decided(self.clone()));
        }
        if yeses.iter().any(|yes| yes.may_be_same(who)) {
            return Err(ApprovalError::SameApprover);
        }
        needs.check_approver(yeses, who)?;
        let with: Vec<Approver> = yeses.iter().chain([who]).cloned().collect();
        Ok(match needs.is_met_by(&with) {
            true => ApprovalStatus::Approved(who.clone()),
            false => ApprovalStatus::Pending,
        })
    }

    /// Returns the status after a round of a call used the approval. `continues` says that an earlier round of the call
    /// used it. A round counts once: repeating it is a second use, which is not allowed.
    pub(super) fn after_use(
        &self,
        call: &Arc<str>,
        round: u32,
        continues: bool,
    ) -> Option<ApprovalStatus> {
        let by = match self {
            ApprovalStatus::Approved(by) => by,
            ApprovalStatus::Spent {
                call: before,
                round: last,
                by,
            } if continues && before == call && round > *last => by,
            _ => return None,
        };
        Some(ApprovalStatus::Spent {
            call: call.clone(),
            round,
            by: by.clone(),
        })
    }

    pub(super) fn json(&self) -> Value {
        match self {
            ApprovalStatus::Approved(who) => json!({"is": "approved", "who": who.json()}),
            ApprovalStatus::Denied(who, why) => {
                json!({"is": "denied", "who": who.json(), "why": why})
            }
            ApprovalStatus::Spent { call, round, by } => {
                json!({"is": "spent", "who": by.json(), "call": &**call, "round": round})
            }
            ApprovalStatus::Pending => json!({"is": "open"}),
            ApprovalStatus::Expired => json!({"is": "expired"}),
            ApprovalStatus::Revoked => json!({"is": "revoked"}),
        }
    }

    pub(super) fn read(value: &Value) -> Option<ApprovalStatus> {
        let who = || Approver::read(value.get("who")?);
        Some(match value.get("is")?.as_str()? {
            "open" => ApprovalStatus::Pending,
            "expired" => ApprovalStatus::Expired,
            "revoked" => ApprovalStatus::Revoked,
            "approved" => ApprovalStatus::Approved(who()?),
            "denied" => {
                ApprovalStatus::Denied(who()?, value.get("why")?.as_str().map(str::to_owned))
            }
            "spent" => ApprovalStatus::Spent {
                call: value.get("call")?.as_str()?.into(),
                round: value.get("round")?.as_u64()?.try_into().ok()?,
                by: who()?,
            },
            _ => return None,
        })
    }
}
