//! The schemas of the fixtures. The words in them are fixed by the suite.

use serde_json::{Value, json};
use toolgate::handlers::{Cx, HandlerExit, IntoOutput, Tool};

/// A tool of that name, schema and function.
pub(crate) fn tool<F, Fut, R>(name: &str, schema: Value, run: F) -> Tool
where
    F: Fn(Value, Cx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, HandlerExit>> + Send + 'static,
    R: IntoOutput + 'static,
{
    Tool::dynamic(name, schema, run)
}

/// No arguments, or any.
pub(crate) fn nothing() -> Value {
    json!({"type": "object"})
}

/// One string, which has to be there.
pub(crate) fn one(name: &str) -> Value {
    json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]})
}

/// An argument that is mirrored in a header.
pub(crate) fn custom_header() -> Value {
    let value = json!({"type": "string", "x-mcp-header": "Value"});
    json!({"type": "object", "properties": {"value": value}, "required": ["value"]})
}

/// The words of a schema that are lost most easily.
pub(crate) fn json_schema_2020_12() -> Value {
    let address = json!({
        "$anchor": "addressDef",
        "type": "object",
        "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": address},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

/// A form with one field, which has to be filled in.
pub(crate) fn field(name: &str, kind: &str) -> Value {
    json!({"type": "object", "properties": {name: {"type": kind}}, "required": [name]})
}

/// A form whose fields may all be left empty.
fn optional(fields: Value) -> Value {
    json!({"type": "object", "properties": fields, "required": []})
}

/// Returns the form schema of `test_elicitation`.
pub(crate) fn user() -> Value {
    optional(json!({"username": {"type": "string"}, "email": {"type": "string"}}))
}

/// A default of every kind.
pub(crate) fn defaults() -> Value {
    let status = json!({
        "type": "string",
        "enum": ["active", "inactive", "pending"],
        "default": "active",
    });
    optional(json!({
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": status,
        "verified": {"type": "boolean", "default": true},
    }))
}

/// A choice of every kind.
pub(crate) fn choices() -> Value {
    let plain = json!(["option1", "option2", "option3"]);
    let titled = json!([
        {"const": "value1", "title": "First Option"},
        {"const": "value2", "title": "Second Option"},
        {"const": "value3", "title": "Third Option"},
    ]);
    optional(json!({
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }))
}
