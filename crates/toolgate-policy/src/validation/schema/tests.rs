//! Tests of compilation, withholding, and explanations.

mod defaults;
mod differential;
mod field;
mod once;
mod plain;

use super::{SchemaValidator, dialect::SchemaDialect, problems};
use crate::SchemaBounds;
use serde_json::{Value, json};
use toolgate_core::Json;

/// All keywords of the fast path, without `$schema`, which only the root may have.
const FAST_PATH_KEYWORDS: [&str; 31] = [
    "type",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "required",
    "properties",
    "additionalProperties",
    "items",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "title",
    "description",
    "$comment",
    "readOnly",
    "writeOnly",
    "deprecated",
    "examples",
    "default",
    "format",
    "uniqueItems",
];

thread_local! {
    /// Number of schemas that this thread compiled.
    pub(super) static COMPILED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    /// Number of schemas for which it built the validator.
    pub(super) static BUILT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

fn compile(schema: &Value) -> Result<SchemaValidator, String> {
    SchemaValidator::compile(&Json::from_value(schema), &SchemaBounds::default())
}

fn taken(schema: Value) -> SchemaValidator {
    compile(&schema).unwrap_or_else(|why| panic!("{why}: {schema}"))
}

fn refused(schema: Value, why: &str) {
    match compile(&schema) {
        Ok(_) => panic!("taken: {schema}"),
        Err(said) => assert!(said.contains(why), "{said}"),
    }
}

/// Returns the problems of a value, as `path: expected, received`.
fn said(schema: Value, value: Value) -> Vec<String> {
    let found = problems(&taken(schema), &value);
    found
        .iter()
        .map(|p| format!("{}: {}, {}", p.path, p.expected, p.received))
        .collect()
}

fn dialect(schema: Value) -> SchemaDialect {
    let graph = super::bounds::SchemaGraph::of(&schema, &SchemaBounds::default()).unwrap();
    super::dialect::of(&graph).unwrap()
}

/// Holds: BASE-45, BASE-46
#[test]
fn dialects() {
    for unnamed in [
        json!({"type": "object"}),
        json!({"definitions": {"a": {}}}),
        json!({"properties": {"a": {"items": [{}]}}}),
        json!({"dependencies": {"a": ["b"]}}),
        json!({"properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#"}}}),
    ] {
        assert_eq!(
            dialect(unnamed.clone()),
            SchemaDialect::Unnamed,
            "{unnamed}"
        );
    }
    for (name, named) in [
        (
            "https://json-schema.org/draft/2020-12/schema",
            SchemaDialect::Draft202012,
        ),
        ("http://json-schema.org/schema#", SchemaDialect::Draft202012),
        (
            "https://json-schema.org/draft/2019-09/schema",
            SchemaDialect::Draft201909,
        ),
        (
            "http://json-schema.org/draft-07/schema#",
            SchemaDialect::Draft07,
        ),
        (
            "https://json-schema.org/draft-07/schema",
            SchemaDialect::Draft07,
        ),
        (
            "http://json-schema.org/draft-06/schema#",
            SchemaDialect::Draft06,
        ),
        (
            "http://json-schema.org/draft-04/schema#",
            SchemaDialect::Draft04,
        ),
    ] {
        assert_eq!(dialect(json!({"$schema": name})), named);
    }
    for unknown in [
        "http://json-schema.org/draft-03/schema#",
        "https://evil.test/schema",
    ] {
        refused(json!({"$schema": unknown}), "not supported");
        refused(
            json!({"properties": {"a": {"$schema": unknown}}}),
            "not supported",
        );
    }
    refused(
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"$schema": "https://json-schema.org/draft/2020-12/schema"}}}),
        "mixes two dialects",
    );
}

fn fits_all(schema: &Value, good: &[Value], bad: &[Value]) {
    let compiled = taken(schema.clone());
    for (values, fits) in [(good, true), (bad, false)] {
        for value in values {
            let found = problems(&compiled, value);
            assert_eq!(found.is_empty(), fits, "{value} in {schema}: {found:?}");
        }
    }
}

