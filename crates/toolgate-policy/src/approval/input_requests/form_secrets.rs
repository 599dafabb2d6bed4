//! Detection of elicitation forms that ask for secrets.

use super::{
    secret_words::{TextLocation, find_secret},
    warnings::{refers_back, without_warnings},
};
use toolgate_core::Json;
use toolgate_protocol::json::JsonKind;

/// Maximum depth of schema traversal; forms are flat.
const MAX_FORM_SCHEMA_DEPTH: usize = 8;

/// Returns the secret that a form asks for, and its location: a field, or the message if a field accepts free text.
pub(super) fn find_secret_request(params: &Json) -> Option<(String, &'static str)> {
    let mut seen = SecretScan::default();
    if let Some(schema) = params.get("requestedSchema") {
        seen.scan_schema("", &schema, MAX_FORM_SCHEMA_DEPTH);
    }
    if let Some(message) = params.get("message").and_then(|message| message.string()) {
        let asked = seen.scan_text(&message, TextLocation::Prose);
        if seen.takes_text && seen.found.is_none() {
            seen.found = asked.map(|what| ("its message".to_owned(), what));
        }
    }
    // Another text may ask for the secret of a warning by referring back to it.
    let referred = seen
        .warned
        .filter(|_| seen.takes_text && refers_back(&seen.rest));
    seen.found
        .or(referred.map(|what| ("a text that refers back to a warning".to_owned(), what)))
}

#[derive(Default)]
struct SecretScan {
    /// True if a field accepts free text or a number.
    takes_text: bool,
    found: Option<(String, &'static str)>,
    /// A secret that only a warning mentions.
    warned: Option<&'static str>,
    /// All texts, without their warnings.
    rest: String,
}

impl SecretScan {
    /// Returns the secret that a text asks for, outside of its warnings.
    fn scan_text(&mut self, text: &str, place: TextLocation) -> Option<&'static str> {
        let rest = without_warnings(text);
        self.rest.push_str(rest.as_deref().unwrap_or(text));
        self.rest.push('\n');
        let named = find_secret(text, place)?;
        let Some(rest) = rest else {
            return Some(named);
        };
        self.warned = Some(named);
        find_secret(&rest, place)
    }

    fn scan_schema(&mut self, name: &str, schema: &Json, depth: usize) {
        if self.found.is_some() || depth == 0 {
            return;
        }
        for (name, field) in schema.get("properties").iter().flat_map(Json::members) {
            self.scan_schema(&name, &field, depth - 1);
        }
        if let Some(items) = schema.get("items") {
            self.scan_schema(name, &items, depth - 1);
        }
        for key in ["allOf", "anyOf", "oneOf"] {
            for part in schema.get(key).iter().flat_map(Json::items) {
                self.scan_schema(name, &part, depth - 1);
            }
        }
        let text = |key: &str| schema.get(key).and_then(|text| text.string());
        if !accepts_free_text(schema) {
            let texts = ["title", "description"].into_iter().filter_map(text);
            self.rest.extend(texts.map(|text| text + "\n"));
            return;
        }
        self.takes_text = true;
        let titled = text("title").and_then(|title| self.scan_text(&title, TextLocation::Name));
        let told = text("description").and_then(|told| self.scan_text(&told, TextLocation::Prose));
        let hidden = || {
            text("format")
                .filter(|format| format == "password")
                .map(|_| "password")
        };
        let found = find_secret(name, TextLocation::Name)
            .or(titled)
            .or(told)
            .or_else(hidden);
        self.found = found.map(|what| {
            (
                format!("the field {:?}", crate::humanize::printable(name)),
                what,
            )
        });
    }
}

