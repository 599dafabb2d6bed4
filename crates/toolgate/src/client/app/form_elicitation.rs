//! Form elicitation.

use serde_json::{Map, Value};
use toolgate_core::Json;
use toolgate_protocol::json::ObjectWriter;

/// Form elicitation (`elicitation/create`): a form that a server asks the user to fill in.
///
/// Show which server asks, and let the user decline or cancel. Never collect secrets with a form.
///
/// Specification: [form mode elicitation](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#form-mode-elicitation-requests).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FormElicitation {
    /// Id of the server that sent the form, as set on this client.
    pub server: String,
    /// Message to the user that explains the form. Untrusted text: sanitized, not verified.
    pub message: String,
    /// JSON Schema of the form's fields (`requestedSchema`): a flat object of strings, numbers, booleans and
    /// enumerations.
    pub schema: Value,
}

impl FormElicitation {
    /// Reads the parameters of `elicitation/create`.
    pub(super) fn read(server: &str, params: &Json) -> Option<FormElicitation> {
        let schema = params.get("requestedSchema")?.to_value();
        schema.is_object().then_some(FormElicitation {
            server: server.to_owned(),
            message: params.get("message")?.string()?,
            schema,
        })
    }

    /// Returns the default values of the form's fields, as a JSON object.
    ///
    /// An answer that omits fields gets these values.
    pub fn defaults(&self) -> Value {
        Value::Object(self.fill(Map::new()))
    }

    /// Returns whether an answer, completed with the defaults, matches the schema of the form. Answers are checked
    /// before they are sent; this allows a check while the form is still open.
    pub fn fits(&self, answer: &Value) -> bool {
        self.complete(answer.clone()).is_ok()
    }

    /// Completes the answer with the defaults of the omitted fields.
    ///
    /// # Errors
    /// The reason why it does not match. Fields that the form does not define are rejected.
    pub(super) fn complete(&self, answer: Value) -> Result<Value, String> {
        let given = match answer {
            Value::Object(given) => given,
            Value::Null => Map::new(),
            _ => return Err("expected an object with the form's fields".to_owned()),
        };
        let whole = Value::Object(self.fill(given));
        toolgate_policy::check_form_response(&Json::from_value(&self.schema), &whole)?;
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

/// Returns an `ElicitResult`.
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

    fn form() -> FormElicitation {
        let schema = json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"},
            "age": {"type": "integer", "default": 30},
            "on": {"type": "boolean", "default": true},
        }});
        FormElicitation {
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
