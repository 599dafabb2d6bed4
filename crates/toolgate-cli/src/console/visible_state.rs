//! State of the gateway as a session of the console may see it: without the contents of calls, if its person has no right
//! to them.

use crate::console_roles::{ActionRight, ConsoleRights};
use serde_json::Value;

/// Members that have contents of calls.
const CONTENT_MEMBERS: &[&str] = &[
    "arguments",
    "arguments_pretty",
    "arguments_raw",
    "detail",
    "digest",
    "last",
    "message",
    "preview",
    "progress",
    "reason",
    "reasons",
    "result",
    "trail",
];

/// Returns an event of the console as a person with these rights may see it.
pub(super) fn visible_event(name: &str, event: String, rights: ConsoleRights) -> String {
    let hides = |part| hides(part, rights);
    let is_affected = match name {
        "state" => hides("calls") || hides("pending"),
        part => hides(part),
    };
    if !is_affected {
        return event;
    }
    let mut value: Value = serde_json::from_str(&event).unwrap_or_default();
    match name {
        "state" => hide_state(&mut value, rights),
        _ => hide_contents(&mut value),
    }
    value.to_string()
}

/// Removes from the full state what a person with these rights may not see.
pub(super) fn hide_state(state: &mut Value, rights: ConsoleRights) {
    for part in ["calls", "pending", "tasks"] {
        if hides(part, rights) {
            hide_contents(&mut state[part]);
        }
    }
}

/// Returns whether the person may not see the contents in a part of the state.
fn hides(part: &str, rights: ConsoleRights) -> bool {
    match part {
        "calls" | "tasks" => !rights.allows(ActionRight::Contents),
        "pending" => !rights.allows(ActionRight::Requests),
        _ => false,
    }
}

fn hide_contents(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match CONTENT_MEMBERS.contains(&name.as_str()) {
                    // The page expects a text where there is one.
                    true => {
                        *member = match member {
                            Value::String(_) => Value::from(""),
                            Value::Array(_) => Value::Array(Vec::new()),
                            _ => Value::Null,
                        }
                    }
                    false => hide_contents(member),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(hide_contents),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_person_without_the_right_gets_no_contents_in_any_event() {
        let none = ConsoleRights::default();
        let call = json!({"id": "c", "arguments": "canary", "detail": "canary", "progress": {"message": "canary"}});
        let request = json!({"id": "p", "preview": "canary", "arguments": "canary", "state": "gone", "reason": "canary"});
        let task = json!({"call": "c", "message": "canary"});
        let all = json!({"calls": [call], "pending": [request], "tasks": [task]});
        for (name, event) in [
            ("state", all.clone()),
            ("calls", json!({"rows": [call]})),
            ("pending", json!([request])),
            ("tasks", json!([task])),
        ] {
            let hidden = visible_event(name, event.to_string(), none);
            assert!(!hidden.contains("canary"), "{name}: {hidden}");
            let shown = visible_event(name, event.to_string(), ConsoleRights::all());
            assert_eq!(shown, event.to_string());
        }
    }
}
