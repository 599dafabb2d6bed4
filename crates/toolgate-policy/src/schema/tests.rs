//! What is compiled, what is withheld, and what is said of a value.

mod once;
mod plain;

use super::{Schema, problems};
use crate::Bounds;
use jsonschema::Draft;
use serde_json::{Value, json};
use toolgate_core::Json;

thread_local! {
    /// Schemas that this thread compiled.
    pub(super) static COMPILED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    /// Those for which it took the compiler.
    pub(super) static BUILT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

fn compile(schema: &Value) -> Result<Schema, String> {
    Schema::compile(&Json::from_value(schema), &Bounds::default())
}

fn taken(schema: Value) -> Schema {
    compile(&schema).unwrap_or_else(|why| panic!("{why}: {schema}"))
}

fn refused(schema: Value, why: &str) {
    match compile(&schema) {
        Ok(_) => panic!("taken: {schema}"),
        Err(said) => assert!(said.contains(why), "{said}"),
    }
}

/// What is said of a value, as `path: expected, got`.
fn said(schema: Value, value: Value) -> Vec<String> {
    let found = problems(&taken(schema), &value);
    found
        .iter()
        .map(|p| format!("{}: {}, {}", p.path, p.expected, p.got))
        .collect()
}

fn dialect(schema: Value) -> Draft {
    let graph = super::bounds::Graph::of(&schema, &Bounds::default()).unwrap();
    super::dialect::of(&graph).unwrap()
}

/// Holds: BASE-45
#[test]
fn dialects() {
    assert_eq!(dialect(json!({"type": "object"})), Draft::Draft202012);
    assert_eq!(
        dialect(json!({"$defs": {}, "definitions": {}})),
        Draft::Draft202012
    );
    for old in [
        json!({"definitions": {"a": {}}}),
        json!({"properties": {"a": {"items": [{}]}}}),
        json!({"dependencies": {"a": ["b"]}}),
        json!({"items": {"additionalItems": false}}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#"}),
        json!({"$schema": "https://json-schema.org/draft-07/schema"}),
    ] {
        assert_eq!(dialect(old.clone()), Draft::Draft7, "{old}");
    }
    // A property of that name is no keyword.
    assert_eq!(
        dialect(json!({"properties": {"definitions": {"type": "object"}}})),
        Draft::Draft202012
    );
    refused(
        json!({"$schema": "http://json-schema.org/draft-04/schema#"}),
        "draft-04",
    );
    refused(
        json!({"$schema": "https://json-schema.org/draft/2019-09/schema"}),
        "not supported",
    );
    refused(
        json!({"$schema": "https://evil.test/schema"}),
        "not supported",
    );
    refused(
        json!({"properties": {"a": {"$schema": "https://evil.test/schema"}}}),
        "not supported",
    );
}

#[test]
fn dialects_differ_in_what_they_check() {
    // Lists by position: `items` in draft-07, `prefixItems` in 2020-12.
    assert_eq!(
        said(json!({"items": [{"type": "string"}]}), json!([1])),
        ["/0: a string, the number 1"]
    );
    assert_eq!(
        said(json!({"prefixItems": [{"type": "string"}]}), json!([1])),
        ["/0: a string, the number 1"]
    );
}

#[test]
fn references_stay_inside() {
    for out in [
        "http://evil.test/a",
        "https://evil.test/#/a",
        "file:///etc/passwd",
        "other.json",
        "data:,{}",
        "//evil.test",
        "ftp://x/y",
        "/etc",
    ] {
        refused(json!({"$ref": out}), "leads out of it");
        refused(
            json!({"properties": {"a": {"$dynamicRef": out}}}),
            "leads out of it",
        );
        refused(
            json!({"x-unknown": {"deep": [{"$ref": out}]}}),
            "leads out of it",
        );
    }
    // A base elsewhere does not make a reference a good one.
    refused(
        json!({"$id": "https://evil.test/a", "$ref": "b.json"}),
        "leads out of it",
    );
    refused(
        json!({"$ref": "https://json-schema.org/draft/2020-12/schema"}),
        "leads out of it",
    );
    refused(json!({"$ref": "#/$defs/none"}), "leads nowhere");
    refused(json!({"$ref": "#none"}), "leads nowhere");
}

#[test]
fn references_inside_are_followed() {
    let number = |r: &str| json!({"properties": {"a": {"$ref": r}}, "$defs": {"n/~ x": {"$anchor": "here", "type": "number"}}});
    for reference in ["#/$defs/n~1~0%20x", "#here"] {
        assert_eq!(
            said(number(reference), json!({"a": "x"})),
            ["/a: a number, a string of 1 character"]
        );
    }
    taken(json!({"$ref": "#/definitions/a", "definitions": {"a": {"type": "object"}}}));
    taken(json!({"properties": {"a": {"$ref": "#/$defs/yes"}}, "$defs": {"yes": true}}));
    let id = json!({"$id": "https://x.test/s", "properties": {"a": {"$ref": "https://x.test/s#/$defs/n"}}, "$defs": {"n": {"type": "number"}}});
    assert_eq!(said(id, json!({"a": "x"})).len(), 1);
    let tree = json!({"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}}});
    assert_eq!(
        said(tree, json!({"children": [{"children": [1]}]})),
        ["/children/0/children/0: an object, the number 1"]
    );
}

#[test]
fn endless_schemas_are_refused() {
    refused(json!({"$ref": "#"}), "without end");
    refused(json!({"allOf": [{"$ref": "#"}]}), "without end");
    refused(
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}}}),
        "without end",
    );
}

