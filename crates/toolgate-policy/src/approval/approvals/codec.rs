//! Storage format of approvals.

use super::{ApprovalBinding, ApprovalRequirement, ApprovalStatus, Approver};
use crate::{
    digest,
    passkeys::PasskeyAssertion,
    unix_time::{self, to_unix_millis},
};
use serde_json::{Value, json};
use std::{sync::Arc, time::SystemTime};
use toolgate_core::{
    Caller, CallerAttributes, Definition, Item, ItemKind, Json, Origin, RequestInfo,
};
use toolgate_protocol::json::JsonLimits;

/// Table of the store.
pub(super) const APPROVALS_TABLE: &str = "approvals";

/// The stored part of an approval.
#[derive(Clone, Debug)]
pub(super) struct StoredApproval {
    pub(super) binding: ApprovalBinding,
    pub(super) item: Arc<Item>,
    pub(super) arguments: Json,
    pub(super) reasons: Vec<String>,
    pub(super) request_info: Arc<RequestInfo>,
    /// Id of the first call that requested the approval.
    pub(super) call: Arc<str>,
    pub(super) requested_at: SystemTime,
    pub(super) expires_at: SystemTime,
    /// Required approvers.
    pub(super) requirement: ApprovalRequirement,
    /// Approvers so far.
    pub(super) approvers: Vec<Approver>,
    /// Signature of each approver, if the requirement asks for passkeys.
    pub(super) assertions: Vec<PasskeyAssertion>,
    /// Arguments as edited by an approver.
    pub(super) edited_arguments: Option<Json>,
    /// Status. The clock can end an approval before its row says so; the process that writes the end first records it.
    pub(super) status: ApprovalStatus,
}

impl StoredApproval {
    pub(super) fn json(&self) -> Value {
        let (binding, item, seen) = (&self.binding, &self.item, &self.request_info);
        let signatures: Vec<Value> = self.assertions.iter().map(PasskeyAssertion::json).collect();
        let mut value = json!({
            "caller": binding.caller.name(), "holder": binding.generation, "view": binding.caller.view(), "attributes": stored_attributes(&binding.caller), "server": &*binding.server, "tool": binding.tool,
            "definition": binding.definition, "arguments": binding.arguments, "policy": &*binding.policy,
            "text": self.arguments.as_str(), "edit": self.edited_arguments.as_ref().map(Json::as_str),
            "item": {"kind": item.kind().as_str(), "def": item.def.json().as_str(), "local": item.local_name, "trusted": item.origin.trusted},
            "seen": {"revision": seen.revision, "transport": seen.transport, "client": seen.client.as_deref(), "request": seen.request},
            "reasons": self.reasons, "call": &*self.call, "asked": to_unix_millis(self.requested_at), "expires": to_unix_millis(self.expires_at),
            "needs": self.requirement.json(), "yeses": self.approvers.iter().map(Approver::json).collect::<Vec<_>>(), "standing": self.status.json(),
        });
        if !signatures.is_empty() {
            value["signatures"] = Value::Array(signatures);
        }
        value
    }

    /// Reads an approval from the store.
    ///
    /// Returns `None` if the row is malformed or its parts are inconsistent. The approval is ignored then, and the call
    /// requests a new one.
    pub(super) fn read(value: &Value) -> Option<StoredApproval> {
        let text = |key: &str| value.get(key)?.as_str();
        let caller = stored_caller(text("caller")?, value);
        let binding = ApprovalBinding {
            generation: caller.generation(),
            caller,
            server: text("server")?.into(),
            tool: text("tool")?.to_owned(),
            definition: text("definition")?.to_owned(),
            arguments: text("arguments")?.to_owned(),
            policy: text("policy")?.into(),
        };
        let yeses = value.get("yeses")?.as_array()?.iter().map(Approver::read);
        let reasons = value.get("reasons")?.as_array()?.iter();
        let signatures = value.get("signatures").and_then(Value::as_array);
        let signatures = signatures.map(Vec::as_slice).unwrap_or_default().iter();
        let kept = StoredApproval {
            item: Arc::new(item(value.get("item")?, &binding)?),
            arguments: arguments(text("text")?)?,
            edited_arguments: match value.get("edit")? {
                Value::Null => None,
                edit => Some(arguments(edit.as_str()?)?),
            },
            reasons: reasons
                .map(|r| Some(r.as_str()?.to_owned()))
                .collect::<Option<_>>()?,
            request_info: Arc::new(seen(value.get("seen")?)?),
            call: text("call")?.into(),
            requested_at: read_unix_millis(value.get("asked")?)?,
            expires_at: read_unix_millis(value.get("expires")?)?,
            requirement: ApprovalRequirement::read(value.get("needs")?)?,
            approvers: yeses.collect::<Option<_>>()?,
            assertions: signatures
                .map(PasskeyAssertion::read)
                .collect::<Option<_>>()?,
            status: ApprovalStatus::read(value.get("standing")?)?,
            binding,
        };
        kept.is_consistent().then_some(kept)
    }

