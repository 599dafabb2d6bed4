//! Grants: remembered approvals of a tool for a caller, with an expiry.

use super::{
    ApprovalBinding, Approver,
    codec::{read_unix_millis, stored_caller},
    condition::GrantCondition,
};
use crate::{ApprovalLimits, StateRow, unix_time::to_unix_millis};
use serde_json::{Value, json};
use std::{sync::Arc, time::SystemTime};
use toolgate_core::Caller;

/// Table of the store.
pub(super) const GRANTS_TABLE: &str = "grants";

/// Scope of a grant (remembered approval): expiry, number of uses, condition and callers.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct GrantTerms {
    /// Expiry of the grant. Default: [`ApprovalLimits::default_grant_lifetime`] from now. Maximum:
    /// [`ApprovalLimits::max_grant_lifetime`] from now.
    pub expires_at: Option<SystemTime>,
    /// Maximum number of times that the grant authorizes a call (each round counts). Default: unlimited.
    pub max_uses: Option<u64>,
    /// CEL condition that a call must satisfy for the grant to authorize it.
    pub condition: Option<String>,
    /// True to extend the grant from this caller to all callers.
    pub all_callers: bool,
}

/// View of a grant, an approval that is remembered for later calls of a tool. It satisfies an ask rule that needs one
/// approver, and never overrides a deny rule.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GrantView {
    /// Id of the grant, `g-…`.
    pub id: Arc<str>,
    /// Caller that the grant applies to; `None` for all callers.
    pub caller: Option<Caller>,
    /// Configured id of the server that the grant applies to.
    pub server: Arc<str>,
    /// Server's own name of the tool that the grant applies to.
    pub tool: String,
    /// View whose callers the grant applies to; `None` for callers without a view.
    pub view: Option<Arc<str>>,
    /// SHA-256 of the tool definition that the grant applies to. A changed definition needs a new approval.
    pub definition: String,
    /// Approver who created the grant.
    pub approver: Approver,
    /// Creation time of the grant.
    pub created_at: SystemTime,
    /// Expiry of the grant.
    pub expires_at: SystemTime,
    /// Maximum number of uses of the grant; `None` for unlimited.
    pub max_uses: Option<u64>,
    /// CEL condition that a call must satisfy for the grant to authorize it.
    pub condition: Option<String>,
    /// Number of uses of the grant so far, counted in rounds of calls.
    pub used: u64,
    /// Time of the last use of the grant.
    pub last_used: Option<SystemTime>,
}

impl GrantView {
    pub(super) fn new(
        id: Arc<str>,
        binding: &ApprovalBinding,
        by: Approver,
        remember: &GrantTerms,
        (limits, now): (&ApprovalLimits, SystemTime),
    ) -> GrantView {
        let usual = now + limits.default_grant_lifetime;
        let most = now + limits.max_grant_lifetime;
        GrantView {
            id,
            caller: (!remember.all_callers).then(|| binding.caller.clone()),
            server: binding.server.clone(),
            tool: binding.tool.clone(),
            view: binding.caller.view().map(Into::into),
            definition: binding.definition.clone(),
            approver: by,
            created_at: now,
            expires_at: remember.expires_at.unwrap_or(usual).min(most),
            max_uses: remember.max_uses,
            condition: remember.condition.clone(),
            used: 0,
            last_used: None,
        }
    }

    /// Returns the reason why the grant no longer holds at a time of the store's clock: `expired` or `used up`.
    pub fn end_reason(&self, now: SystemTime) -> Option<&'static str> {
        if now >= self.expires_at {
            return Some("expired");
        }
        self.max_uses
            .is_some_and(|uses| self.used >= uses)
            .then_some("used up")
    }

    pub(super) fn matches(&self, binding: &ApprovalBinding) -> bool {
        self.caller
            .as_ref()
            .is_none_or(|c| *c == binding.caller && c.generation() == binding.generation)
            && self.server == binding.server
            && self.tool == binding.tool
            && self.view.as_deref() == binding.caller.view()
            && self.definition == binding.definition
    }

    /// Returns a copy with more uses.
    pub(super) fn with_more_uses(&self, uses: u64, now: SystemTime) -> GrantView {
        GrantView {
            used: self.used.saturating_add(uses),
            last_used: Some(now),
            ..self.clone()
        }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "caller": self.caller.as_ref().map(Caller::name), "holder": self.caller.as_ref().and_then(Caller::generation), "view": self.view.as_deref(), "server": &*self.server, "tool": self.tool,
            "definition": self.definition, "by": self.approver.json(), "since": to_unix_millis(self.created_at), "until": to_unix_millis(self.expires_at),
            "uses": self.max_uses, "when": self.condition, "used": self.used, "last": self.last_used.map(to_unix_millis),
        })
    }

    fn read(id: &str, value: &Value) -> Option<GrantView> {
        let text = |key: &str| value.get(key)?.as_str();
        let maybe = |key: &str| match value.get(key)? {
            Value::Null => Some(None),
            found => Some(Some(found)),
        };
        Some(GrantView {
            id: id.into(),
            caller: match maybe("caller")? {
                None => None,
                Some(name) => Some(stored_caller(name.as_str()?, value)),
            },
            server: text("server")?.into(),
            tool: text("tool")?.to_owned(),
            view: text("view").map(Into::into),
            definition: text("definition")?.to_owned(),
            approver: Approver::read(value.get("by")?)?,
            created_at: read_unix_millis(value.get("since")?)?,
            expires_at: read_unix_millis(value.get("until")?)?,
            max_uses: match maybe("uses")? {
                None => None,
                Some(uses) => Some(uses.as_u64()?),
            },
            condition: match maybe("when")? {
                None => None,
                Some(when) => Some(when.as_str()?.to_owned()),
            },
            used: value.get("used")?.as_u64()?,
            last_used: match maybe("last")? {
                None => None,
                Some(last) => Some(read_unix_millis(last)?),
            },
        })
    }
}

/// A grant as read from the store.
#[derive(Clone, Debug)]
pub(super) struct StoredApprovalGrant {
    pub(super) view: GrantView,
    pub(super) version: u64,
    pub(super) when: Option<GrantCondition>,
}

impl StoredApprovalGrant {
    /// Reads a grant from the store. Returns `None` for an unreadable row or an invalid condition.
    pub(super) fn read(row: &StateRow) -> Option<StoredApprovalGrant> {
        let view = GrantView::read(&row.key, &row.value)?;
        let when = match &view.condition {
            None => None,
            Some(text) => Some(GrantCondition::compile(text).ok()?),
        };
        Some(StoredApprovalGrant {
            view,
            version: row.version,
            when,
        })
    }
}
