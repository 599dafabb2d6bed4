//! Where an approval stands, and the steps from one standing to the next. No clock, no disk.

use super::{DeskError, Who};
use serde_json::{Value, json};
use std::sync::Arc;

/// Where an approval stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Standing {
    /// Not decided yet.
    Open,
    /// Good for one use of exactly this call; who said the last yes.
    Approved(Who),
    /// Denied, with the reason that the model reads.
    Denied(Who, Option<String>),
    /// Nobody decided, or nobody used it, in time.
    Expired,
    /// The key of its caller was revoked before it was used.
    Revoked,
    /// Used by the call of that id; it holds for the later rounds of that call.
    Spent {
        /// The id of the call.
        call: Arc<str>,
        /// The last round that it was used in.
        round: u32,
        /// Who had approved.
        by: Who,
    },
}

impl Standing {
    /// The word of the record.
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

    /// Whether it can still turn out either way, or be used.
    pub(super) fn alive(&self) -> bool {
        matches!(self, Standing::Open | Standing::Approved(_))
    }

    /// After one more yes; with too few of them it stays open.
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

    /// After it was used by a round of a call. Each round counts once, or a repeated round would be a second use.
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
