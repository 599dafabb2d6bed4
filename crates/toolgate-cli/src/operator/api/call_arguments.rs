//! Arguments that an operator writes as `key=value`, typed by the input schema of the tool.

use serde_json::{Map, Value};
use toolgate_core::Json;

/// Builds the arguments of a call from `[["key", "value"], …]`.
///
/// A value has the type that the schema names: a text stays as it is written, and a number, boolean, array or object is
/// JSON. If the schema allows several types, or does not name the key, the value is JSON if it parses, and otherwise
/// text.
///
/// # Errors
/// A key is repeated, or a value does not have the type.
pub(super) fn from_pairs(pairs: &Value, schema: &Value) -> Result<Json, String> {
    let mut arguments = Map::new();
    for pair in pairs.as_array().into_iter().flatten() {
        let word = |at: usize| pair[at].as_str().unwrap_or_default();
        let (key, text) = (word(0), word(1));
        let value = typed_value(key, text, &schema["properties"][key]["type"])?;
        if arguments.insert(key.to_owned(), value).is_some() {
            return Err(format!(
                "the argument {key:?} is given twice; write an array as JSON, such as {key}='[1, 2]'"
            ));
        }
    }
    Ok(Json::from_value(&Value::Object(arguments)))
}

fn typed_value(key: &str, text: &str, type_name: &Value) -> Result<Value, String> {
    let parsed = serde_json::from_str::<Value>(text).ok();
    let fits = |value: &Value| match type_name.as_str() {
        Some("number") => value.is_number(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        Some("null") => value.is_null(),
        _ => true,
    };
    match (type_name.as_str(), parsed) {
        (Some("string"), _) => Ok(Value::String(text.to_owned())),
        (_, Some(value)) if fits(&value) => Ok(value),
        (Some(wanted @ ("number" | "integer" | "boolean" | "array" | "object" | "null")), _) => {
            Err(format!(
                "the argument {key:?} must be {}, and {text:?} is not; `toolgate tools` lists the tools",
                with_article(wanted)
            ))
        }
        _ => Ok(Value::String(text.to_owned())),
    }
}

fn with_article(type_name: &str) -> String {
    match type_name {
        "array" | "integer" => format!("an {type_name}"),
        "object" => "a JSON object".to_owned(),
        "null" => type_name.to_owned(),
        _ => format!("a {type_name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(pairs: Value) -> Result<Value, String> {
        let schema = json!({"properties": {
            "text": {"type": "string"}, "count": {"type": "integer"}, "on": {"type": "boolean"},
            "list": {"type": "array"}, "map": {"type": "object"}, "ratio": {"type": "number"},
            "either": {"type": ["string", "number"]},
        }});
        from_pairs(&pairs, &schema).map(|json| json.to_value())
    }

    #[test]
    fn values_have_the_type_of_the_schema() {
        let pairs = json!([
            ["text", "12"],
            ["count", "12"],
            ["on", "true"],
            ["list", "[1]"],
            ["map", "{\"a\":1}"],
            ["ratio", "1.5"],
            ["either", "7"],
            ["unknown", "a=b"],
            ["other", "null"],
        ]);
        let wanted = json!({
            "text": "12", "count": 12, "on": true, "list": [1], "map": {"a": 1}, "ratio": 1.5, "either": 7,
            "unknown": "a=b", "other": null,
        });
        assert_eq!(read(pairs).unwrap(), wanted);
    }

    #[test]
    fn a_value_of_another_type_and_a_repeated_key_are_errors() {
        for (pairs, why) in [
            (json!([["count", "1.5"]]), "\"count\" must be an integer"),
            (json!([["on", "yes"]]), "\"on\" must be a boolean"),
            (json!([["map", "[]"]]), "\"map\" must be a JSON object"),
            (json!([["text", "a"], ["text", "b"]]), "given twice"),
        ] {
            let error = read(pairs).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