/// Holds: BASE-54
#[test]
fn bounds() {
    let text = |n: usize| json!({"description": "x".repeat(n)});
    taken(text(64 * 1024 - 18));
    refused(text(64 * 1024 - 17), "the limit is 64 KiB");
    let deep = |n: usize| (0..n).fold(json!({}), |inner, _| json!({"items": inner}));
    taken(deep(32));
    refused(deep(33), "more than 32 deep");
    let parts = |n: usize| json!({"anyOf": vec![json!({}); n - 1]});
    taken(parts(2000));
    refused(parts(2001), "more than 2000 parts");
    let patterns = |n: usize| json!({"anyOf": vec![json!({"pattern": "a"}); n]});
    taken(patterns(200));
    refused(patterns(201), "more than 200 regular");
}

#[test]
fn work_that_doubles_is_bounded() {
    let doubling = |n: usize| {
        let mut defs = serde_json::Map::new();
        for at in 0..n {
            let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
            defs.insert(format!("d{at}"), json!({"allOf": [next, next]}));
        }
        defs.insert(format!("d{n}"), json!({"type": "string"}));
        json!({"$ref": "#/$defs/d0", "$defs": defs})
    };
    taken(doubling(8));
    refused(doubling(60), "too long");
    // Doubles with each level of the value: taken, and deep values are refused before they are checked.
    let node = json!({"properties": {"a": {"$ref": "#"}}, "required": ["b"]});
    let levels = json!({"anyOf": [node, node], "type": "object"});
    let value = (0..40).fold(json!({}), |inner, _| json!({"a": inner}));
    let start = std::time::Instant::now();
    let found = said(levels, value);
    assert!(found[0].contains("levels of nesting"), "{found:?}");
    assert!(start.elapsed().as_secs() < 5);
}

#[test]
fn ordinary_recursion_goes_as_deep_as_json() {
    let json_value = json!({"$ref": "#/$defs/v", "$defs": {"v": {"anyOf": [
        {"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/v"}},
        {"type": "object", "additionalProperties": {"$ref": "#/$defs/v"}}]}}});
    assert_eq!(taken(json_value).depth, 64);
    let filter = json!({"type": "object", "properties": {
        "and": {"type": "array", "items": {"$ref": "#"}}, "or": {"type": "array", "items": {"$ref": "#"}}, "not": {"$ref": "#"}}});
    assert_eq!(taken(filter).depth, 64);
}

