//! The schemas of the fixtures. The words in them are fixed by the suite.

use serde_json::{Value, json};

pub(crate) fn tool(name: &str, description: &str, schema: Value) -> Value {
    json!({"name": name, "description": description, "inputSchema": schema})
}

/// One string, which has to be there.
pub(crate) fn one(name: &str) -> Value {
    json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]})
}

/// A tool whose argument is mirrored in a header.
pub(crate) fn custom_header() -> Value {
    let value = json!({"type": "string", "x-mcp-header": "Value"});
    let schema = json!({"type": "object", "properties": {"value": value}, "required": ["value"]});
    tool(
        "test_custom_header",
        "Takes an argument that a header repeats",
        schema,
    )
}

/// A tool whose schema has the words that are lost most easily.
pub(crate) fn json_schema_2020_12() -> Value {
    let address = json!({
        "$anchor": "addressDef",
        "type": "object",
        "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
    });
    let schema = json!({
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
    });
    tool(
        "json_schema_2020_12_tool",
        "Tool with JSON Schema 2020-12 features",
        schema,
    )
}

/// What `test_elicitation` asks for.
pub(crate) fn user() -> Value {
    json!({"username": {"type": "string"}, "email": {"type": "string"}})
}

/// A default of every kind.
pub(crate) fn defaults() -> Value {
    let status = json!({
        "type": "string",
        "enum": ["active", "inactive", "pending"],
        "default": "active",
    });
    json!({
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": status,
        "verified": {"type": "boolean", "default": true},
    })
}

/// A choice of every kind.
pub(crate) fn choices() -> Value {
    let plain = json!(["option1", "option2", "option3"]);
    let titled = json!([
        {"const": "value1", "title": "First Option"},
        {"const": "value2", "title": "Second Option"},
        {"const": "value3", "title": "Third Option"},
    ]);
    json!({
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    })
}

/// The form that asks for a name.
pub(crate) fn name() -> Value {
    json!({"name": {"type": "string"}})
}
