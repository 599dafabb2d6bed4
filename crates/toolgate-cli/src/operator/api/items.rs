//! Items as the console lists them: short in the list, whole one by one.

use super::{ActionError, ActionResult, OperatorApi, action_input::ActionInput};
use crate::operator::item_view::{self, ITEM_LISTS};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use toolgate_core::ItemKind;
use toolgate_policy::pins::steering_flags;

/// Characters of a description in the list.
const MAX_LISTED_DESCRIPTION_CHARS: usize = 160;

impl OperatorApi {
    /// Executes an action on items; `None` for any other action.
    pub(super) async fn item_action(&self, action: &str, with: &Value) -> Option<ActionResult> {
        Some(match action {
            "items" => Ok(self.listed_items().await),
            "items/get" => self.find_item(with).await,
            "pins/open" => Ok(self.open_pins()),
            _ => return None,
        })
    }

    /// Returns the numbers of items by list.
    pub(super) async fn item_counts(&self) -> Value {
        let mut counts = json!({"serial": self.items_serial.load(Ordering::Relaxed)});
        for (name, kinds) in ITEM_LISTS {
            let mut count = 0;
            for kind in kinds {
                count += self.known_items(*kind).await.items().len();
            }
            counts[name] = json!(count);
        }
        counts
    }

    /// Returns all items without their schemas.
    async fn listed_items(&self) -> Value {
        let plan = self.active.snapshot();
        let caller = plan.default_caller(self.endpoint.is_some());
        let mut all = Vec::new();
        for kind in ItemKind::ALL {
            let catalog = self.known_items(kind).await;
            let items = catalog.items().iter();
            all.extend(
                items.map(|item| short(item_view::item_json(item, &plan.policies.access, &caller))),
            );
        }
        Value::Array(all)
    }

    async fn find_item(&self, with: &Value) -> ActionResult {
        let word = |key: &str| ActionInput(with).text(key);
        let plan = self.active.snapshot();
        let caller = plan.default_caller(self.endpoint.is_some());
        for kind in ItemKind::ALL
            .into_iter()
            .filter(|kind| kind.as_str() == word("kind"))
        {
            let catalog = self.known_items(kind).await;
            let is = |item: &&std::sync::Arc<toolgate_core::Item>| {
                *item.origin.server == *word("server") && item.local_key() == word("name")
            };
            if let Some(item) = catalog.items().iter().find(is) {
                let mut json = item_view::item_json(item, &plan.policies.access, &caller);
                let flags = steering_flags(item.def.json());
                json["steering"] = flags.iter().map(item_view::steering_json).collect();
                let full = item.full_name();
                json["pinned_open"] = json!(!plan.pins.find(&full).is_empty());
                return Ok(json);
            }
        }
        Err(ActionError::Unknown(format!(
            "there is no {} {:?} of the server {:?} any more; reload the page",
            word("kind"),
            word("name"),
            word("server")
        )))
    }
}

/// Returns an item as the list shows it.
fn short(mut item: Value) -> Value {
    let actions: Vec<Value> = item["notes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|note| note["action"].clone())
        .collect();
    if let Some(all) = item.as_object_mut() {
        for name in [
            "input_schema",
            "output_schema",
            "notes",
            "mime",
            "pin",
            "trusted",
        ] {
            all.remove(name);
        }
        let description = all.get("description").and_then(Value::as_str);
        let description: String = description
            .unwrap_or_default()
            .chars()
            .take(MAX_LISTED_DESCRIPTION_CHARS)
            .collect();
        all.insert("description".to_owned(), json!(description));
        let mut actions = actions;
        actions.dedup();
        all.insert("actions".to_owned(), Value::Array(actions));
    }
    item
}
