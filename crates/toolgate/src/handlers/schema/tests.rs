//! Schemas of various types, one line per type.

#![allow(dead_code, reason = "the types are only described")]

mod laws;
mod odd;

use super::{input_schema, output_schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use toolgate_core::{Definition, ItemKind, Json};
use toolgate_policy::{SchemaBounds, check_schemas};

/// Checks the schema of an argument `x` of a type, without the object around it.
#[track_caller]
fn check<T: JsonSchema>(expected: Value) {
    #[derive(JsonSchema)]
    struct Args<T> {
        x: T,
    }
    let mut schema = input_schema::<Args<T>>().unwrap();
    compiles(&schema);
    assert_eq!(schema["properties"]["x"].take(), expected);
}

#[track_caller]
fn check_input<T: JsonSchema>(expected: Value) {
    let schema = input_schema::<T>().unwrap();
    compiles(&schema);
    assert_eq!(schema, expected);
}

#[track_caller]
fn check_output<T: JsonSchema>(expected: Value) {
    let schema = output_schema::<T>().unwrap();
    compiles(&schema);
    assert_eq!(schema, expected);
}

#[track_caller]
fn compiles(schema: &Value) {
    jsonschema::draft202012::meta::validate(schema).unwrap();
    jsonschema::draft202012::new(schema).unwrap();
    let tool = json!({"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema});
    let tool = Definition::read(ItemKind::Tool, Json::from_value(&tool)).unwrap();
    check_schemas(&tool, &SchemaBounds::default()).unwrap();
}

/// A unit of temperature.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Unit {
    /// As in Europe.
    Celsius,
    Kelvin,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
enum Bare {
    A,
    B,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
enum External {
    Nothing,
    One(u8),
    Two(u8, String),
    Named { a: bool },
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Tagged {
    /// Puts something in.
    Add { item: String, count: Option<u32> },
    /// Takes everything out.
    Clear,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(tag = "t", content = "c")]
enum Adjacent {
    A(u8),
    B,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(untagged)]
enum Untagged {
    Number(i64),
    Text(String),
    Many(Vec<String>),
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
struct Point {
    /// To the east.
    x: i64,
    y: i64,
}

/// A tree.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
struct Tree {
    name: String,
    inner: Vec<Tree>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
struct Strict {
    a: String,
    #[serde(default = "ten")]
    b: u8,
}

fn ten() -> u8 {
    10
}

#[derive(JsonSchema)]
struct Unitary;

#[derive(JsonSchema)]
struct Wrapped(Point);

#[derive(JsonSchema)]
struct Page<T> {
    items: Vec<T>,
    next: Option<String>,
}

#[derive(JsonSchema)]
struct Flat {
    a: bool,
    #[serde(flatten)]
    rest: Point,
}

#[derive(JsonSchema)]
struct FlatChoice {
    a: bool,
    #[serde(flatten)]
    rest: Tagged,
}

#[test]
fn simple_types() {
    check::<String>(json!({"type": "string"}));
    check::<char>(json!({"type": "string", "minLength": 1, "maxLength": 1}));
    check::<bool>(json!({"type": "boolean"}));
    check::<()>(json!({"type": "null"}));
    check::<f32>(json!({"type": "number"}));
    check::<f64>(json!({"type": "number"}));
    check::<u8>(json!({"type": "integer", "minimum": 0, "maximum": 255}));
    check::<u16>(json!({"type": "integer", "minimum": 0, "maximum": 65535}));
    check::<u32>(json!({"type": "integer", "minimum": 0, "maximum": 4_294_967_295_u32}));
    check::<u64>(json!({"type": "integer", "minimum": 0}));
    check::<usize>(json!({"type": "integer", "minimum": 0}));
    check::<i8>(json!({"type": "integer", "minimum": -128, "maximum": 127}));
    check::<i32>(json!({"type": "integer", "minimum": i32::MIN, "maximum": i32::MAX}));
    check::<i64>(json!({"type": "integer"}));
    check::<i128>(json!({"type": "integer"}));
    check::<Value>(json!({}));
    check::<std::net::Ipv4Addr>(json!({"type": "string", "format": "ipv4"}));
    check::<std::path::PathBuf>(json!({"type": "string"}));
}

#[test]
fn what_may_be_left_out_is_not_null() {
    check::<Option<String>>(json!({"type": "string"}));
    check::<Option<u8>>(json!({"type": "integer", "minimum": 0, "maximum": 255}));
    check::<Option<Option<bool>>>(json!({"type": "boolean"}));
    check::<Option<Bare>>(json!({"type": "string", "enum": ["A", "B"]}));
    check::<Option<()>>(json!({"type": "null"}));
    check::<Option<Value>>(json!({}));
    check::<Option<Vec<u64>>>(json!({"type": "array", "items": {"type": "integer", "minimum": 0}}));
    check_input::<Page<bool>>(
        json!({"type": "object", "required": ["items"], "properties": {
        "items": {"type": "array", "items": {"type": "boolean"}}, "next": {"type": "string"}}}),
    );
}

#[test]
fn null_where_it_must_stand() {
    let text = json!({"anyOf": [{"type": "string"}, {"type": "null"}]});
    check::<Vec<Option<String>>>(json!({"type": "array", "items": text}));
    check::<HashMap<String, Option<String>>>(
        json!({"type": "object", "additionalProperties": text}),
    );
    #[derive(JsonSchema, Serialize)]
    struct MayBeAbsent {
        #[serde(skip_serializing_if = "Option::is_none")]
        a: Option<String>,
    }
    check_output::<MayBeAbsent>(json!({"type": "object", "properties": {"a": text}}));
    let bare = json!({"anyOf": [{"type": "string", "enum": ["A", "B"]}, {"type": "null"}]});
    check::<Vec<Option<Bare>>>(json!({"type": "array", "items": bare}));
    check_output::<Page<bool>>(json!({"type": "object", "required": ["items", "next"],
        "properties": {"items": {"type": "array", "items": {"type": "boolean"}}, "next": text}}));
}

#[test]
fn lists_maps_and_tuples() {
    let int = json!({"type": "integer"});
    check::<Vec<i64>>(json!({"type": "array", "items": int}));
    check::<Vec<Value>>(json!({"type": "array", "items": {}}));
    check::<[bool; 3]>(
        json!({"type": "array", "items": {"type": "boolean"}, "minItems": 3, "maxItems": 3}),
    );
    check::<BTreeMap<String, i64>>(json!({"type": "object", "additionalProperties": int}));
    check::<BTreeMap<String, Value>>(json!({"type": "object", "additionalProperties": {}}));
    check::<(i64, i64)>(json!({"type": "array", "items": int, "minItems": 2, "maxItems": 2}));
    let text = json!({"type": "string"});
    check::<(i64, String)>(json!({"type": "array", "prefixItems": [int, text],
        "items": {"anyOf": [int, text]}, "minItems": 2, "maxItems": 2}));
}

#[test]
fn enums() {
    check::<Bare>(json!({"type": "string", "enum": ["A", "B"]}));
    check::<Unit>(json!({"type": "string", "enum": ["kelvin", "celsius"],
        "description": "A unit of temperature.\n- `celsius`: As in Europe."}));
    check::<Untagged>(json!({"anyOf": [{"type": "integer"}, {"type": "string"},
        {"type": "array", "items": {"type": "string"}}]}));
    let of = |name: &str, schema: Value| {
        json!({"type": "object", "properties": {name: schema}, "required": [name],
            "additionalProperties": false})
    };
    let byte = json!({"type": "integer", "minimum": 0, "maximum": 255});
    let text = json!({"type": "string"});
    let two = json!({"type": "array", "prefixItems": [byte, text], "minItems": 2, "maxItems": 2,
        "items": {"anyOf": [byte, text]}});
    let named =
        json!({"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]});
    check::<External>(json!({"anyOf": [{"type": "string", "enum": ["Nothing"]},
        of("One", byte.clone()), of("Two", two), of("Named", named)]}));
    check::<Adjacent>(json!({"anyOf": [
        {"type": "object", "required": ["t", "c"],
            "properties": {"t": {"type": "string", "enum": ["A"]}, "c": byte}},
        {"type": "object", "required": ["t"], "properties": {"t": {"type": "string", "enum": ["B"]}}}]}));
}

#[test]
fn structs() {
    let point = json!({"type": "object", "required": ["x", "y"], "properties": {
        "x": {"type": "integer", "description": "To the east."}, "y": {"type": "integer"}}});
    check::<Point>(point.clone());
    check::<Wrapped>(point.clone());
    check::<Option<Point>>(point.clone());
    check_input::<Point>(point.clone());
    check_input::<Wrapped>(point.clone());
    check_input::<Option<Point>>(point.clone());
    check_output::<Wrapped>(point);
    check_input::<Strict>(
        json!({"type": "object", "required": ["a"], "additionalProperties": false,
        "properties": {"a": {"type": "string"},
            "b": {"type": "integer", "minimum": 0, "maximum": 255, "default": 10}}}),
    );
    check_input::<Flat>(
        json!({"type": "object", "required": ["a", "x", "y"], "properties": {
        "a": {"type": "boolean"}, "x": {"type": "integer", "description": "To the east."},
        "y": {"type": "integer"}}}),
    );
}

/// Holds: TOOL-09
#[test]
fn arguments_are_an_object() {
    let none = json!({"type": "object", "additionalProperties": false});
    check_input::<()>(none.clone());
    check_input::<Unitary>(none);
    check_input::<Value>(json!({"type": "object"}));
    check_input::<BTreeMap<String, bool>>(
        json!({"type": "object", "additionalProperties": {"type": "boolean"}}),
    );
    let why = input_schema::<Vec<String>>().unwrap_err();
    assert!(
        why.contains("string") && why.contains("use a struct with named fields"),
        "{why}"
    );
    input_schema::<Bare>().unwrap_err();
    input_schema::<Untagged>().unwrap_err();
}

/// Some clients reject a choice at the root, so its variants are joined in one object.
#[test]
fn a_choice_at_the_root() {
    let count = json!({"type": "integer", "minimum": 0, "maximum": u32::MAX});
    let words = "- `kind` = \"add\" needs `item`: Puts something in.\n- `kind` = \"clear\": Takes everything out.";
    let kind = json!({"type": "string", "enum": ["add", "clear"]});
    let item = json!({"type": "string"});
    check_input::<Tagged>(
        json!({"type": "object", "required": ["kind"], "description": words,
        "properties": {"kind": kind, "item": item, "count": count}}),
    );
    check_input::<FlatChoice>(
        json!({"type": "object", "required": ["a", "kind"], "description": words,
        "properties": {"a": {"type": "boolean"}, "kind": kind, "item": item, "count": count}}),
    );
    let named =
        json!({"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]});
    let schema = input_schema::<External>().unwrap();
    assert_eq!(schema["properties"]["Named"], named);
    assert_eq!(
        (&schema["additionalProperties"], schema.get("required")),
        (&json!(false), None)
    );
}

#[test]
fn a_choice_in_a_result_stays_one() {
    let schema = output_schema::<Tagged>().unwrap();
    compiles(&schema);
    assert_eq!(
        (&schema["type"], schema["anyOf"].as_array().unwrap().len()),
        (&json!("object"), 2)
    );
    assert_eq!(output_schema::<Untagged>().unwrap().get("type"), None);
    assert_eq!(output_schema::<Option<Tagged>>().unwrap().get("type"), None);
    check_output::<Vec<bool>>(json!({"type": "array", "items": {"type": "boolean"}}));
}

#[test]
fn what_is_recursive_stays_apart() {
    let tree = json!({"type": "object", "description": "A tree.", "required": ["name", "inner"],
        "properties": {"name": {"type": "string"},
            "inner": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}});
    check::<Tree>(json!({"$ref": "#/$defs/Tree"}));
    let mut root = tree.clone();
    root["$defs"] = json!({"Tree": tree});
    check_input::<Tree>(root.clone());
    check_output::<Tree>(root);
}

#[test]
fn what_is_large_and_used_twice_stays_apart() {
    /// A very long word on this type, so that it is worth a definition of its own; it is used twice, and to write it
    /// out twice would make the list of tools longer, which costs whoever reads it each time.
    #[derive(JsonSchema)]
    struct Large {
        a: String,
    }
    #[derive(JsonSchema)]
    struct Twice {
        one: Large,
        two: Large,
        small: Bare,
        again: Bare,
    }
    let schema = input_schema::<Twice>().unwrap();
    compiles(&schema);
    assert_eq!(
        schema["properties"]["one"],
        json!({"$ref": "#/$defs/Large"})
    );
    assert_eq!(
        schema["properties"]["again"],
        json!({"type": "string", "enum": ["A", "B"]})
    );
    assert_eq!(schema["$defs"].as_object().unwrap().len(), 1);
}

#[test]
fn words_on_a_member_come_before_words_on_its_type() {
    #[derive(JsonSchema)]
    struct Args {
        /// In what.
        a: Unit,
        /// Or in what.
        b: Option<Bare>,
    }
    let schema = input_schema::<Args>().unwrap();
    assert_eq!(schema["properties"]["a"]["description"], "In what.");
    assert_eq!(
        schema["properties"]["b"],
        json!({"type": "string", "enum": ["A", "B"], "description": "Or in what."})
    );
}

#[test]
fn too_large_is_said() {
    type Deep<T> = Vec<Vec<Vec<Vec<Vec<Vec<Vec<Vec<Vec<Vec<Vec<T>>>>>>>>>>>;
    let why = output_schema::<Deep<Deep<Deep<u8>>>>().unwrap_err();
    assert!(why.contains("33 levels deep, but the limit is 32"), "{why}");
    struct Long;
    impl JsonSchema for Long {
        fn schema_name() -> std::borrow::Cow<'static, str> {
            "Long".into()
        }
        fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
            schemars::json_schema!({"type": "object", "description": "x".repeat(70_000)})
        }
    }
    let why = input_schema::<Long>().unwrap_err();
    assert!(why.starts_with("the type Long: its schema is 700"), "{why}");
}
