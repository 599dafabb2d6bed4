//! The answers of the user, of the model and of the client: always yes.

use serde_json::{Map, Value, json};
use toolgate::{Ask, AskKind, Json};

/// The answer to a question.
pub(crate) fn to(ask: &Ask) -> (String, Json) {
    let answer = match &ask.kind {
        AskKind::Elicit(params) => json!({"action": "accept", "content": form(&params.to_value())}),
        AskKind::Sample(_) => json!({
            "role": "assistant",
            "content": {"type": "text", "text": "yes"},
            "model": "fixture",
            "stopReason": "endTurn",
        }),
        AskKind::Roots => json!({"roots": []}),
        // No server can ask this.
        AskKind::Approve(_) => json!({"action": "decline"}),
    };
    (ask.key.clone(), Json::from_value(&answer))
}

/// A form as a user leaves it who only clicks: defaults stay, and boxes are ticked.
fn form(params: &Value) -> Value {
    let fields = params["requestedSchema"]["properties"].as_object();
    let filled = fields.into_iter().flatten().filter_map(|(name, field)| {
        let value = match &field["default"] {
            Value::Null if field["type"] == "boolean" => Value::Bool(true),
            Value::Null => return None,
            default => default.clone(),
        };
        Some((name.clone(), value))
    });
    filled.collect::<Map<String, Value>>().into()
}