/// Holds: BASE-45, TOOL-08
#[test]
fn definitions_do_not_turn_off_keywords_of_2020_12() {
    let schema = json!({
        "type": "object",
        "definitions": {"s": {"type": "string"}},
        "properties": {
            "a": {"$ref": "#/definitions/s", "maxLength": 3},
            "t": {"type": "array", "prefixItems": [{"type": "integer"}]},
            "b": {}, "c": {},
        },
        "dependentRequired": {"b": ["c"]},
    });
    fits_all(
        &schema,
        &[json!({"a": "ok", "t": [1], "b": 1, "c": 1})],
        &[
            json!({"a": "toolong"}),
            json!({"t": ["x"]}),
            json!({"b": 1}),
        ],
    );
}

#[test]
fn keywords_of_draft_07_apply_beside_those_of_2020_12() {
    for (schema, good, bad) in [
        (
            json!({"items": [{"type": "string"}], "additionalItems": false}),
            vec![json!(["a"]), json!([])],
            vec![json!([1]), json!(["a", 1])],
        ),
        (
            json!({"items": [], "additionalItems": {"type": "string"}}),
            vec![json!(["a"])],
            vec![json!([1])],
        ),
        (
            json!({"additionalItems": false, "items": {"type": "string"}}),
            vec![json!(["a", "b"])],
            vec![json!([1])],
        ),
        (
            json!({"items": [{"minimum": 2}], "prefixItems": [{"maximum": 4}], "additionalItems": false, "allOf": [{"minItems": 1}]}),
            vec![json!([3])],
            vec![json!([1]), json!([5]), json!([3, 3]), json!([])],
        ),
        (
            json!({"dependencies": {"a": ["b"], "c": {"required": ["d"]}, "e": false}}),
            vec![json!({"a": 1, "b": 1}), json!({"c": 1, "d": 1})],
            vec![json!({"a": 1}), json!({"c": 1}), json!({"e": 1})],
        ),
        (
            json!({"dependencies": {"a": ["b"]}, "dependentRequired": {"a": ["c"]}}),
            vec![json!({"a": 1, "b": 1, "c": 1})],
            vec![json!({"a": 1, "b": 1}), json!({"a": 1, "c": 1})],
        ),
        // Data or names that look like keywords.
        (
            json!({"enum": [{"items": [1], "dependencies": {}}]}),
            vec![json!({"items": [1], "dependencies": {}})],
            vec![json!({"prefixItems": [1]})],
        ),
        (
            json!({"properties": {"items": {"type": "integer"}, "dependencies": {"type": "string"}}}),
            vec![json!({"items": 1, "dependencies": "a"})],
            vec![json!({"items": "a"}), json!({"dependencies": 1})],
        ),
        // References to keywords that have moved.
        (
            json!({"properties": {"t": {"items": [{"type": "integer"}], "additionalItems": {"type": "null"}},
                "u": {"$ref": "#/properties/t/items/0"}, "v": {"$ref": "#/properties/t/additionalItems"}}}),
            vec![json!({"t": [1, null], "u": 1, "v": null})],
            vec![json!({"u": "a"}), json!({"v": 1}), json!({"t": [1, 1]})],
        ),
        (
            json!({"allOf": [{}], "items": [{"type": "integer"}], "prefixItems": [true], "contains": {"$ref": "#/items/0"},
                "dependencies": {"x": {"minProperties": 2}}, "$defs": {"y": {"$ref": "#/dependencies/x"}}}),
            vec![json!([1])],
            vec![json!(["a"])],
        ),
        // Rewrites without loss.
        (
            json!({"minimum": 1, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false}),
            vec![json!(2), json!(9)],
            vec![json!(1), json!(10)],
        ),
        (json!({"exclusiveMinimum": true}), vec![json!(1)], vec![]),
        (
            json!({"type": "any", "maxLength": 1}),
            vec![json!(1), json!("a")],
            vec![json!("ab")],
        ),
        (json!({"type": ["string", "any"]}), vec![json!(1)], vec![]),
        (
            json!({"type": ["string", "string"]}),
            vec![json!("a")],
            vec![json!(1)],
        ),
        (
            json!({"required": ["a", "a"]}),
            vec![json!({"a": 1})],
            vec![json!({})],
        ),
        (
            json!({"properties": {"a": {"required": false}}}),
            vec![json!({})],
            vec![],
        ),
        (
            json!({"type": "string", "nullable": true}),
            vec![json!("a"), json!(null)],
            vec![json!(1)],
        ),
        (
            json!({"type": "object", "properties": {"a": {"$recursiveRef": "#"}}}),
            vec![json!({"a": {"a": {}}})],
            vec![json!({"a": {"a": 1}})],
        ),
    ] {
        assert!(taken(schema.clone()).skipped.is_empty(), "{schema}");
        fits_all(&schema, &good, &bad);
    }
}

