//! Grants: remembered approvals of a tool for a caller, with an expiry.

use super::{
    ApprovalBinding, Approver,
    condition::GrantCondition,
    kept::{at, caller, millis},
};
use crate::{ApprovalLimits, StateRow};
use serde_json::{Value, json};
use std::{sync::Arc, time::SystemTime};
use toolgate_core::Caller;

/// Table of the store.
pub(super) const GRANTS_TABLE: &str = "grants";

/// Scope of a grant: expiry, number of uses, condition and callers.
#[derive(Clone, Debug, Default)]
pub struct GrantTerms {
    /// Expiry. Default: [`ApprovalLimits::grant_life`] from now. Maximum: [`ApprovalLimits::grant_longest`] from now.
    pub until: Option<SystemTime>,
    /// Maximum number of uses, counted in rounds of calls. Default: unlimited.
    pub uses: Option<u64>,
    /// CEL condition that a call must satisfy.
    pub when: Option<String>,
    /// Extends the grant from this caller to all callers.
    pub all_callers: bool,
}

/// A grant (remembered approval). It satisfies an ask rule and never overrides a deny rule.
#[derive(Clone, Debug)]
pub struct GrantView {
    /// Id, `g-…`.
    pub id: Arc<str>,
    /// The caller that it applies to; `None` for all callers.
    pub caller: Option<Caller>,
    /// Configured id of the server.
    pub server: Arc<str>,
    /// The server's own name of the tool.
    pub tool: String,
    /// SHA-256 of the approved definition. A changed definition needs a new approval.
    pub definition: String,
    /// The approver.
    pub by: Approver,
    /// Creation time.
    pub since: SystemTime,
    /// Expiry.
    pub until: SystemTime,
    /// Maximum number of uses.
    pub uses: Option<u64>,
    /// CEL condition that a call must satisfy.
    pub when: Option<String>,
    /// Number of uses so far, counted in rounds of calls.
    pub used: u64,
    /// Time of the last use.
    pub last: Option<SystemTime>,
}

impl GrantView {
    pub(super) fn new(
        id: Arc<str>,
        binding: &ApprovalBinding,
        by: Approver,
        remember: &GrantTerms,
        (limits, now): (&ApprovalLimits, SystemTime),
    ) -> GrantView {
        let usual = now + limits.grant_life;
        let most = now + limits.grant_longest;
        GrantView {
            id,
            caller: (!remember.all_callers).then(|| binding.caller.clone()),
            server: binding.server.clone(),
            tool: binding.tool.clone(),
            definition: binding.definition.clone(),
            by,
            since: now,
            until: remember.until.unwrap_or(usual).min(most),
            uses: remember.uses,
            when: remember.when.clone(),
            used: 0,
            last: None,
        }
    }

    /// Returns the reason why the grant no longer holds at a time of the store's clock: `expired` or `used up`.
    pub fn over(&self, now: SystemTime) -> Option<&'static str> {
        if now >= self.until {
            return Some("expired");
        }
        self.uses
            .is_some_and(|uses| self.used >= uses)
            .then_some("used up")
    }

    pub(super) fn speaks_of(&self, binding: &ApprovalBinding) -> bool {
        self.caller
            .as_ref()
            .is_none_or(|c| *c == binding.caller && c.holder() == binding.holder)
            && self.server == binding.server
            && self.tool == binding.tool
            && self.definition == binding.definition
    }

    /// Returns a copy with one more use.
    pub(super) fn used_once(&self, now: SystemTime) -> GrantView {
        GrantView {
            used: self.used.saturating_add(1),
            last: Some(now),
            ..self.clone()
        }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "caller": self.caller.as_ref().map(Caller::name), "holder": self.caller.as_ref().and_then(Caller::holder), "server": &*self.server, "tool": self.tool,
            "definition": self.definition, "by": self.by.json(), "since": millis(self.since), "until": millis(self.until),
            "uses": self.uses, "when": self.when, "used": self.used, "last": self.last.map(millis),
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
                Some(name) => Some(caller(name.as_str()?, value.get("holder"))),
            },
            server: text("server")?.into(),
            tool: text("tool")?.to_owned(),
            definition: text("definition")?.to_owned(),
            by: Approver::read(value.get("by")?)?,
            since: at(value.get("since")?)?,
            until: at(value.get("until")?)?,
            uses: match maybe("uses")? {
                None => None,
                Some(uses) => Some(uses.as_u64()?),
            },
            when: match maybe("when")? {
                None => None,
                Some(when) => Some(when.as_str()?.to_owned()),
            },
            used: value.get("used")?.as_u64()?,
            last: match maybe("last")? {
                None => None,
                Some(last) => Some(at(last)?),
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
        let when = match &view.when {
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