/// Reports whether a field accepts free input, unlike a choice or a boolean.
fn accepts_free_text(field: &Json) -> bool {
    let fixed = |one: &Json| ["enum", "const"].iter().any(|key| one.get(key).is_some());
    let choice = |key| {
        let parts: Option<Json> = field.get(key);
        parts.is_some_and(|parts| parts.items().all(|part| fixed(&part)))
    };
    let whole = field.get("items").is_some() || field.get("properties").is_some();
    let kind = field.get("type");
    let kinds: Vec<String> = match &kind {
        Some(kinds) if kinds.kind() == JsonKind::Array => {
            kinds.items().filter_map(|k| k.string()).collect()
        }
        kind => kind.iter().filter_map(Json::string).collect(),
    };
    let open = kinds.is_empty()
        || kinds
            .iter()
            .any(|kind| matches!(kind.as_str(), "string" | "number" | "integer"));
    open && !whole && !fixed(field) && !choice("oneOf") && !choice("anyOf")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn found(message: &str, fields: Value) -> Option<String> {
        let params = json!({"message": message, "requestedSchema": {"type": "object", "properties": fields}});
        find_secret_request(&Json::from_value(&params)).map(|(at, what)| format!("{at}: {what}"))
    }

    #[test]
    fn t51_a_secret_is_found_by_name_title_description_format_and_message() {
        let one = |field: Value| found("Hello", json!({"answer": field}));
        assert_eq!(
            found("Hello", json!({"password": {"type": "string"}})).unwrap(),
            "the field \"password\": password"
        );
        assert!(one(json!({"type": "string", "title": "API key"})).is_some());
        assert!(one(json!({"type": "string", "description": "Enter your token"})).is_some());
        assert!(one(json!({"type": "string", "format": "password"})).is_some());
        assert!(one(json!({"type": "integer", "title": "PIN"})).is_some());
        assert!(
            one(json!({"title": "PIN"})).is_some(),
            "a field of no type takes all"
        );
        assert!(one(json!({"type": ["string", "null"], "title": "PIN"})).is_some());
        assert!(one(json!({"anyOf": [{"type": "string"}], "title": "Password"})).is_some());
        assert!(
            one(json!({"type": "object", "properties": {"pin": {"type": "string"}}})).is_some()
        );
        assert!(
            one(json!({"type": "array", "items": {"type": "string", "title": "Password"}}))
                .is_some()
        );
        assert_eq!(
            found("Enter your password", json!({"answer": {"type": "string"}})).unwrap(),
            "its message: password"
        );
    }

    #[test]
    fn t51_a_field_may_warn() {
        let field = |description: &str| json!({"type": "string", "description": description});
        let warning = field("Do not give us your PIN");
        assert_eq!(found("What happened?", json!({"comment": warning})), None);
        let titled = json!({"type": "string", "title": "Comment (no passwords)"});
        assert_eq!(found("What happened?", json!({"comment": titled})), None);
        assert_eq!(
            found(
                "Never enter your password.",
                json!({"comment": {"type": "string"}})
            ),
            None
        );
        // A warning does not excuse a field name, another field, or a text that refers back to it.
        for (message, fields) in [
            ("Hello", json!({"pin": warning})),
            ("Hello", json!({"a": warning, "b": field("Your password")})),
            ("Enter it below", json!({"a": warning})),
            (
                "Hello",
                json!({"a": warning, "b": field("Here you enter it")}),
            ),
            (
                "Hello",
                json!({"a": warning, "b": {"type": "boolean", "title": "Put it above"}}),
            ),
            ("Enter your PIN", json!({"a": warning})),
            (
                "Hello",
                json!({"a": field("Do not give us your PIN, enter your password")}),
            ),
        ] {
            assert!(
                found(message, fields.clone()).is_some(),
                "{message} {fields}"
            );
        }
    }

    #[test]
    fn t51_a_choice_takes_no_secret() {
        for field in [
            json!({"type": "boolean", "title": "Reset the password?"}),
            json!({"type": "string", "enum": ["password", "key"], "title": "Password or key?"}),
            json!({"type": "string", "oneOf": [{"const": "a", "title": "Password"}], "title": "Password"}),
            json!({"type": "array", "items": {"type": "string", "enum": ["a"]}, "title": "Tokens"}),
        ] {
            assert_eq!(
                found("Your password expired", json!({"password": field})),
                None,
                "{field}"
            );
        }
        assert_eq!(
            found("What is your name?", json!({"name": {"type": "string"}})),
            None
        );
    }
}