#[test]
fn patterns_take_linear_time() {
    let start = std::time::Instant::now();
    let found = said(
        json!({"pattern": "^(a+)+$"}),
        json!(format!("{}!", "a".repeat(50_000))),
    );
    assert_eq!(found.len(), 1);
    assert!(start.elapsed().as_secs() < 5);
    assert!(compile(&json!({"pattern": "(?=a)a"})).is_err());
    assert!(compile(&json!({"pattern": "((a{1,500}){1,500}){1,500}"})).is_err());
}

#[test]
fn broken_schemas_are_refused() {
    assert!(compile(&json!({"type": "strnig"})).is_err());
    assert!(compile(&json!({"properties": []})).is_err());
    assert!(compile(&json!({"pattern": "("})).is_err());
}

#[test]
fn words() {
    for (schema, value, expected) in [
        (
            json!({"type": ["string", "null"]}),
            json!(true),
            ": null or a string, true",
        ),
        (
            json!({"enum": ["C", "F"]}),
            json!("Kelvin"),
            ": one of [\"C\",\"F\"], a string of 6 characters",
        ),
        (json!({"const": 1}), json!(2), ": exactly 1, the number 2"),
        (
            json!({"minimum": 3}),
            json!(2),
            ": at least 3, the number 2",
        ),
        (
            json!({"exclusiveMaximum": 3}),
            json!(3),
            ": less than 3, the number 3",
        ),
        (
            json!({"multipleOf": 2}),
            json!(3),
            ": a multiple of 2, the number 3",
        ),
        (
            json!({"maxLength": 2}),
            json!("abc"),
            ": at most 2 characters, a string of 3 characters",
        ),
        (
            json!({"minItems": 2}),
            json!([1]),
            ": at least 2 items, an array of 1 item",
        ),
        (
            json!({"uniqueItems": true}),
            json!([1, 1]),
            ": items that all differ, an array of 2 items",
        ),
        (
            json!({"pattern": "^a"}),
            json!("b"),
            ": text that fits the pattern ^a, a string of 1 character",
        ),
        (
            json!({"additionalProperties": false}),
            json!({"x": 1}),
            ": no members, the number 1",
        ),
        (
            json!({"anyOf": [{"type": "string"}]}),
            json!({}),
            ": one of the forms that the schema names, an object of 0 members",
        ),
        (
            json!({"required": ["a/b"]}),
            json!({}),
            "/a~1b: a value, it is required, nothing",
        ),
        (
            json!(false),
            json!({}),
            ": nothing here, an object of 0 members",
        ),
    ] {
        assert_eq!(said(schema, value), [expected]);
    }
}

#[test]
fn members_that_nobody_expects() {
    for key in ["additionalProperties", "unevaluatedProperties"] {
        let closed = json!({"properties": {"path": {}}, key: false});
        assert_eq!(
            said(closed.clone(), json!({"pth": 1})),
            ["/pth: no member of this name; did you mean \"path\"?, a number"]
        );
        assert_eq!(
            said(closed.clone(), json!({"note": 1})),
            ["/note: no member of this name; there are \"path\", a number"]
        );
        assert_eq!(
            said(closed, json!({"x": 1, "y": 2})),
            [": no members \"x\", \"y\"; there are \"path\", an object of 2 members"]
        );
    }
}

#[test]
fn at_most_eight_problems() {
    let value: Value = (0..20).map(Value::from).collect();
    assert_eq!(said(json!({"items": {"type": "string"}}), value).len(), 8);
}

#[test]
fn values_are_not_repeated() {
    let pin = json!({"properties": {"pin": {"writeOnly": true, "maximum": 10}, "n": {"maximum": 10}, "p": {"format": "password", "type": "integer"}}});
    let found = said(pin, json!({"pin": 4711, "n": 12, "p": "hunter2"}));
    assert_eq!(
        found,
        [
            "/n: at most 10, the number 12",
            "/p: an integer, a string of 7 characters",
            "/pin: at most 10, a number"
        ]
    );
}
