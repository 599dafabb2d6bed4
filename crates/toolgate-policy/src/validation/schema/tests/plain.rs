//! The fast path agrees with the compiled validator on every value, and rejects every schema that the compiler
//! rejects.

use super::{
    super::budget::fits, BUILT, COMPILED, FAST_PATH_KEYWORDS, SchemaValidator, compile, problems,
    taken,
};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Map, Value, json};
use toolgate_core::Json;
use toolgate_protocol::json::JsonLimits;

/// Numbers at which 64-bit integers, floats and integers differ.
fn edges() -> Vec<Value> {
    vec![
        json!(0),
        json!(-0.0),
        json!(1),
        json!(1.0),
        json!(-1),
        json!(2),
        json!(3),
        json!(0.5),
        json!(-1.5),
        json!(1e300),
        json!(-1e300),
        json!(5e-324),
        json!(9_007_199_254_740_991_u64),
        json!(9_007_199_254_740_992_u64),
        json!(9_007_199_254_740_992.0),
        json!(9_007_199_254_740_993_u64),
        json!(i64::MAX),
        json!(9_223_372_036_854_775_808_u64),
        json!(9_223_372_036_854_775_808.0),
        json!(i64::MIN),
        json!(-9_223_372_036_854_775_808.0),
        json!(u64::MAX),
        json!(18_446_744_073_709_551_616.0),
    ]
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => select(edges()),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<u64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        2 => (-3_i64..4).prop_map(Value::from),
    ]
}

const TEXTS: [&str; 9] = [
    "",
    "a",
    "b",
    "ab",
    "é",
    "e\u{301}",
    "👍",
    "👍👍👍",
    "a@b.test",
];

fn text() -> impl Strategy<Value = String> {
    select(TEXTS.to_vec()).prop_map(str::to_owned)
}

/// Small values at which results change, alone and nested.
fn probes() -> Vec<Value> {
    let mut all = edges();
    all.extend(TEXTS.map(Value::from));
    all.extend([
        json!(null),
        json!(true),
        json!([]),
        json!({}),
        json!({"a": 1, "b": 2, "c": 3}),
    ]);
    let inner: Vec<Value> = all.iter().step_by(2).cloned().collect();
    all.extend(inner.iter().map(|one| json!([one])));
    all.extend(inner.iter().map(|one| json!({"a": one})));
    all
}

fn name() -> impl Strategy<Value = String> {
    select(vec!["a", "b", "c", "é", "$schema", "type", "a/b~"]).prop_map(str::to_owned)
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        3 => number(),
        3 => text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            1 => vec(inner.clone(), 0..4).prop_map(Value::from),
            2 => vec((name(), inner), 0..4).prop_map(|all| Value::Object(all.into_iter().collect())),
        ]
    })
}

fn kind() -> impl Strategy<Value = Value> {
    let kinds = [
        "null", "boolean", "object", "array", "string", "number", "integer",
    ];
    select(kinds.to_vec()).prop_map(Value::from)
}

fn keys(keys: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    select(keys)
}

const COUNTS: [&str; 6] = [
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
];
const LIMITS: [&str; 4] = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];
/// Keywords with valid values.
fn leaf() -> impl Strategy<Value = (&'static str, Value)> {
    prop_oneof![
        4 => kind().prop_map(|kind| ("type", kind)),
        1 => vec(kind(), 0..4).prop_map(|kinds| ("type", Value::from(kinds))),
        2 => vec(value(), 0..4).prop_map(|values| ("enum", Value::from(values))),
        1 => value().prop_map(|value| ("const", value)),
        3 => (keys(&LIMITS), number()),
        3 => (keys(&COUNTS), (0_u64..4).prop_map(Value::from)),
        2 => vec(name(), 0..3).prop_map(|names| ("required", Value::from(names))),
        1 => any::<bool>().prop_map(|yes| ("additionalProperties", Value::from(yes))),
        1 => any::<bool>().prop_map(|yes| ("uniqueItems", Value::from(yes))),
        1 => text().prop_map(|text| ("title", Value::from(text))),
        1 => value().prop_map(|value| ("default", value)),
        1 => vec(value(), 0..2).prop_map(|values| ("examples", Value::from(values))),
        1 => select(vec!["email", "regex", "uuid", "odd"]).prop_map(|name| ("format", Value::from(name))),
        1 => any::<bool>().prop_map(|yes| ("writeOnly", Value::from(yes))),
        1 => any::<bool>().prop_map(|yes| ("nullable", Value::from(yes))),
        1 => select(vec!["any", "strnig"]).prop_map(|name| ("type", Value::from(name))),
        1 => (select(vec!["exclusiveMinimum", "exclusiveMaximum"]), any::<bool>().prop_map(Value::from)),
        1 => vec(name(), 1..3).prop_map(|names| ("dependencies", json!({"a": names}))),
        1 => vec(kind(), 1..3).prop_map(|kinds| ("items", kinds.into_iter().map(|kind| json!({"type": kind})).collect())),
    ]
}