/// Holds: BASE-46
#[test]
fn a_named_dialect_keeps_its_meaning() {
    let of = |name: &str, mut schema: Value| {
        schema["$schema"] = json!(format!("http://json-schema.org/{name}/schema#"));
        schema
    };
    // Before 2019-09, siblings of `$ref` are ignored, even a new base of references.
    for name in ["draft-04", "draft-06", "draft-07"] {
        let schema = json!({"definitions": {"s": {"type": "string"}}, "properties": {"a":
            {"$ref": "#/definitions/s", "maxLength": 1, "$id": "other", "definitions": {"s": {"type": "integer"}}}}});
        fits_all(
            &of(name, schema),
            &[json!({"a": "long"})],
            &[json!({"a": 1})],
        );
        let tuple = json!({"items": [{"type": "string"}], "additionalItems": false});
        fits_all(
            &of(name, tuple),
            &[json!(["a"])],
            &[json!([1]), json!(["a", 1])],
        );
    }
    let exclusive = json!({"minimum": 1, "exclusiveMinimum": true});
    fits_all(&of("draft-04", exclusive), &[json!(2)], &[json!(1)]);
    let id = json!({"id": "http://x.test/s", "definitions": {"n": {"id": "#n", "type": "number"}}, "properties": {"a": {"$ref": "#n"}}});
    fits_all(
        &of("draft-04", id),
        &[json!({"a": 1})],
        &[json!({"a": "x"})],
    );
    fits_all(
        &of("draft-07", json!({"prefixItems": [{"type": "string"}]})),
        &[json!([1])],
        &[],
    );
    let old = json!({"type": "object", "$recursiveAnchor": true, "properties": {"a": {"$recursiveRef": "#"}, "t": {"items": [{"type": "string"}]}}});
    fits_all(
        &of("draft/2019-09", old),
        &[json!({"a": {}, "t": ["a"]})],
        &[json!({"a": {"a": 1}}), json!({"t": [1]})],
    );
    // A nested schema that a generator wrote as a standalone document.
    let nested = of("draft-07", json!({"$ref": "#/$defs/s", "maxLength": 1}));
    let nested = json!({"$defs": {"s": {"type": "string"}}, "properties": {"a": nested}});
    fits_all(&nested, &[json!({"a": "long"})], &[json!({"a": 1})]);
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
        refused(json!({"$ref": out}), "leads out of the schema");
        refused(
            json!({"properties": {"a": {"$dynamicRef": out}}}),
            "leads out of the schema",
        );
        refused(
            json!({"x-unknown": {"deep": [{"$ref": out}]}}),
            "leads out of the schema",
        );
    }
    // A foreign base does not make an external reference valid.
    refused(
        json!({"$id": "https://evil.test/a", "$ref": "b.json"}),
        "leads out of the schema",
    );
    refused(
        json!({"$ref": "https://json-schema.org/draft/2020-12/schema"}),
        "leads out of the schema",
    );
    refused(
        json!({"$ref": "#/$defs/none"}),
        "does not lead to a subschema",
    );
    refused(json!({"$ref": "#none"}), "does not lead to a subschema");
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
    refused(deep(33), "more than 32 levels deep");
    let parts = |n: usize| json!({"anyOf": vec![json!({}); n - 1]});
    taken(parts(2000));
    refused(parts(2001), "more than 2000 subschemas");
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
    // Doubles with each level of the value: accepted, but deep values are rejected before they are checked.
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
}

