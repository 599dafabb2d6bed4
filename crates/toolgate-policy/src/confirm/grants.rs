//! "This tool, for this caller, until then": a yes that is remembered.

use super::{
    Binding, Who,
    condition::Condition,
    kept::{at, caller, millis},
};
use crate::{DeskLimits, Row};
use serde_json::{Value, json};
use std::{sync::Arc, time::SystemTime};
use toolgate_core::Caller;

/// The table of the store.
pub(super) const TABLE: &str = "grants";

/// How far a yes is to be remembered.
#[derive(Clone, Debug, Default)]
pub struct Remember {
    /// Until when; [`DeskLimits::grant_life`] from now unless it says so, and never beyond [`DeskLimits::grant_longest`].
    pub until: Option<SystemTime>,
    /// For how many rounds of calls; without end unless it says so.
    pub uses: Option<u64>,
    /// For calls that fit this condition in CEL only.
    pub when: Option<String>,
    /// For whoever calls, not for this caller only.
    pub all_callers: bool,
}

/// A remembered yes. It answers an ask and never lifts a deny.
#[derive(Clone, Debug)]
pub struct GrantView {
    /// Names it, `g-…`.
    pub id: Arc<str>,
    /// For whom; `None` for whoever calls.
    pub caller: Option<Caller>,
    /// The configured id of the server.
    pub server: Arc<str>,
    /// The tool, under the server's own name.
    pub tool: String,
    /// SHA-256 of the definition it was given for; another definition needs another yes.
    pub definition: String,
    /// Who gave it.
    pub by: Who,
    /// When it was given.
    pub since: SystemTime,
    /// Until when it holds.
    pub until: SystemTime,
    /// How many uses it holds for.
    pub uses: Option<u64>,
    /// For which calls only.
    pub when: Option<String>,
    /// How many rounds of calls used it.
    pub used: u64,
    /// When it was used last.
    pub last: Option<SystemTime>,
}

impl GrantView {
    pub(super) fn new(
        id: Arc<str>,
        binding: &Binding,
        by: Who,
        remember: &Remember,
        (limits, now): (&DeskLimits, SystemTime),
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

    /// Returns why it no longer holds at a time of the store's clock.
    pub fn over(&self, now: SystemTime) -> Option<&'static str> {
        if now >= self.until {
            return Some("expired");
        }
        self.uses
            .is_some_and(|uses| self.used >= uses)
            .then_some("used up")
    }

    pub(super) fn speaks_of(&self, binding: &Binding) -> bool {
        self.caller
            .as_ref()
            .is_none_or(|c| *c == binding.caller && c.holder() == binding.holder)
            && self.server == binding.server
            && self.tool == binding.tool
            && self.definition == binding.definition
    }

    /// The same, used once more.
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
            by: Who::read(value.get("by")?)?,
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

/// A grant as the store has it.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    pub(super) view: GrantView,
    pub(super) version: u64,
    pub(super) when: Option<Condition>,
}

impl Grant {
    /// A grant out of the store. What cannot be read, or whose condition is none, counts for nothing.
    pub(super) fn read(row: &Row) -> Option<Grant> {
        let view = GrantView::read(&row.key, &row.value)?;
        let when = match &view.when {
            None => None,
            Some(text) => Some(Condition::compile(text).ok()?),
        };
        Some(Grant {
            view,
            version: row.version,
            when,
        })
    }
}
