//! Requests for approval as the console shows them: with masked secrets, the last approved call, and proposed conditions.

use super::{ActionError, ActionResult, OperatorApi, decisions};
use crate::{
    operator::{grant_conditions, item_view, masked_arguments::MaskedArguments},
    pretty_json,
    timestamp::millis,
};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};
use toolgate_core::{Item, ItemKind, Json};
use toolgate_journal::{AuditEntry, AuditEvent};
use toolgate_policy::{ApprovalStatus, ApprovalView, Approver, sanitize_entry};

/// Maximum length of the arguments in the list of requests, in bytes. The page gets longer ones with the details.
const MAX_LISTED_ARGUMENT_BYTES: usize = 2048;
/// Characters of longer arguments in the list.
const MAX_PREVIEW_CHARS: usize = 200;
/// Maximum number of recent calls of the caller beside a request.
const MAX_RECENT_CALLS: usize = 5;

/// Requests as the console got them last: by id, the digest of what was sent.
pub(crate) type SentRequests = HashMap<String, u64>;

impl OperatorApi {
    /// Executes an action on requests for approval; `None` for any other action.
    pub(super) async fn request_action(
        &self,
        action: &str,
        with: &Value,
        who: &Approver,
    ) -> Option<ActionResult> {
        let id = with.get("id").and_then(Value::as_str).unwrap_or_default();
        Some(match action {
            "requests/get" => self.find_request(id).map(|view| self.request_detail(&view)),
            "requests/conditions" => self
                .find_request(id)
                .map(|view| self.proposed_conditions(&view)),
            "requests/reveal" => self.reveal_request(id, who).await,
            "requests/look" => {
                let page = with.get("page").and_then(Value::as_u64).unwrap_or_default();
                if self
                    .presence
                    .look(page, who, Some(id).filter(|id| !id.is_empty()))
                {
                    self.send_presence();
                }
                Ok(json!({"ok": true}))
            }
            _ => return None,
        })
    }

    fn find_request(&self, id: &str) -> Result<ApprovalView, ActionError> {
        let found = self.approvals.find(id);
        found.ok_or_else(|| {
            ActionError::Unknown(format!(
                "there is no pending approval {id}; it may have ended, reload the page"
            ))
        })
    }

    /// Returns the open requests as the console lists them.
    pub(crate) fn listed_requests(&self) -> Value {
        self.open_approvals().iter().map(listed_request).collect()
    }

    /// Returns the open requests with their details, and with masked secrets.
    pub(crate) fn detailed_requests(&self) -> Value {
        let open = self.open_approvals();
        open.iter().map(|view| self.request_detail(view)).collect()
    }

    /// Returns a request with everything that the console shows of it.
    fn request_detail(&self, view: &ApprovalView) -> Value {
        let masked = MaskedArguments::new(&view.item, &view.arguments);
        let mut all = listed_request(view);
        let arguments = Json::read(masked.text.clone().into_bytes(), &Default::default());
        let pretty =
            arguments.map_or_else(|_| masked.text.clone(), |json| pretty_json::pretty(&json));
        let more = json!({
            "description": view.item.def.description(), "reasons": view.reasons, "calls": view.calls,
            "schema": item_view::schema(&view.item), "arguments_raw": masked.text, "arguments_pretty": pretty,
            "last": self.last_approved.of(&view.item), "recent": self.feed.recent_of(view.binding.caller.name(), MAX_RECENT_CALLS),
            "pin": toolgate_policy::pins::state(&view.item), "flags": item_view::review_flags(&view.item),
        });
        if let (Some(all), Value::Object(more)) = (all.as_object_mut(), more) {
            all.extend(more);
        }
        all
    }

    /// Returns the exact arguments of a request, after the audit log has who asked to see them.
    async fn reveal_request(&self, id: &str, who: &Approver) -> ActionResult {
        let view = self.find_request(id)?;
        let entry = AuditEntry::new(AuditEvent::from("reveal"))
            .with("approval", id)
            .with("caller", view.binding.caller.name())
            .with("srv", &*view.item.origin.server)
            .with("tool", view.item.full_name());
        let entry = who.add_to(entry);
        let recorded = self.journal.append(sanitize_entry(entry)).await;
        recorded.map_err(|error| {
            format!("the secrets stay masked, because the audit log cannot record who sees them: {error}")
        })?;
        Ok(json!({
            "arguments_raw": view.arguments.as_str(), "arguments_pretty": pretty_json::pretty(&view.arguments),
        }))
    }

