//! Operator's view of the items that servers offer, each with its rule decision.

use serde_json::{Map, Value, json};
use toolgate_core::{Caller, Item, ItemKind, ItemNote, NoteAction, ToolAnnotations};
use toolgate_policy::{AccessRules, RuleAction, SecretRedactor, pins::SteeringFlag};
use toolgate_protocol::dialect::{self, Dialect};

/// Names of the lists in the console and on the control socket, with the item kinds in each.
pub(crate) const ITEM_LISTS: [(&str, &[ItemKind]); 3] = [
    ("tools", &[ItemKind::Tool]),
    (
        "resources",
        &[ItemKind::Resource, ItemKind::Template, ItemKind::Skill],
    ),
    ("prompts", &[ItemKind::Prompt]),
];

/// Renders one item for the console and the terminal.
pub(crate) fn item_json(item: &Item, access: &AccessRules, caller: &Caller) -> Value {
    let (then, rule) = access.action_for_item(caller, item);
    let hints = item.def.annotations();
    // The client's name derives from the name on the server. A sanitizer may have removed characters from that one.
    let named = |name: &str| match item.withheld.is_some() && name == item.def.name() {
        true => item.local_key(),
        false => name.to_owned(),
    };
    json!({
        "kind": item.kind().as_str(), "server": item.origin.server, "name": item.local_key(), "wire": named(item.def.name()),
        "title": named(&item.def.title()), "description": item.def.description(), "verdict": action_name(then), "rule": rule,
        "hints": hints_json(hints), "claimed": claimed_hints(item), "trusted": item.origin.trusted, "withheld": withheld(item), "pin": toolgate_policy::pins::state(item),
        "notes": notes(item),
        "flags": review_flags(item),
        "mime": item.def.json().get("mimeType").and_then(|mime| mime.string()),
        "input_schema": schema(item), "output_schema": item.def.output_schema().map(|s| s.to_value()),
    })
}

/// Renders a text of a definition that may steer a model, with secrets removed.
pub(crate) fn steering_json(flag: &SteeringFlag) -> Value {
    json!({
        "kind": flag.kind.as_str(), "weight": flag.kind.weight(), "place": SecretRedactor::redact_for_display(&flag.place),
        "text": SecretRedactor::redact_for_display(&flag.text),
    })
}

/// Returns the flags of an item, such as a name that looks like another one, with secrets removed.
pub(crate) fn review_flags(item: &Item) -> Vec<String> {
    let flags = item.pin.iter().flat_map(|pin| &pin.review_flags);
    let shown = flags.map(|flag| SecretRedactor::redact_for_display(flag).into_owned());
    shown.collect()
}

/// Renders the notes of an item: its repairs, its unchecked parts, and the revisions whose clients do not get it.
fn notes(item: &Item) -> Value {
    let note = |note: &ItemNote| json!({"action": note.action.as_str(), "reason": note.reason});
    // Cached for each item, because it writes the definition in all protocol revisions.
    let left_out = item.cached(|item| {
        let why = |dialect: &&Dialect| {
            let why = dialect.definition(&item.def).err()?;
            let reason = format!(
                "withheld from clients with revision {}: {why}",
                dialect.revision
            );
            Some(ItemNote::new(NoteAction::Withheld, &reason))
        };
        let all = dialect::ALL.iter().filter_map(why);
        all.collect::<Vec<ItemNote>>()
    });
    item.notes.iter().chain(left_out.iter()).map(note).collect()
}

/// Returns the reason for which callers do not get the item.
fn withheld(item: &Item) -> Option<&str> {
    item.withheld
        .as_deref()
        .or(toolgate_policy::pins::hidden_reason(item))
}

/// Returns the input schema of an item: for a prompt its arguments, for a resource its URI.
pub(crate) fn schema(item: &Item) -> Value {
    match item.kind() {
        ItemKind::Tool => item.def.input_schema().to_value(),
        ItemKind::Resource | ItemKind::Template | ItemKind::Skill => {
            json!({"type": "object", "properties": {"uri": {"type": "string"}}, "required": ["uri"]})
        }
        ItemKind::Prompt => prompt_schema(item),
    }
}

fn prompt_schema(item: &Item) -> Value {
    let list = item.def.json().get("arguments");
    let list: Vec<Value> = list
        .map(|list| list.items().map(|one| one.to_value()).collect())
        .unwrap_or_default();
    let name = |argument: &Value| argument["name"].as_str().unwrap_or_default().to_owned();
    let property = |argument: &Value| {
        let about = json!({"type": "string", "description": argument["description"]});
        (name(argument), about)
    };
    let properties: Map<String, Value> = list.iter().map(property).collect();
    let required = list.iter().filter(|argument| argument["required"] == true);
    let required: Vec<String> = required.map(name).collect();
    json!({"type": "object", "properties": properties, "required": required})
}

pub(crate) fn hints_json(hints: ToolAnnotations) -> Value {
    json!({
        "readOnly": hints.read_only, "destructive": hints.destructive, "idempotent": hints.idempotent, "openWorld": hints.open_world,
    })
}

/// Returns the names of the annotations that the server states. The others have the defaults of the specification.
pub(crate) fn claimed_hints(item: &Item) -> Vec<&'static str> {
    let names = [
        ("readOnly", "readOnlyHint"),
        ("destructive", "destructiveHint"),
        ("idempotent", "idempotentHint"),
        ("openWorld", "openWorldHint"),
    ];
    names
        .into_iter()
        .filter(|(_, key)| claimed_hint(item, key).is_some())
        .map(|(name, _)| name)
        .collect()
}

/// Returns an annotation as the server states it, such as `destructiveHint`.
pub(crate) fn claimed_hint(item: &Item, key: &str) -> Option<bool> {
    item.def.json().get("annotations")?.get(key)?.bool()
}

fn action_name(then: RuleAction) -> &'static str {
    match then {
        RuleAction::Allow => "allow",
        RuleAction::Ask => "ask",
        RuleAction::Deny => "deny",
    }
}
