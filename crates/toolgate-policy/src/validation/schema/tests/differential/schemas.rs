//! Random schemas of the keywords that the fast path has, and a few others.

use super::{SchemaDraft, random::Random};

use serde_json::{Map, Value, json};

/// Maximum nesting of subschemas.
const MAX_DEPTH: usize = 3;

/// Names of members, with characters that JSON Pointers escape and names of keywords.
pub(super) const NAMES: [&str; 8] = ["a", "b", "c", "é", "👍", "type", "$ref", "a/b~ \""];

/// Texts whose lengths differ in bytes, UTF-16 units and characters, and texts that are numbers.
pub(super) const TEXTS: [&str; 14] = [
    "", "a", "b", "ab", "é", "e\u{301}", "👍", "👍👍", "\u{0}", "a\n\"\\", "1", "1e400", "null",
    "a@b.test",
];

const TYPES: [&str; 7] = [
    "null", "boolean", "object", "array", "string", "number", "integer",
];

/// Returns numbers at which integers and floats of 64 bits differ.
pub(super) fn edge_number(random: &Random) -> Value {
    const TWO_53: u64 = 1 << 53;
    let edges = [
        json!(0),
        json!(-0.0),
        json!(0.0),
        json!(1),
        json!(1.0),
        json!(-1),
        json!(-1.0),
        json!(0.5),
        json!(-1.5),
        json!(0.1),
        json!(1e300),
        json!(-1e300),
        json!(f64::MAX),
        json!(5e-324),
        json!(TWO_53 - 1),
        json!(TWO_53),
        json!(TWO_53 as f64),
        json!(TWO_53 + 1),
        json!(-(TWO_53 as i64) - 1),
        json!(i64::MAX),
        json!(i64::MAX as u64 + 1),
        json!(i64::MAX as f64),
        json!(i64::MIN),
        json!(i64::MIN as f64),
        json!(i64::MIN + 1),
        json!(u64::MAX),
        json!(u64::MAX - 1),
        json!(u64::MAX as f64),
        json!(1e19),
        json!(1.844_674_407_370_955_e19),
    ];
    random.pick(&edges)
}

/// Returns a number, small in most cases.
pub(super) fn number(random: &Random) -> Value {
    match random.below(8) {
        0 => edge_number(random),
        1 => json!((random.below(41) as f64 - 20.0) / 4.0),
        2 => json!(random.next()),
        3 => Value::from(f64::from_bits(random.next())),
        _ => json!(random.below(9) as i64 - 4),
    }
}

/// Returns any value, with at most `depth` levels of nesting.
pub(super) fn value(random: &Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 6 } else { 9 }) {
        0 => Value::Null,
        1 => Value::Bool(random.one_in(2)),
        2 | 3 => number(random),
        4 | 5 => Value::from(random.pick(&TEXTS)),
        6 => (0..random.below(4))
            .map(|_| value(random, depth - 1))
            .collect(),
        _ => {
            let members = (0..random.below(4)).map(|_| (name(random), value(random, depth - 1)));
            Value::Object(members.collect())
        }
    }
}

pub(super) fn name(random: &Random) -> String {
    random.pick(&NAMES).to_owned()
}

/// Returns a whole schema.
pub(super) fn schema(random: &Random, draft: SchemaDraft) -> Value {
    let mut schema = part(random, draft, MAX_DEPTH);
    if let Some(schema) = schema.as_object_mut()
        && random.one_in(4)
    {
        let named = match draft {
            SchemaDraft::Draft7 => "http://json-schema.org/draft-07/schema#",
            _ => "https://json-schema.org/draft/2020-12/schema",
        };
        schema.insert("$schema".to_owned(), named.into());
    }
    schema
}

fn part(random: &Random, draft: SchemaDraft, depth: usize) -> Value {
    if random.one_in(12) {
        return Value::Bool(!random.one_in(4));
    }
    let mut schema = Map::new();
    let mut put = |(key, value): (&str, Value)| schema.insert(key.to_owned(), value);
    // Keywords of one type occur together, as in the schemas of tools.
    let kind = random.pick(&TYPES);
    if !random.one_in(4) {
        put(("type", kind.into()));
    }
    for _ in 0..random.below(3) {
        put(of_type(random, draft, kind, depth));
    }
    if random.one_in(4) {
        put(of_type(random, draft, random.pick(&TYPES), depth));
    }
    if random.one_in(4) {
        put(of_any_type(random, draft, depth));
    }
    if random.one_in(3) {
        put(annotation(random, draft));
    }
    if random.one_in(60) {
        put(not_plain(random));
    }
    Value::Object(schema)
}

