//! Unusual types, each with values that serde accepts.

use super::*;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

/// Checks that serde and the schema accept each value of `right` and reject each value of `wrong`.
#[track_caller]
fn takes<T: DeserializeOwned + JsonSchema + Debug>(right: &[Value], wrong: &[Value]) {
    let schema = input_schema::<T>().unwrap();
    compiles(&schema);
    assert_eq!(schema["type"], "object");
    assert!(
        schema.get("anyOf").is_none() && schema.get("allOf").is_none(),
        "{schema}"
    );
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    for value in right {
        serde_json::from_value::<T>(value.clone()).unwrap();
        assert!(validator.is_valid(value), "{value}\n{schema:#}");
    }
    for value in wrong {
        serde_json::from_value::<T>(value.clone()).unwrap_err();
        assert!(!validator.is_valid(value), "{value}\n{schema:#}");
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "op")]
enum Expression {
    Number {
        value: f64,
    },
    Sum {
        left: Box<Expression>,
        right: Box<Expression>,
    },
    Point(Point),
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Chain {
    value: u8,
    next: Option<Box<Chain>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct More {
    id: String,
    #[serde(flatten)]
    rest: HashMap<String, Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct MaybeFlat {
    id: String,
    #[serde(flatten)]
    rest: Option<Point>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct FlatTwice {
    #[serde(flatten)]
    one: Tagged,
    #[serde(flatten)]
    two: Adjacent,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Options {
    tagged: Option<Tagged>,
    tree: Option<Tree>,
    result: Option<Result<u8, String>>,
    wait: Option<std::time::Duration>,
    #[serde(default)]
    either: Either,
    #[serde(rename = "a/b~c")]
    renamed: Option<Named<u8>>,
    other: Option<Named<String>>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Either {
    One(Point),
    Two(Strict),
    #[default]
    Nothing,
}

impl Serialize for Either {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_unit()
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "100% {T} / ~x")]
struct Named<T> {
    inner: Vec<Named<T>>,
    value: Option<T>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Roots {
    One { a: u8 },
    Two { a: String, b: bool },
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "t", deny_unknown_fields)]
enum Closed {
    A { a: u8 },
    B { b: bool },
}

#[test]
fn recursive_ones() {
    let number = json!({"op": "Number", "value": 1.5});
    let sum = json!({"op": "Sum", "left": number, "right": {"op": "Point", "x": 1, "y": 2}});
    takes::<Expression>(
        &[number.clone(), sum],
        &[json!({}), json!({"op": "Sum", "left": 1, "right": 2})],
    );
    let schema = input_schema::<Expression>().unwrap();
    assert!(
        !schema.to_string().contains("allOf"),
        "a struct in a variant is one object with it"
    );
    let chain = json!({"value": 1, "next": {"value": 2}});
    takes::<Chain>(
        &[json!({"value": 1}), chain],
        &[json!({"value": 1, "next": {}})],
    );
}

#[test]
fn flattened_ones() {
    takes::<More>(
        &[json!({"id": "a"}), json!({"id": "a", "b": [1]})],
        &[json!({"b": 1})],
    );
    takes::<MaybeFlat>(
        &[json!({"id": "a"}), json!({"id": "a", "x": 1, "y": 2})],
        &[json!({})],
    );
    let both = json!({"kind": "clear", "t": "A", "c": 1});
    takes::<FlatTwice>(&[both], &[json!({"kind": "clear"}), json!({"t": "B"})]);
}

#[test]
fn optional_ones() {
    let all = json!({
        "tagged": {"kind": "add", "item": "x"},
        "tree": {"name": "a", "inner": []},
        "result": {"Err": "x"},
        "wait": {"secs": 1, "nanos": 2},
        "either": {"x": 1, "y": 2},
        "a/b~c": {"inner": [{"inner": [], "value": 7}]},
        "other": {"inner": [], "value": "x"},
    });
    let wrong = [
        json!({"more": 1}),
        json!({"tagged": {"kind": "other"}}),
        json!({"result": {"Ok": 256}}),
        json!({"a/b~c": {"inner": [{"inner": [], "value": "x"}]}}),
    ];
    takes::<Options>(&[json!({}), all], &wrong);
}

#[test]
fn choices_at_the_root() {
    let right = [json!({"a": 1}), json!({"a": "x", "b": true})];
    takes::<Roots>(&right, &[json!({}), json!({"a": true})]);
    let right = [json!({"t": "A", "a": 1}), json!({"t": "B", "b": true})];
    takes::<Closed>(&right, &[json!({}), json!({"t": "A", "a": 1, "c": 1})]);
}