    /// Checks that the displayed arguments and definition match the digests of the binding.
    fn is_consistent(&self) -> bool {
        let binding = &self.binding;
        let approved = matches!(
            self.status,
            ApprovalStatus::Approved(_) | ApprovalStatus::Spent { .. }
        );
        digest::of_json(&self.arguments) == binding.arguments
            && digest::definition(&self.item).as_str() == binding.definition
            && self.item.local_key() == binding.tool
            && (!self.requirement.passkey || self.assertions.len() == self.approvers.len())
            && (!approved || self.requirement.is_met_by(&self.approvers))
    }
}

fn arguments(text: &str) -> Option<Json> {
    // The limits were enforced when the arguments arrived.
    let limits = JsonLimits {
        bytes: usize::MAX,
        depth: 1024,
        keys: usize::MAX,
        elements: usize::MAX,
    };
    Json::read(text.as_bytes().to_vec(), &limits).ok()
}

fn item(value: &Value, binding: &ApprovalBinding) -> Option<Item> {
    let text = |key: &str| value.get(key)?.as_str();
    let word = text("kind")?;
    let kind = ItemKind::ALL
        .into_iter()
        .find(|kind| kind.as_str() == word)?;
    let def = Definition::read(kind, arguments(text("def")?)?).ok()?;
    let origin = Origin {
        server: binding.server.clone(),
        trusted: value.get("trusted")?.as_bool()?,
    };
    let mut item = Item::new(origin, def);
    item.local_name = text("local")?.to_owned();
    Some(item)
}

fn seen(value: &Value) -> Option<RequestInfo> {
    let text = |key: &str| Some(value.get(key)?.as_str()?.to_owned());
    let transport = value.get("transport")?.as_str()?;
    let known = ["http", "stdio", "console", "terminal"];
    let mut info = RequestInfo::default();
    info.revision = text("revision")?.into();
    info.transport = known.into_iter().find(|t| *t == transport).unwrap_or("");
    info.client = text("client").map(Into::into);
    info.request = text("request");
    Some(info)
}

/// Reads a time in Unix milliseconds.
pub(super) fn read_unix_millis(value: &Value) -> Option<SystemTime> {
    unix_time::from_unix_millis(value.as_u64()?)
}

/// Returns the groups, roles and claims of a caller for a row; `None` if it has none.
fn stored_attributes(caller: &Caller) -> Option<Value> {
    let attributes = caller.attributes();
    (!attributes.is_empty()).then(|| attributes.to_value())
}

/// Returns the caller of a stored row, with its key generation and its view if it has one.
pub(super) fn stored_caller(name: &str, row: &Value) -> Caller {
    let caller = Caller::new(name);
    let caller = match row["holder"].as_u64() {
        Some(holder) => caller.with_generation(holder),
        None => caller,
    };
    let caller = match row.get("attributes") {
        Some(attributes) => caller.with_attributes(CallerAttributes::from_value(attributes)),
        None => caller,
    };
    match row["view"].as_str() {
        Some(view) => caller.in_view(view),
        None => caller,
    }
}