fn object(all: Vec<(&'static str, Value)>) -> Value {
    let all = all.into_iter().map(|(key, value)| (key.to_owned(), value));
    Value::Object(all.collect())
}

/// A schema without subschemas.
fn small(odd: u32) -> impl Strategy<Value = Value> {
    // The keywords of the fast path, and one that it does not have.
    let all = [&FAST_PATH_KEYWORDS[..], &["x-other"]].concat();
    let key = prop_oneof![
        20 => leaf(),
        odd => (select(all), value()),
    ];
    prop_oneof![
        12 => vec(key, 0..4).prop_map(object),
        1 => any::<bool>().prop_map(Value::from),
    ]
}

fn schema(odd: u32) -> impl Strategy<Value = Value> {
    small(odd).prop_recursive(3, 24, 4, move |inner| {
        let named = vec((name(), inner.clone()), 0..4);
        let named = named.prop_map(|all| Value::Object(all.into_iter().collect::<Map<_, _>>()));
        let applied = prop_oneof![
            4 => named.prop_map(|named| ("properties", named)),
            2 => (keys(&["additionalProperties", "items", "not"]), inner.clone()),
            2 => (keys(&["allOf", "anyOf", "oneOf"]), vec(inner, 0..4).prop_map(Value::from)),
            3 => leaf(),
        ];
        vec(applied, 0..5).prop_map(object)
    })
}

/// A schema with or without a named dialect.
fn whole(odd: u32) -> impl Strategy<Value = Value> {
    let dialects = [
        None,
        None,
        Some("https://json-schema.org/draft/2020-12/schema"),
        Some("https://json-schema.org/draft/2019-09/schema"),
        Some("http://json-schema.org/draft-07/schema#"),
        Some("http://json-schema.org/draft-06/schema#"),
        Some("http://json-schema.org/draft-04/schema#"),
    ];
    let schema = prop_oneof![1 => small(odd), 2 => schema(odd)];
    (schema, select(dialects.to_vec())).prop_map(|(mut schema, dialect)| {
        if let (Some(schema), Some(dialect)) = (schema.as_object_mut(), dialect) {
            schema.insert("$schema".to_owned(), dialect.into());
        }
        schema
    })
}

/// Both forms agree: on the result, and on every word of the message.
fn agree(schema: &Value, values: &[Value]) -> Result<bool, TestCaseError> {
    let Ok(mut plain) = compile(schema) else {
        return Ok(false);
    };
    let Some(form) = plain.plain.take() else {
        return Ok(false);
    };
    // From here on it is judged as if it were not plain.
    let compiled = plain;
    if let Err(why) = compiled.validator() {
        return Err(TestCaseError::fail(format!("plain, but {why}: {schema}")));
    }
    for value in values.iter().chain(&probes()) {
        let fits = compiled.validator().unwrap().is_valid(value);
        prop_assert_eq!(form.accepts(value), fits, "{} in {}", value, schema);
        let text = Json::from_value(value);
        prop_assert_eq!(
            form.accepts_text(&text.view()),
            fits,
            "{} in {} as it stands",
            value,
            schema
        );
    }
    let said: Vec<_> = values
        .iter()
        .map(|value| problems(&compiled, value))
        .collect();
    let plain = SchemaValidator {
        plain: Some(form),
        ..compiled
    };
    for (value, said) in values.iter().zip(said) {
        prop_assert_eq!(problems(&plain, value), said);
    }
    Ok(true)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Nearly all of these are well-formed.
    #[test]
    fn plain_schemas_say_what_compiled_ones_say(schema in whole(0), values in vec(value(), 6)) {
        agree(&schema, &values)?;
    }

    /// Any value for any keyword: a schema that violates the meta-schema is not plain.
    #[test]
    fn what_is_ill_formed_is_not_plain(schema in whole(6), values in vec(value(), 2)) {
        agree(&schema, &values)?;
    }
}

/// Without plain schemas the properties above would hold trivially.
#[test]
fn most_random_schemas_are_plain() {
    use proptest::{strategy::ValueTree, test_runner::TestRunner};
    let mut runner = TestRunner::deterministic();
    let (mut plain, mut fit, mut all) = (0, 0, 0);
    for _ in 0..400 {
        let schema = whole(0).new_tree(&mut runner).unwrap().current();
        let value = value().new_tree(&mut runner).unwrap().current();
        if let Ok(schema) = compile(&schema)
            && let Some(form) = &schema.plain
        {
            plain += 1;
            fit += usize::from(form.accepts(&value));
        }
        all += 1;
    }
    assert!(plain * 3 > all, "{plain} of {all}");
    assert!(fit * 10 > plain && fit * 10 < plain * 9, "{fit} of {plain}");
}

/// Schemas of real servers.
#[test]
fn most_real_schemas_are_plain() {
    let lines = include_str!("../../../../tests/it/schemas/real/tools.jsonl").lines();
    let values = [
        json!({}),
        json!({"path": "a", "query": 1, "limit": 10, "name": null}),
        json!({"path": 7, "query": "a", "limit": 1.5, "name": "a"}),
        json!([]),
    ];
    let (mut plain, mut all) = (0, 0);
    for line in lines.filter(|line| !line.is_empty()) {
        let line: Value = serde_json::from_str(line).unwrap();
        plain += usize::from(agree(&line["schema"], &values).unwrap());
        all += 1;
    }
    assert!(plain * 5 > all * 4, "{plain} of {all}");
}

/// A schema with a broken keyword is compiled at once, so that its tool is marked before the first call.
#[test]
fn schemas_with_broken_keywords_are_not_plain() {
    let in_member = |schema: &Value| json!({"type": "object", "properties": {"a": schema}});
    for schema in [
        json!({"type": 7}),
        json!({"type": "strnig"}),
        json!({"type": []}),
        json!({"minimum": "x"}),
        json!({"minLength": -1}),
        json!({"maxItems": 1.5}),
        json!({"required": "a"}),
        json!({"required": [1]}),
        json!({"properties": []}),
        json!({"properties": {"a": 7}}),
        json!({"additionalProperties": "no"}),
        json!({"items": "x"}),
        json!({"enum": "x"}),
        json!({"anyOf": []}),
        json!({"oneOf": {}}),
        json!({"not": 7}),
        json!({"title": 7}),
        json!({"description": []}),
        json!({"examples": 7}),
        json!({"writeOnly": "yes"}),
        json!({"format": 7}),
    ] {
        for schema in [in_member(&schema), schema] {
            let skipped = taken(schema.clone()).skipped;
            assert_eq!(skipped.len(), 1, "{schema}: {skipped:?}");
        }
    }
}

/// An unparsed value may only be accepted if its tree is valid too; all other values are left to the tree.
#[test]
fn long_or_deep_values_are_checked_as_trees() {
    let read = |text: String| {
        let limits = JsonLimits {
            depth: JsonLimits::MAX_DEPTH,
            ..JsonLimits::default()
        };
        Json::read(text.into_bytes(), &limits).unwrap()
    };
    let fits_in = |schema: &Value, text: String| fits(&compile(schema), &read(text).view());
    let any = json!({"type": "object", "properties": {"a": {"maxLength": 100_000}}});
    let long = |n: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(n));
    assert!(fits_in(&any, long(1000)));
    assert!(!fits_in(&any, long(100_000)), "it may take its time");
    let deep = |n: usize| format!(r#"{{"a":{}1{}}}"#, "[".repeat(n), "]".repeat(n));
    assert!(fits_in(&any, deep(63)));
    assert!(!fits_in(&any, deep(64)), "one over");
    let found = problems(&compile(&any).unwrap(), &read(deep(64)).to_value());
    assert_eq!(found.len(), 1, "and that is refused");
    let pattern = json!({"pattern": "^a"});
    assert!(!fits_in(&pattern, r#""a""#.to_owned()), "not plain");
    let string = json!({"type": "string"});
    assert!(!fits_in(&string, "7".to_owned()), "wrong");
    let mut slow = compile(&any).unwrap();
    slow.time = std::time::Duration::ZERO;
    assert!(!fits(&Ok(slow), &read(long(1)).view()), "no time");
}

#[test]
fn a_plain_schema_is_compiled_when_a_value_does_not_fit() {
    let (before, built) = (COMPILED.get(), BUILT.get());
    let schema = taken(
        json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}),
    );
    assert!(problems(&schema, &json!({"a": 1.0})).is_empty());
    assert_eq!((COMPILED.get() - before, BUILT.get() - built), (1, 0));
    for _ in 0..2 {
        let found = problems(&schema, &json!({"a": "x"}));
        assert_eq!(found[0].expected, "an integer");
        assert_eq!(BUILT.get() - built, 1);
    }
    // A schema that is not plain is compiled at once.
    taken(json!({"pattern": "^a"}));
    assert_eq!(BUILT.get() - built, 2);
}

/// Builds without the compiler explain with the plain checks.
#[test]
fn the_plain_checks_explain_a_value_as_the_compiler_does() {
    for (schema, value) in [
        (json!({"type": ["integer", "null"]}), json!("a")),
        (json!({"enum": ["a", 1]}), json!("b")),
        (json!({"const": true}), json!(1)),
        (json!({"minimum": 1, "exclusiveMaximum": 3}), json!(0)),
        (json!({"minimum": 1, "exclusiveMaximum": 3}), json!(3)),
        (json!({"maximum": 1}), json!(2)),
        (json!({"exclusiveMinimum": 1}), json!(1)),
        (json!({"minLength": 2}), json!("a")),
        (json!({"maxLength": 2}), json!("abc")),
        (
            json!({"items": {"type": "string"}, "maxItems": 3}),
            json!(["a", 1, []]),
        ),
        (
            json!({"properties": {"a": {"type": "array"}}, "required": ["a", "b"]}),
            json!({"a": {}}),
        ),
        (
            json!({"properties": {"abc": {}}, "additionalProperties": false}),
            json!({"abd": 1}),
        ),
        (
            json!({"properties": {"k": {"type": "integer", "writeOnly": true}}}),
            json!({"k": true}),
        ),
        (
            json!({"anyOf": [{"type": "null"}, {"type": "string"}]}),
            json!(1),
        ),
        (json!({"not": {"type": "null"}}), json!(null)),
        (json!({"properties": {"a": false}}), json!({"a": 1})),
    ] {
        let schema = taken(schema);
        let plain = schema.plain.as_ref().unwrap();
        let own = plain.problems(&schema.tree, &value);
        assert!(!own.is_empty(), "{}", schema.tree);
        assert_eq!(own, problems(&schema, &value), "{}", schema.tree);
    }
}

proptest! {
    #[test]
    fn the_plain_checks_explain_each_value_that_they_reject(schema in whole(0), value in value()) {
        let Ok(schema) = compile(&schema) else { return Ok(()) };
        if let Some(plain) = &schema.plain {
            let problems = plain.problems(&schema.tree, &value);
            prop_assert_eq!(problems.is_empty(), plain.accepts(&value));
        }
    }
}
