//! A form that a server wants filled in.

use serde_json::{Map, Value};
use toolgate_core::Json;
use toolgate_wire::json::ObjectWriter;

/// A form that a server wants its user to fill in.
///
/// Show who asks, and offer to decline and to close it. A form is never the place for a secret.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Form {
    /// The server that asks, as this client calls it.
    pub server: String,
    /// What it wants to know. Foreign text: cleaned, not checked.
    pub message: String,
    /// The fields: a flat object schema of texts, numbers, booleans and choices.
    pub schema: Value,
}

impl Form {
    /// Reads the parameters of `elicitation/create`.
    pub(super) fn read(server: &str, params: &Json) -> Option<Form> {
        let schema = params.get("requestedSchema")?.to_value();
        schema.is_object().then_some(Form {
            server: server.to_owned(),
            message: params.get("message")?.string()?,
            schema,
        })
    }

    /// What the server suggests: the fields that have a default, filled in with it.
    ///
    /// Members that an answer leaves out are taken from here.
    pub fn defaults(&self) -> Value {
        Value::Object(self.fill(Map::new()))
    }

    /// Whether an answer, with the defaults of the form, fits the form. Answers are checked before they are sent; with
    /// this they can be checked while the form is still open.
    pub fn fits(&self, answer: &Value) -> bool {
        self.complete(answer.clone()).is_ok()
    }

    /// The answer with the defaults of the fields that it left out.
    ///
    /// # Errors
    /// Why it does not fit. A field that the form does not name does not.
    pub(super) fn complete(&self, answer: Value) -> Result<Value, String> {
        let given = match answer {
            Value::Object(given) => given,
            Value::Null => Map::new(),
            _ => return Err("expected an object with the fields".to_owned()),
        };
        let whole = Value::Object(self.fill(given));
        toolgate_policy::check_form_answer(&Json::from_value(&self.schema), &whole)?;
        Ok(whole)
    }

    fn fill(&self, mut given: Map<String, Value>) -> Map<String, Value> {
        let fields = self.schema.get("properties").and_then(Value::as_object);
        for (name, field) in fields.into_iter().flatten() {
            if let Some(default) = field.get("default").filter(|_| !given.contains_key(name)) {
                given.insert(name.clone(), default.clone());
            }
        }
        given
    }
}

/// An `ElicitResult`.
pub(super) fn result(action: &str, content: Option<&Value>) -> Json {
    let mut o = ObjectWriter::new();
    o.str("action", action);
    if let Some(content) = content {
        o.raw("content", &Json::from_value(content));
    }
    o.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn form() -> Form {
        let schema = json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"},
            "age": {"type": "integer", "default": 30},
            "on": {"type": "boolean", "default": true},
        }});
        Form {
            server: "s".into(),
            message: "m".into(),
            schema,
        }
    }

    /// Holds: ELIC-08.
    #[test]
    fn what_is_left_out_is_filled_in() {
        assert_eq!(form().defaults(), json!({"age": 30, "on": true}));
        let whole = form().complete(json!({"name": "a", "on": false})).unwrap();
        assert_eq!(whole, json!({"name": "a", "age": 30, "on": false}));
    }

    /// Holds: ELIC-12.
    #[test]
    fn what_does_not_fit_is_no_answer() {
        for bad in [
            json!({}),
            json!({"name": 1}),
            json!({"name": "a", "age": "x"}),
            json!({"name": "a", "zzz": 1}),
            json!(7),
        ] {
            assert!(!form().fits(&bad), "{bad}");
        }
    }
}
