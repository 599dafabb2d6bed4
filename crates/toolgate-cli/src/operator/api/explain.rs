//! Dry run of a call, step by step. Nothing is called, recorded, asked or counted.

use super::{ActionError, ActionResult, OperatorApi};
use crate::runtime::{
    dry_run::{self, ExplainRequest, ResolvedItem},
    stated_caller::StatedCaller,
};
use serde_json::{Value, json};
use toolgate_core::{CallerAttributes, Item, ItemKind, ListRequest, PinState};

impl OperatorApi {
    /// Explains a call without executing it.
    pub(super) async fn explain(&self, with: &Value) -> ActionResult {
        let word = |key: &str| with.get(key).and_then(Value::as_str);
        let name = word("tool").unwrap_or_default();
        let plan = self.active.snapshot();
        if let Some(caller) = word("caller")
            && let Err(why) = plan.config.auth.check_caller_name(caller)
        {
            return Ok(json!({ "no_caller": why }));
        }
        let stated = StatedCaller::read(with);
        let anonymous = plan.default_caller(self.endpoint.is_some());
        let caller = stated.caller(anonymous.name(), |name| self.key_attributes(name));
        let asked = ExplainRequest::parse(name, caller.clone(), word("text"))?;
        let mut found = self.resolve_item(name).await?;
        if is_new(&found.item) {
            // A list on behalf of the caller pins definitions on first sight, as any of the caller's own lists would.
            let list = ListRequest::all(caller, found.item.kind());
            let _ = plan.service.list(list).await;
            found = self.resolve_item(name).await?;
        }
        let call = asked.into_call(&found);
        let item = found.item;
        let pipeline = plan.policies.over(plan.servers.clone());
        let mut way = pipeline.explain(&call, &item).await;
        let needs = dry_run::add_authentication(&mut way, &plan.config, &call, &item);
        Ok(dry_run::to_json(&way, &needs))
    }

    /// Returns the groups of the caller with an API key; empty for other callers.
    fn key_attributes(&self, caller: &str) -> CallerAttributes {
        let keys = self.approvals.freezes().keys();
        let name = caller.strip_prefix("key:");
        name.map(|name| CallerAttributes::clone(&keys.attributes(name)))
            .unwrap_or_default()
    }

    /// Resolves a full name or a client's name to an item, whether or not a caller may see it.
    async fn resolve_item(&self, name: &str) -> Result<ResolvedItem, ActionError> {
        for fresh in [false, true] {
            if fresh {
                // A server may just have started, so list all servers again.
                self.list_servers().await;
            }
            let mut catalogs = Vec::new();
            for kind in ItemKind::ALL {
                catalogs.push((kind, self.known_items(kind).await));
            }
            if let Some(found) = dry_run::resolve_name(&catalogs, name) {
                return Ok(found);
            }
        }
        Err(ActionError::Unknown(format!(
            "there is no item {name:?}; `toolgate tools`, `resources` and `prompts` list all items"
        )))
    }
}

/// Returns whether the definition is new and hidden.
fn is_new(item: &Item) -> bool {
    let pin = item.pin.as_ref();
    pin.is_some_and(|pin| pin.state == PinState::New && pin.hidden_reason.is_some())
}
