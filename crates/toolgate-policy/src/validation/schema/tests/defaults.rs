//! Required members with a default may be omitted.

use super::super::{RequiredDefaults, check, compiled};
use crate::SchemaBounds;
use serde_json::{Value, json};
use toolgate_core::Json;

fn passes(schema: &Value, value: &Value, defaults: RequiredDefaults) -> bool {
    let compiled = compiled(&Json::from_value(schema), &SchemaBounds::default());
    match check(&compiled, value, defaults) {
        super::super::CheckResult::Ready(found) => found.is_empty(),
        super::super::CheckResult::Pending(_) => panic!("not at once: {schema}"),
    }
}

#[test]
fn required_members_with_a_default_may_be_left_out() {
    let level = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer", "default": 1}}});
    for (schema, value) in [
        (level.clone(), json!({})),
        (json!({"properties": {"a": level}}), json!({"a": {}})),
        (json!({"items": level}), json!([{}])),
        (json!({"allOf": [level]}), json!({})),
        (json!({"anyOf": [level, {"type": "null"}]}), json!({})),
        (
            json!({"$ref": "#/$defs/l", "$defs": {"l": level}}),
            json!({}),
        ),
        (
            json!({"required": ["a"], "properties": {"a": {"type": "string", "default": null}}}),
            json!({}),
        ),
    ] {
        assert!(
            passes(&schema, &value, RequiredDefaults::Optional),
            "{schema}"
        );
        assert!(
            !passes(&schema, &value, RequiredDefaults::Required),
            "{schema}"
        );
    }
    // Members that are sent must be valid, and members without a default must be present.
    let other = json!({"required": ["n", "m"], "properties": {"n": {"type": "integer", "default": 1}, "m": {}}});
    for value in [json!({}), json!({"n": 1}), json!({"m": 1, "n": "x"})] {
        assert!(
            !passes(&other, &value, RequiredDefaults::Optional),
            "{value}"
        );
    }
    assert!(passes(&other, &json!({"m": 1}), RequiredDefaults::Optional));
}

/// The default of a referenced schema is one of the property: such schemas come from libraries that name shared types.
#[test]
fn a_default_behind_a_reference_counts() {
    let defs = json!({"page": {"type": "integer", "default": 1}, "size": {"$ref": "#/$defs/page"},
        "a/b": {"allOf": [{"type": "integer"}, {"default": 2}]}, "plain": {"type": "integer"}});
    let schema =
        |property: Value| json!({"required": ["n"], "properties": {"n": property}, "$defs": defs});
    for filled in [
        json!({"$ref": "#/$defs/page"}),
        json!({"$ref": "#/$defs/size"}),
        json!({"$ref": "#/$defs/a~1b"}),
        json!({"allOf": [{"$ref": "#/$defs/page"}]}),
    ] {
        let schema = schema(filled);
        assert!(
            passes(&schema, &json!({}), RequiredDefaults::Optional),
            "{schema}"
        );
        assert!(
            !passes(&schema, &json!({"n": "x"}), RequiredDefaults::Optional),
            "{schema}"
        );
    }
    let required = schema(json!({"$ref": "#/$defs/plain"}));
    assert!(!passes(&required, &json!({}), RequiredDefaults::Optional));
}

/// Thirty references of a schema to itself would be followed 30 to the power of their depth times.
#[test]
fn a_search_for_a_default_ends() {
    let parts = vec![json!({"$ref": "#/$defs/me"}); 30];
    let defs = json!({"me": {"allOf": parts}});
    let schema =
        json!({"required": ["n"], "properties": {"n": {"$ref": "#/$defs/me"}}, "$defs": defs});
    assert!(super::super::defaults::optional(&schema).is_none());
}

/// What fits the schema as it stands keeps passing.
#[test]
fn no_value_that_fits_is_refused() {
    let level = json!({"required": ["n"], "properties": {"n": {"default": 1}}});
    for schema in [
        json!({"not": level}),
        json!({"if": level, "then": false}),
        json!({"oneOf": [level, {"type": "object"}]}),
        json!({"not": {"$ref": "#/$defs/l"}, "$defs": {"l": level}}),
    ] {
        assert!(
            passes(&schema, &json!({}), RequiredDefaults::Optional),
            "{schema}"
        );
    }
}