/// Returns a keyword that judges values of one type.
fn of_type(random: &Random, draft: SchemaDraft, kind: &str, depth: usize) -> (&'static str, Value) {
    let nested = depth.saturating_sub(1);
    match (kind, random.below(6)) {
        ("object", 0) => ("minProperties", count(random)),
        ("object", 1) => ("maxProperties", count(random)),
        ("object", 2) => ("required", names(random)),
        ("object", 3) if depth > 0 => ("additionalProperties", part(random, draft, nested)),
        ("object", _) if depth > 0 => ("properties", properties(random, draft, nested)),
        ("object", _) => ("required", names(random)),
        ("array", 0 | 1) => ("minItems", count(random)),
        ("array", 2) => ("maxItems", count(random)),
        ("array", _) if depth > 0 => ("items", part(random, draft, nested)),
        ("array", _) => ("uniqueItems", Value::Bool(false)),
        ("string", 0..=2) => ("minLength", count(random)),
        ("string", _) => ("maxLength", count(random)),
        ("number" | "integer", 0 | 1) => ("minimum", number(random)),
        ("number" | "integer", 2 | 3) => ("maximum", number(random)),
        ("number" | "integer", 4) => ("exclusiveMinimum", number(random)),
        ("number" | "integer", _) => ("exclusiveMaximum", number(random)),
        (_, 0) => ("const", value(random, 1)),
        (_, 1) => ("enum", list(random, |random| value(random, 1))),
        (_, _) => ("uniqueItems", Value::Bool(false)),
    }
}

/// Returns a keyword that judges values of any type.
fn of_any_type(random: &Random, draft: SchemaDraft, depth: usize) -> (&'static str, Value) {
    let nested = depth.saturating_sub(1);
    match random.below(if depth == 0 { 3 } else { 8 }) {
        0 => ("enum", list(random, |random| value(random, 2))),
        1 => ("const", value(random, 2)),
        2 => ("type", list(random, |random| random.pick(&TYPES).into())),
        3 => ("allOf", list(random, |random| part(random, draft, nested))),
        4 => ("anyOf", list(random, |random| part(random, draft, nested))),
        5 | 6 => ("oneOf", list(random, |random| part(random, draft, nested))),
        _ => ("not", part(random, draft, nested)),
    }
}

fn annotation(random: &Random, draft: SchemaDraft) -> (&'static str, Value) {
    let text = Value::from(random.pick(&TEXTS));
    let flag = Value::Bool(random.one_in(2));
    match random.below(10) {
        0 => ("title", text),
        1 => ("description", text),
        2 => ("$comment", text),
        3 => ("readOnly", flag),
        4 => ("writeOnly", flag),
        5 => ("deprecated", flag),
        6 => ("examples", list(random, |random| value(random, 1))),
        7 => ("default", value(random, 2)),
        // SchemaDraft-07 validates formats, so there they are not plain.
        8 if draft == SchemaDraft::Draft202012 => {
            ("format", random.pick(&["email", "uuid", "odd"]).into())
        }
        _ => ("uniqueItems", Value::Bool(false)),
    }
}

/// Returns a keyword that the fast path does not have, or one with a value that may violate the meta-schema.
fn not_plain(random: &Random) -> (&'static str, Value) {
    match random.below(12) {
        0 => ("pattern", "^a".into()),
        1 => ("$ref", "#".into()),
        2 => ("multipleOf", json!(2)),
        3 => ("prefixItems", json!([{"type": "null"}])),
        4 => ("items", json!([{"type": "null"}])),
        5 => ("dependencies", json!({"a": ["b"]})),
        6 => ("minLength", json!(2.0)),
        7 => ("exclusiveMinimum", json!(true)),
        8 => ("required", json!(["a", "a"])),
        9 => ("nullable", json!(true)),
        10 => ("uniqueItems", json!(true)),
        _ => (
            random.pick(&["type", "enum", "anyOf", "not", "maxItems", "title"]),
            value(random, 1),
        ),
    }
}

/// Returns a limit of a count, small in most cases.
fn count(random: &Random) -> Value {
    match random.below(16) {
        0 => Value::from(random.pick(&[1 << 32, 1 << 53, i64::MAX as u64, u64::MAX])),
        n => Value::from(n as u64 % 5),
    }
}

fn names(random: &Random) -> Value {
    let mut names: Vec<String> = (0..random.below(4)).map(|_| name(random)).collect();
    names.sort();
    names.dedup();
    names.into()
}

fn properties(random: &Random, draft: SchemaDraft, depth: usize) -> Value {
    let members = (0..random.below(5)).map(|_| (name(random), part(random, draft, depth)));
    Value::Object(members.collect())
}

/// Returns a list of one to three different items.
fn list(random: &Random, mut item: impl FnMut(&Random) -> Value) -> Value {
    let mut all: Vec<Value> = Vec::new();
    for _ in 0..=random.below(3) {
        let next = item(random);
        if !all.contains(&next) {
            all.push(next);
        }
    }
    all.into()
}