    /// Proposes conditions for remembering an approval, each with the past calls that it covers.
    fn proposed_conditions(&self, view: &ApprovalView) -> Value {
        let past = self.feed.arguments_of(&view.item);
        let masked = MaskedArguments::new(&view.item, &view.arguments).text;
        let masked = Json::read(masked.into_bytes(), &Default::default());
        let when = masked.map_or_else(
            |_| Vec::new(),
            |masked| grant_conditions::propose(&view.item, &masked),
        );
        let count = |when: &str| grant_conditions::count_covered(when, &view.item, &past);
        json!({
            "past": past.len(),
            "conditions": when.iter().map(|when| json!({"when": when, "covered": count(when)})).collect::<Vec<_>>(),
        })
    }

    /// Sends requests that are new, changed, or settled since the last time.
    pub(crate) fn send_requests(&self, open: &[ApprovalView], sent: &mut SentRequests) {
        let mut now = SentRequests::new();
        let mut changed = Vec::new();
        for view in open {
            let listed = listed_request(view);
            let digest = digest_of(&listed);
            if sent.get(&*view.id) != Some(&digest) {
                changed.push(listed);
            }
            now.insert(view.id.to_string(), digest);
        }
        for gone in sent.keys().filter(|id| !now.contains_key(*id)) {
            changed.push(self.settled_request(gone));
        }
        *sent = now;
        if !changed.is_empty() {
            self.feed.send_with("pending", || Value::Array(changed));
        }
        self.feed.send_with("grants", || self.grants());
        self.feed.send_with("freezes", || self.freezes());
        self.cancel_settled();
    }

    /// Returns the end of a request, and keeps the call if it was approved.
    fn settled_request(&self, id: &str) -> Value {
        let Some(view) = self.approvals.find(id) else {
            return json!({"id": id, "state": "gone"});
        };
        let (decision, by, reason) = decisions::approval_end(&view.status);
        if let (ApprovalStatus::Approved(_) | ApprovalStatus::Spent { .. }, Some(by)) =
            (&view.status, by)
        {
            self.last_approved.keep(&view, by);
        }
        json!({"id": id, "state": "gone", "decided": decision, "by": by.map(ToString::to_string), "reason": reason})
    }

    /// Sends which pages look at which request.
    pub(crate) fn send_presence(&self) {
        self.feed.send_with("presence", || self.presence.json());
    }
}

/// Returns a request as the console lists it: without schema, description and long arguments.
fn listed_request(view: &ApprovalView) -> Value {
    let item = &view.item;
    let masked = MaskedArguments::new(item, &view.arguments);
    let short = masked.text.len() <= MAX_LISTED_ARGUMENT_BYTES;
    json!({
        "id": view.id, "call": view.calls.last(), "at": millis(view.requested_at), "expires": millis(view.expires_at),
        "caller": view.binding.caller.name(), "client": view.request_info.client.as_deref(), "server": item.origin.server,
        "tool": decisions::used_name(view), "kind": item.kind().as_str(), "title": item.def.title(),
        "hints": item_view::hints_json(item.def.annotations()), "claimed": item_view::claimed_hints(item), "trusted": item.origin.trusted,
        "arguments": short.then_some(&masked.text), "preview": (!short).then(|| masked.text.chars().take(MAX_PREVIEW_CHARS).collect::<String>()), "arguments_bytes": masked.text.len(), "masked": masked.masked,
        "digest": view.binding.arguments, "connected": view.is_awaited, "own": view.is_local, "may_remember": view.allows_grant,
        "may_edit": item.kind() == ItemKind::Tool && view.requirement.approvers() <= 1, "needs": view.requirement.approvers(), "passkey": view.requirement.passkey, "missing": view.requirement.missing_groups(&view.approvers),
        "yeses": view.approvers.iter().map(ToString::to_string).collect::<Vec<_>>(), "state": "open",
        "must_type": must_type(item),
    })
}

/// Returns whether an approver has to type the name of the tool: the server says that it destroys something. A tool
/// without annotations counts as destructive elsewhere, but says nothing here.
fn must_type(item: &Item) -> bool {
    item.kind() == ItemKind::Tool && item_view::claimed_hint(item, "destructiveHint") == Some(true)
}

fn digest_of(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.to_string().hash(&mut hasher);
    hasher.finish()
}
