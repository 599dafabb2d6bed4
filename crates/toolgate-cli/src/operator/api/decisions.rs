//! Decisions of a person: approvals, remembered approvals, freezes.

use super::{ActionError, ActionResult, OperatorApi, action_input::ActionInput};
use crate::{operator::item_view, pretty_json, timestamp::millis};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use toolgate_core::{Item, ItemKind, Json};
use toolgate_policy::{
    ApprovalChannel, ApprovalError, ApprovalStatus, ApprovalTerms, ApprovalView, Approver,
    FreezeScope, FreezeView, GrantTerms, GrantView, passkeys::PasskeyAssertion,
};

impl OperatorApi {
    /// Executes an action on approvals, grants or freezes.
    pub(super) async fn decision_action(
        &self,
        action: &str,
        with: &Value,
        who: &Approver,
    ) -> ActionResult {
        let word = |key: &str| ActionInput(with).text(key);
        let id = word("id");
        match action {
            // A page of the console gets the secrets of a request only after the audit log has who asks for them.
            "inbox" if who.channel == ApprovalChannel::Console => Ok(self.listed_requests()),
            "inbox" => Ok(self.pending_approvals()),
            "approval" => self.approval_end(id),
            "grants" => Ok(self.grants()),
            "freezes" => Ok(self.freezes()),
            "approve" => self.approve(id, with, who).await,
            "deny" => {
                let reason = Some(word("reason").to_owned());
                decision_result(self.approvals.deny(id, who.clone(), reason).await, id)
            }
            "grants/revoke" if with.get("all").and_then(Value::as_bool) == Some(true) => {
                for grant in self.approvals.grants() {
                    revocation_result(self.approvals.revoke(&grant.id, who).await, &grant.id)?;
                }
                Ok(json!({"ok": true}))
            }
            "grants/revoke" => revocation_result(self.approvals.revoke(id, who).await, id),
            "freeze" => self.freeze(word("what"), word("reason"), who).await,
            "thaw" => self.thaw(word("what"), who).await,
            _ => Err(ActionError::Unknown(format!(
                "there is no action {action:?}"
            ))),
        }
    }

    async fn approve(&self, id: &str, with: &Value, who: &Approver) -> ActionResult {
        let mut yes = ApprovalTerms::default();
        yes.edited_arguments = self.edited_arguments(id, with)?;
        yes.grant = grant_terms(with)?;
        yes.passkey = with.get("passkey").and_then(PasskeyAssertion::read);
        match self.approvals.approve(id, who.clone(), yes).await {
            Ok(ApprovalStatus::Pending) => Ok(json!({"ok": true, "more": true})),
            decided => decision_result(decided.map(|_| ()), id),
        }
    }

    /// Reads the arguments that the approver edited, and validates them against the tool.
    pub(super) fn edited_arguments(
        &self,
        id: &str,
        with: &Value,
    ) -> Result<Option<Json>, ActionError> {
        let Some(text) = with.get("edit").and_then(Value::as_str) else {
            return Ok(None);
        };
        let edit = Json::read(text.as_bytes().to_vec(), &Default::default())
            .map_err(|e| format!("the edited arguments cannot be read: {e}; correct them"))?;
        if let Some(view) = self.approvals.find(id) {
            let route = self.active.snapshot().policies.clone();
            let fits = route.arguments.validate(&view.item, &edit);
            fits.map_err(|e| {
                format!(
                    "the edited arguments do not fit the tool: {}",
                    e.public_message()
                )
            })?;
        }
        Ok(Some(edit))
    }

    async fn freeze(&self, what: &str, reason: &str, who: &Approver) -> ActionResult {
        let what = freeze_scope(what)?;
        let note = self.check_freeze(&what)?;
        let reason = Some(reason.to_owned());
        let froze = self
            .approvals
            .freezes()
            .freeze(what, reason, who.clone())
            .await;
        froze.map_err(|e| e.public_message().to_owned())?;
        Ok(json!({"ok": true, "note": note}))
    }

    async fn thaw(&self, what: &str, who: &Approver) -> ActionResult {
        let thawed = self
            .approvals
            .freezes()
            .thaw(freeze_scope(what)?, who.clone())
            .await
            .map_err(|e| e.public_message().to_owned())?;
        match thawed {
            true => Ok(json!({"ok": true})),
            false => Err(ActionError::Unknown(format!(
                "{what} is not frozen; `toolgate freeze list` shows all freezes"
            ))),
        }
    }

    /// Returns how an approval ended, or `asked` if it is pending.
    fn approval_end(&self, id: &str) -> ActionResult {
        let Some(view) = self.approvals.find(id) else {
            return decision_result(Err(ApprovalError::Unknown), id);
        };
        let (decision, by, reason) = approval_end(&view.status);
        Ok(json!({"decision": decision, "by": by.map(ToString::to_string), "reason": reason}))
    }

    /// Returns the open approval requests: those with a waiting caller first, then by expiry.
    pub(crate) fn open_approvals(&self) -> Vec<ApprovalView> {
        let mut open = self.approvals.list();
        open.retain(|view| view.status == ApprovalStatus::Pending);
        open.sort_by_key(|view| (!view.is_awaited, view.expires_at));
        open
    }

    /// Returns the open approval requests as JSON.
    pub(crate) fn pending_approvals(&self) -> Value {
        self.open_approvals().iter().map(pending).collect()
    }

    pub(crate) fn grants(&self) -> Value {
        let now = self.approvals.now();
        let grants = self.approvals.grants();
        grants.iter().map(|view| grant_json(view, now)).collect()
    }