#[test]
fn patterns_with_look_around_are_checked() {
    for (pattern, good, bad) in [
        ("^(?=.*\\d)(?=.*[a-z]).{8,}$", "abcdefg1", "abcdefgh"),
        ("^(?!\\s*$).+", "a", "  "),
        ("^(a|b)\\1$", "aa", "ab"),
        ("(?<!x)y$", "ay", "xy"),
        ("^(?<q>['\"]).*\\k<q>$", "'a'", "'a\""),
    ] {
        let schema = json!({"pattern": pattern});
        let compiled = taken(schema.clone());
        assert!(
            compiled.skipped.is_empty() && compiled.backtracks,
            "{pattern}"
        );
        assert!(compile(&schema).unwrap().plain.is_none());
        assert!(problems(&compiled, &json!(good)).is_empty(), "{pattern}");
        let found = problems(&compiled, &json!(bad));
        assert!(
            found[0].expected.starts_with("text that fits the pattern"),
            "{found:?}"
        );
    }
    let names = json!({"patternProperties": {"^(?!x-).": {"type": "string"}}, "additionalProperties": {"type": "integer"}});
    fits_all(
        &names,
        &[json!({"a": "s", "x-a": 1})],
        &[json!({"a": 1}), json!({"x-a": "s"})],
    );
}

/// A pattern is compiled and matched in bounded time, however it is built.
#[test]
fn hostile_patterns_are_bounded() {
    let start = std::time::Instant::now();
    for pattern in [
        "(?=((a{1,100}){1,100}){1,100})b".to_owned(),
        "((((?=a)a{1,500}){1,500}){1,500}){1,500}b".to_owned(),
        format!("{}a{}", "(?=".repeat(60), ")".repeat(60)),
        format!("{}a{}", "(?:(?!b)".repeat(1000), ")*".repeat(1000)),
        format!("(a*)*{}b", "\\1".repeat(1000)),
        format!("(?=x|{})(.*)*\\1$", "(.*a|b)*|".repeat(500)),
        "(?<=(a|aa)*)*b".to_owned(),
        format!("(?!{})", "[\\p{L}\\p{N}]{500}".repeat(20)),
    ] {
        for schema in [
            json!({"pattern": pattern}),
            json!({"patternProperties": {pattern.clone(): false}}),
        ] {
            let Ok(schema) = compile(&schema) else {
                continue;
            };
            for length in [30, 3000, 300_000] {
                let text = format!("{}!", "a".repeat(length));
                problems(&schema, &json!(text));
                problems(&schema, &json!({text: 1}));
            }
        }
    }
    assert!(start.elapsed().as_secs() < 300, "{:?}", start.elapsed());
}

/// If a match reaches its bound, the value is rejected, wherever the pattern stands.
#[test]
fn a_match_that_reaches_its_bound_is_a_refusal() {
    let evil = json!({"pattern": "^(?=(a|a)*b)(a|a)*\\1c$"});
    let value = json!(format!("{}!", "a".repeat(60)));
    let start = std::time::Instant::now();
    for schema in [
        evil.clone(),
        json!({"not": evil}),
        json!({"if": evil, "then": false}),
        json!({"anyOf": [evil, true]}),
        json!({"not": {"not": evil}}),
        json!({"oneOf": [evil, {"type": "string"}]}),
        json!({"properties": {"a": true}, "propertyNames": true, "not": evil}),
    ] {
        let found = problems(&taken(schema.clone()), &value);
        assert_eq!(found.len(), 1, "{schema}");
        assert!(found[0].expected.contains("bounded time"), "{found:?}");
    }
    let names = json!({"patternProperties": {"^(?=(a|a)*b)(a|a)*\\1c$": false}});
    let found = problems(&taken(names), &json!({value.as_str().unwrap(): 1}));
    assert!(found[0].expected.contains("bounded time"), "{found:?}");
    assert!(start.elapsed().as_secs() < 60);
    // The next value gets a fresh time limit.
    assert!(problems(&taken(json!({"pattern": "(?=a)a"})), &json!("a")).is_empty());
}

