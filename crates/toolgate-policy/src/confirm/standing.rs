//! Status of an approval and its transitions. Reads no clock and no disk.

use super::{DeskError, Who};
use serde_json::{Value, json};
use std::sync::Arc;

/// Status of an approval.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Standing {
    /// Pending: not decided yet.
    Open,
    /// Approved for one use of exactly this call, by the last required approver.
    Approved(Who),
    /// Denied, with the reason that the model reads.
    Denied(Who, Option<String>),
    /// Not decided or not spent in time.
    Expired,
    /// The caller's API key was revoked before the approval was spent.
    Revoked,
    /// Spent by one call; the approval also covers the later rounds of that call.
    Spent {
        /// Id of the call.
        call: Arc<str>,
        /// Number of the last round that used the approval.
        round: u32,
        /// The approver.
        by: Who,
    },
}

impl Standing {
    /// Returns the name of the status in audit records.
    pub fn as_str(&self) -> &'static str {
        match self {
            Standing::Open => "asked",
            Standing::Approved(_) => "approved",
            Standing::Denied(..) => "denied",
            Standing::Expired => "expired",
            Standing::Revoked => "revoked",
            Standing::Spent { .. } => "spent",
        }
    }

    /// Reports whether the approval can still be decided or spent.
    pub(super) fn alive(&self) -> bool {
        matches!(self, Standing::Open | Standing::Approved(_))
    }

    /// Returns the status after one more approval. It stays open until the quorum is reached.
    pub(super) fn approved(
        &self,
        yeses: &[Who],
        needs: u32,
        who: &Who,
    ) -> Result<Standing, DeskError> {
        if *self != Standing::Open {
            return Err(DeskError::Decided(self.clone()));
        }
        if needs > 1 && (who.name.is_none() || who.by == super::By::Client) {
            return Err(DeskError::Nameless);
        }
        if yeses.iter().any(|yes| yes.is(who)) {
            return Err(DeskError::Same);
        }
        let enough = yeses.len() + 1 >= needs as usize;
        Ok(match enough {
            true => Standing::Approved(who.clone()),
            false => Standing::Open,
        })
    }

    /// Returns the status after a round of a call used the approval. A round counts once: repeating it is a second use,
    /// which is not allowed.
    pub(super) fn spent(&self, call: &Arc<str>, round: u32, named: bool) -> Option<Standing> {
        let by = match self {
            Standing::Approved(by) => by,
            Standing::Spent {
                call: before,
                round: last,
                by,
            } if named && before == call && round > *last => by,
            _ => return None,
        };
        Some(Standing::Spent {
            call: call.clone(),
            round,
            by: by.clone(),
        })
    }

    pub(super) fn json(&self) -> Value {
        match self {
            Standing::Approved(who) => json!({"is": "approved", "who": who.json()}),
            Standing::Denied(who, why) => json!({"is": "denied", "who": who.json(), "why": why}),
            Standing::Spent { call, round, by } => {
                json!({"is": "spent", "who": by.json(), "call": &**call, "round": round})
            }
            Standing::Open => json!({"is": "open"}),
            Standing::Expired => json!({"is": "expired"}),
            Standing::Revoked => json!({"is": "revoked"}),
        }
    }

    pub(super) fn read(value: &Value) -> Option<Standing> {
        let who = || Who::read(value.get("who")?);
        Some(match value.get("is")?.as_str()? {
            "open" => Standing::Open,
            "expired" => Standing::Expired,
            "revoked" => Standing::Revoked,
            "approved" => Standing::Approved(who()?),
            "denied" => Standing::Denied(who()?, value.get("why")?.as_str().map(str::to_owned)),
            "spent" => Standing::Spent {
                call: value.get("call")?.as_str()?.into(),
                round: value.get("round")?.as_u64()?.try_into().ok()?,
                by: who()?,
            },
            _ => return None,
        })
    }
}