    pub(crate) fn freezes(&self) -> Value {
        self.approvals.freezes().list().iter().map(freeze).collect()
    }
}

/// Returns the decision on an approval, its approver, and the reason of a denial.
pub(crate) fn approval_end(
    status: &ApprovalStatus,
) -> (&'static str, Option<&Approver>, Option<String>) {
    match status {
        ApprovalStatus::Approved(by) | ApprovalStatus::Spent { by, .. } => {
            ("approved", Some(by), None)
        }
        ApprovalStatus::Denied(by, reason) => ("denied", Some(by), reason.clone()),
        status => (status.as_str(), None, None),
    }
}

fn freeze_scope(what: &str) -> Result<FreezeScope, String> {
    FreezeScope::read(what).ok_or_else(|| {
        format!("{what:?} is not a valid target; use `all`, `caller NAME` or `server ID`")
    })
}

/// Reads `{"remember": true | {"until": ms, "uses": n, "when": "...", "all_callers": true}}`.
fn grant_terms(with: &Value) -> Result<Option<GrantTerms>, String> {
    let how = match with.get("remember") {
        None | Some(Value::Bool(false) | Value::Null) => return Ok(None),
        Some(how) => how,
    };
    let number = |key: &str| match how.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(n) => n
            .as_u64()
            .map(Some)
            .ok_or(format!("\"{key}\" must be a whole number")),
    };
    let until = number("until")?.map(Duration::from_millis);
    let when = how.get("when").and_then(Value::as_str).map(str::trim);
    let mut terms = GrantTerms::default();
    terms.expires_at = until.and_then(|until| UNIX_EPOCH.checked_add(until));
    terms.max_uses = number("uses")?;
    terms.condition = when.filter(|when| !when.is_empty()).map(str::to_owned);
    terms.all_callers = how.get("all_callers").and_then(Value::as_bool) == Some(true);
    Ok(Some(terms))
}

pub(super) fn decision_result(result: Result<(), ApprovalError>, id: &str) -> ActionResult {
    match result {
        Ok(()) => Ok(json!({"ok": true})),
        Err(ApprovalError::Unknown) => Err(ActionError::Unknown(format!(
            "there is no pending approval {id}; `toolgate inbox` lists the pending approvals"
        ))),
        Err(ApprovalError::Decided(standing)) if standing != ApprovalStatus::Revoked => {
            let text = format!("{id} is already decided: {}", standing.as_str());
            Err(ActionError::Refused(text))
        }
        Err(ApprovalError::NotStored(error) | ApprovalError::NotAudited(error)) => {
            Err(ActionError::Refused(error.public_message().to_owned()))
        }
        Err(error) => Err(ActionError::Refused(format!("{id}: {error}"))),
    }
}

fn revocation_result(result: Result<(), ApprovalError>, id: &str) -> ActionResult {
    match result {
        Err(ApprovalError::Unknown) => Err(ActionError::Unknown(format!(
            "there is no grant {id}; `toolgate grants list` lists the remembered approvals"
        ))),
        result => decision_result(result, id),
    }
}

pub(super) fn pending(view: &ApprovalView) -> Value {
    let item = &view.item;
    json!({
        "id": view.id, "call": view.calls.last(), "calls": view.calls, "at": millis(view.requested_at), "expires": millis(view.expires_at), "caller": view.binding.caller.name(),
        "client": view.request_info.client.as_deref(), "server": item.origin.server, "tool": used_name(view), "kind": item.kind().as_str(), "title": item.def.title(),
        "description": item.def.description(), "hints": item_view::hints_json(item.def.annotations()), "claimed": item_view::claimed_hints(item), "trusted": item.origin.trusted,
        "reasons": view.reasons, "arguments_pretty": pretty_json::pretty(&view.arguments), "arguments_raw": view.arguments.as_str(),
        "digest": view.binding.arguments, "schema": item_view::schema(item), "connected": view.is_awaited,
        "own": view.is_local, "may_remember": view.allows_grant, "may_edit": item.kind() == ItemKind::Tool && view.requirement.approvers() <= 1,
        "needs": view.requirement.approvers(), "passkey": view.requirement.passkey, "missing": view.requirement.missing_groups(&view.approvers), "yeses": view.approvers.iter().map(ToString::to_string).collect::<Vec<_>>(), "state": "open",
    })
}

/// Returns the name of the item on its server. For a template or skill it is the URI of the read.
pub(super) fn used_name(view: &ApprovalView) -> String {
    let uri = view.arguments.get("uri").and_then(|uri| uri.string());
    let part = matches!(view.item.kind(), ItemKind::Template | ItemKind::Skill);
    match uri.filter(|_| part) {
        Some(uri) => format!("{}{uri}", Item::RESOURCE_PREFIX),
        None => view.item.local_key(),
    }
}

fn grant_json(grant: &GrantView, now: SystemTime) -> Value {
    json!({
        "id": grant.id, "caller": grant.caller.as_ref().map(|caller| caller.name()), "server": grant.server, "tool": grant.tool,
        "by": grant.approver.to_string(), "made": millis(grant.created_at), "until": millis(grant.expires_at), "uses": grant.max_uses,
        "when": grant.condition, "used": grant.used, "last": grant.last_used.map(millis), "over": grant.end_reason(now),
    })
}

fn freeze(freeze: &FreezeView) -> Value {
    json!({
        "what": freeze.scope.to_string(), "reason": freeze.reason, "by": freeze.by, "since": millis(freeze.frozen_at),
    })
}