/// A keyword that cannot be checked is skipped, and the rest is checked.
#[test]
fn broken_keywords_are_skipped() {
    for (schema, at, good, bad) in [
        (
            json!({"type": "strnig", "maxLength": 2}),
            "/type",
            json!(7),
            json!("abc"),
        ),
        (
            json!({"properties": [], "minProperties": 1}),
            "/properties",
            json!({"a": 1}),
            json!({}),
        ),
        (
            json!({"pattern": "(", "minLength": 2}),
            "/pattern",
            json!("ab"),
            json!("a"),
        ),
        (
            json!({"pattern": "((a{1,500}){1,500}){1,500}", "type": "string"}),
            "/pattern",
            json!("b"),
            json!(1),
        ),
        (
            json!({"required": "a", "type": "object"}),
            "/required",
            json!({}),
            json!(1),
        ),
        (
            json!({"required": [1], "type": "object"}),
            "/required",
            json!({}),
            json!(1),
        ),
        (
            json!({"minLength": "5", "maxLength": 6}),
            "/minLength",
            json!("a"),
            json!("1234567"),
        ),
        (
            json!({"items": "x", "maxItems": 1}),
            "/items",
            json!([1]),
            json!([1, 2]),
        ),
        (
            json!({"properties": {"a": null, "b": {"type": "string"}}}),
            "/properties/a",
            json!({"a": 1}),
            json!({"b": 1}),
        ),
        (
            json!({"anyOf": [{"type": "string"}, 7], "maxLength": 3}),
            "/anyOf/1",
            json!("a"),
            json!("abcd"),
        ),
        (
            json!({"properties": [], "additionalProperties": false, "type": "object"}),
            "/properties",
            json!({"a": 1}),
            json!(1),
        ),
        (
            json!({"patternProperties": {"(": {}}, "additionalProperties": false, "type": "object"}),
            "/patternProperties/(",
            json!({"a": 1}),
            json!(1),
        ),
        (
            json!({"allOf": [{"properties": []}], "unevaluatedProperties": false, "type": "object"}),
            "/allOf/0/properties",
            json!({"a": 1}),
            json!(1),
        ),
        (
            json!({"properties": {"a": {"type": "int", "maximum": 3}}}),
            "/properties/a/type",
            json!({"a": 2}),
            json!({"a": 4}),
        ),
        (
            json!({"properties": {"a": {"type": "string", "required": true}}}),
            "/properties/a/required",
            json!({}),
            json!({"a": 1}),
        ),
    ] {
        let skipped = taken(schema.clone()).skipped;
        assert!(
            skipped[0].starts_with(&format!("{at} (")),
            "{schema}: {skipped:?}"
        );
        fits_all(&schema, &[good], &[bad]);
    }
}

/// A weakened schema below a negation would reject more values, or all.
#[test]
fn negations_of_what_is_not_checked_are_not_checked() {
    let broken = json!({"type": "strnig"});
    for schema in [
        json!({"not": broken}),
        json!({"not": {"properties": {"a": broken}}}),
        json!({"not": {"$ref": "#/$defs/b"}, "$defs": {"b": broken}}),
        json!({"not": {"allOf": [{"$ref": "#/$defs/c"}]}, "$defs": {"b": broken, "c": {"$ref": "#/$defs/b"}}}),
        json!({"if": broken, "then": false}),
        json!({"oneOf": [broken, {"type": "object"}]}),
        json!({"not": {"$ref": "#b"}, "$defs": {"b": {"$anchor": "b", "type": "strnig"}}}),
    ] {
        let compiled = taken(schema.clone());
        assert_eq!(compiled.skipped.len(), 2, "{:?}", compiled.skipped);
        assert!(problems(&compiled, &json!({"a": 1})).is_empty(), "{schema}");
    }
    // A negation without the weakened schema stays.
    let other = json!({"not": {"type": "string"}, "properties": {"a": broken}});
    fits_all(&other, &[json!({"a": 1})], &[json!("a")]);
}

#[test]
fn explains_each_kind_of_error() {
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
            ": unique items, an array of 2 items",
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
            ": a value that fits one of the forms in the schema, an object of 0 members",
        ),
        (
            json!({"required": ["a/b"]}),
            json!({}),
            "/a~1b: a value, because it is required, nothing",
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
fn reports_unknown_members() {
    for key in ["additionalProperties", "unevaluatedProperties"] {
        let closed = json!({"properties": {"path": {}}, key: false});
        assert_eq!(
            said(closed.clone(), json!({"pth": 1})),
            ["/pth: no member of this name (did you mean \"path\"?), a number"]
        );
        assert_eq!(
            said(closed.clone(), json!({"note": 1})),
            ["/note: no member of this name (there are \"path\"), a number"]
        );
        assert_eq!(
            said(closed, json!({"x": 1, "y": 2})),
            [": no members \"x\", \"y\" (there are \"path\"), an object of 2 members"]
        );
    }
}

#[test]
fn reports_at_most_eight_problems() {
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
