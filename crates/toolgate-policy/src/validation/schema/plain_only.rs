//! The checker of builds without the feature `full-json-schema`: plain schemas only. Any other schema is unusable, and
//! nothing passes unchecked against it.

use super::{SchemaBounds, SchemaValidator, plain::PlainSchema, position};
use serde_json::{Map, Value};
use toolgate_core::SchemaViolation;

/// Advice to the author of a schema that cannot be used.
pub(super) const AUTHOR_ADVICE: &str = "correct it, or enable that feature";
/// Advice to others about a schema that cannot be used.
pub(crate) const USER_ADVICE: &str = "a client needs that feature for this server";

/// Nothing is compiled: the plain checks are the checker.
#[derive(Default)]
pub(super) struct CompiledChecker;

/// Rejects a schema that is not plain.
///
/// # Errors
/// Always, with the keyword that the plain checks do not support and the feature that does.
pub(super) fn compile(
    schema: SchemaValidator,
    _: &SchemaBounds,
) -> Result<SchemaValidator, String> {
    let at = unsupported(&schema).unwrap_or_else(|| "a keyword of it".to_owned());
    Err(format!(
        "{at} needs the Cargo feature \"full-json-schema\" of the crate toolgate, which is off"
    ))
}

/// Returns the path of the first keyword, innermost first, that is not plain by itself.
fn unsupported(schema: &SchemaValidator) -> Option<String> {
    let mut parts = position::schemas(&schema.tree);
    parts.reverse();
    parts.into_iter().find_map(|mut part| {
        let alone = |key: &String, value: &Value| {
            Value::Object(Map::from_iter([(key.clone(), value.clone())]))
        };
        let odd = part
            .schema
            .iter()
            .find(|(key, value)| PlainSchema::of(&alone(key, value), schema.draft).is_none());
        let (key, _) = odd?;
        part.path.push(key.clone());
        Some(super::truncate_message(&position::pointer(&part.path)))
    })
}

/// Returns the problems of a value that the plain checks do not accept.
pub(super) fn problems(schema: &SchemaValidator, value: &Value) -> Vec<SchemaViolation> {
    match &schema.plain {
        Some(plain) => plain.problems(&schema.tree, value),
        None => vec![SchemaViolation::new(
            "",
            "a usable schema",
            "a schema that this build cannot check",
        )],
    }
}

#[cfg(test)]
mod tests {
    use super::super::{SchemaBounds, check_schemas, compiled, validate_value};
    use serde_json::{Value, json};
    use toolgate_core::Json;

    fn check(schema: &Value, value: &Value) -> Result<bool, String> {
        validate_value(&Json::from_value(schema), value, &SchemaBounds::default())
    }

    #[test]
    fn a_schema_that_is_not_plain_is_rejected_and_the_feature_named() {
        for (schema, at) in [
            (json!({"type": "string", "pattern": "^a"}), "/pattern"),
            (
                json!({"properties": {"a": {"items": {"$ref": "#"}}}}),
                "/properties/a/items/$ref",
            ),
            (json!({"uniqueItems": true}), "/uniqueItems"),
            (json!({"prefixItems": [{}]}), "/prefixItems"),
        ] {
            let error = check(&schema, &json!("a")).unwrap_err();
            assert!(
                error.contains(at) && error.contains("full-json-schema"),
                "{error}"
            );
            let kept = compiled(&Json::from_value(&schema), &SchemaBounds::default());
            assert!(kept.is_err(), "{schema}");
        }
    }

    #[test]
    fn a_tool_with_a_schema_that_is_not_plain_is_an_error_for_its_author() {
        let tool =
            json!({"name": "t", "inputSchema": {"type": "object", "patternProperties": {"a": {}}}});
        let tool = toolgate_core::Definition::tool(Json::from_value(&tool)).unwrap();
        let error = check_schemas(&tool, &SchemaBounds::default()).unwrap_err();
        assert!(
            error.contains("full-json-schema") && error.contains("inputSchema"),
            "{error}"
        );
    }

    #[test]
    fn plain_schemas_are_checked_in_full() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]});
        assert_eq!(check(&schema, &json!({"n": 1})), Ok(true));
        assert_eq!(check(&schema, &json!({"n": 0})), Ok(false));
        assert_eq!(check(&schema, &json!({})), Ok(false));
    }
}
