//! Fast path for plain JSON Schema keywords, which most tools use, without a compiled validator.
//!
//! It can only accept. The compiled validator, built on demand, judges all other values and writes the errors. A
//! schema that is not plain, or violates its meta-schema, has no fast path.

use jsonschema::Draft;
use serde_json::{Map, Number, Value};
use std::cmp::Ordering;
use toolgate_core::View;
use toolgate_wire::json::Kind;

/// Checks that a value must all pass.
pub(super) struct Plain(Vec<Check>);

/// A check for one keyword, or for two that depend on each other.
enum Check {
    Never,
    /// Bit set over [`TYPES`].
    Type(u8),
    Enum(Vec<Value>),
    Limit(Number, fn(Ordering) -> bool),
    /// Minimum and maximum count: characters of a string, items of a list, members of an object.
    Length(u64, u64),
    Items(u64, u64),
    Members(u64, u64),
    Required(Vec<String>),
    /// Named members, sorted by name, and the checks of all others.
    Properties(Vec<(String, Plain)>, Plain),
    Each(Plain),
    All(Vec<Plain>),
    Any(Vec<Plain>),
    One(Vec<Plain>),
    Not(Plain),
}

const TYPES: [&str; 7] = [
    "null", "boolean", "object", "array", "string", "number", "integer",
];
const NULL: u8 = 1;
const BOOLEAN: u8 = 1 << 1;
const OBJECT: u8 = 1 << 2;
const ARRAY: u8 = 1 << 3;
const STRING: u8 = 1 << 4;
const NUMBER: u8 = 1 << 5;
const INTEGER: u8 = 1 << 6;

impl Plain {
    /// Returns the checks of a schema, if all of it is plain and well-formed.
    pub(super) fn of(schema: &Value, draft: Draft) -> Option<Plain> {
        // The other drafts differ in keywords that are plain here.
        if !matches!(draft, Draft::Draft202012 | Draft::Draft7) {
            return None;
        }
        match schema {
            Value::Object(schema) => read(schema, draft, true),
            schema => part(schema, draft),
        }
    }

    /// Returns whether a value passes all checks. The JSON parser bounds the recursion.
    pub(super) fn takes(&self, value: &Value) -> bool {
        self.0.iter().all(|check| check.takes(value))
    }

    /// Returns whether an unparsed value passes all checks, without building a tree.
    pub(super) fn takes_text(&self, value: &View<'_>) -> bool {
        self.0.iter().all(|check| check.takes_text(value))
    }
}

fn part(schema: &Value, draft: Draft) -> Option<Plain> {
    match schema {
        Value::Bool(true) => Some(Plain(Vec::new())),
        Value::Bool(false) => Some(Plain(vec![Check::Never])),
        Value::Object(schema) => read(schema, draft, false),
        _ => None,
    }
}

fn parts(schemas: &Value, draft: Draft) -> Option<Vec<Plain>> {
    let schemas = schemas.as_array().filter(|list| !list.is_empty())?;
    schemas.iter().map(|schema| part(schema, draft)).collect()
}

fn read(schema: &Map<String, Value>, draft: Draft, root: bool) -> Option<Plain> {
    let mut checks = Vec::new();
    for (key, value) in schema {
        let known = match key.as_str() {
            // The dialect was checked before.
            "$schema" => root && value.is_string(),
            "title" | "description" | "$comment" => value.is_string(),
            "readOnly" | "writeOnly" | "deprecated" => value.is_boolean(),
            "examples" => value.is_array(),
            "default" => true,
            // Draft-07 validates formats.
            "format" => value.is_string() && draft == Draft::Draft202012,
            "uniqueItems" => value == &Value::Bool(false),
            _ => {
                let check = keyword(key, value, draft);
                check.map(|check| checks.extend(check)).is_some()
            }
        };
        if !known {
            return None;
        }
    }
    checks.extend(properties(schema, draft)?);
    Some(Plain(checks))
}

/// Returns the check of a keyword: `None` if it is not plain, `Some(None)` if it is checked with another one.
fn keyword(key: &str, value: &Value, draft: Draft) -> Option<Option<Check>> {
    let limit = |holds| Some(Check::Limit(value.as_number()?.clone(), holds));
    Some(Some(match key {
        "type" => Check::Type(types(value)?),
        "enum" => Check::Enum(value.as_array()?.clone()),
        "const" => Check::Enum(vec![value.clone()]),
        "minimum" => limit(Ordering::is_ge)?,
        "maximum" => limit(Ordering::is_le)?,
        "exclusiveMinimum" => limit(Ordering::is_gt)?,
        "exclusiveMaximum" => limit(Ordering::is_lt)?,
        "minLength" => Check::Length(value.as_u64()?, u64::MAX),
        "maxLength" => Check::Length(0, value.as_u64()?),
        "minItems" => Check::Items(value.as_u64()?, u64::MAX),
        "maxItems" => Check::Items(0, value.as_u64()?),
        "minProperties" => Check::Members(value.as_u64()?, u64::MAX),
        "maxProperties" => Check::Members(0, value.as_u64()?),
        "required" => Check::Required(names(value)?),
        "items" => Check::Each(part(value, draft)?),
        "allOf" => Check::All(parts(value, draft)?),
        "anyOf" => Check::Any(parts(value, draft)?),
        "oneOf" => Check::One(parts(value, draft)?),
        "not" => Check::Not(part(value, draft)?),
        // [`properties`] reads both together.
        "properties" | "additionalProperties" => return Some(None),
        _ => return None,
    }))
}

fn types(value: &Value) -> Option<u8> {
    let one = |value: &Value| {
        let at = TYPES.iter().position(|name| value == name)?;
        Some(1_u8 << at)
    };
    let Value::Array(list) = value else {
        return one(value);
    };
    let all = list.iter().try_fold(0, |set, value| {
        let bit = one(value)?;
        (set & bit == 0).then_some(set | bit)
    })?;
    (all != 0).then_some(all)
}

fn names(value: &Value) -> Option<Vec<String>> {
    let names = value.as_array()?.iter();
    let names: Vec<String> = names
        .map(|name| name.as_str().map(str::to_owned))
        .collect::<Option<_>>()?;
    let mut sorted: Vec<&String> = names.iter().collect();
    sorted.sort_unstable();
    let differ = sorted.windows(2).all(|two| two[0] != two[1]);
    differ.then_some(names)
}

fn properties(schema: &Map<String, Value>, draft: Draft) -> Option<Option<Check>> {
    let (named, others) = (schema.get("properties"), schema.get("additionalProperties"));
    if named.is_none() && others.is_none() {
        return Some(None);
    }
    let mut members = Vec::new();
    if let Some(named) = named {
        for (name, schema) in named.as_object()? {
            members.push((name.clone(), part(schema, draft)?));
        }
    }
    members.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    let others = others.map_or(Some(Plain(Vec::new())), |others| part(others, draft))?;
    Some(Some(Check::Properties(members, others)))
}

impl Check {
    fn takes(&self, value: &Value) -> bool {
        let within =
            |count: usize, least: &u64, most: &u64| (*least..=*most).contains(&(count as u64));
        match (self, value) {
            (Check::Never, _) => false,
            (Check::Type(types), value) => types & kinds(value) != 0,
            (Check::Enum(values), value) => values.iter().any(|one| equal(one, value)),
            (Check::Limit(limit, holds), Value::Number(number)) => {
                order(number, limit).is_some_and(holds)
            }
            (Check::Length(least, most), Value::String(text)) => {
                within(text.chars().count(), least, most)
            }
            (Check::Items(least, most), Value::Array(items)) => within(items.len(), least, most),
            (Check::Members(least, most), Value::Object(map)) => within(map.len(), least, most),
            (Check::Required(names), Value::Object(map)) => {
                names.iter().all(|name| map.contains_key(name))
            }
            (Check::Properties(named, others), Value::Object(map)) => {
                map.iter().all(|(name, value)| {
                    let found = named.binary_search_by(|(known, _)| known.as_str().cmp(name));
                    found.map_or(others, |at| &named[at].1).takes(value)
                })
            }
            (Check::Each(plain), Value::Array(items)) => items.iter().all(|item| plain.takes(item)),
            (Check::All(all), value) => all.iter().all(|plain| plain.takes(value)),
            (Check::Any(any), value) => any.iter().any(|plain| plain.takes(value)),
            (Check::One(one), value) => {
                one.iter()
                    .filter(|plain| plain.takes(value))
                    .take(2)
                    .count()
                    == 1
            }
            (Check::Not(plain), value) => !plain.takes(value),
            _ => true,
        }
    }

    fn takes_text(&self, value: &View<'_>) -> bool {
        let within =
            |count: usize, least: &u64, most: &u64| (*least..=*most).contains(&(count as u64));
        match (self, value.kind()) {
            (Check::Never, _) => false,
            (Check::Type(types), kind) => types & kind_of(kind, value) != 0,
            (Check::Enum(values), Kind::String) => {
                let text = value.str_cow();
                values.iter().any(|one| one.as_str() == text.as_deref())
            }
            // Scalars are their own tree; lists and objects in `enum` are rare.
            (Check::Enum(_), _) | (Check::Limit(..), Kind::Number) => self.takes(&value.to_value()),
            (Check::Length(least, most), Kind::String) => {
                let text = value.str_cow().unwrap_or_default();
                within(text.chars().count(), least, most)
            }
            (Check::Items(least, most), Kind::Array) => within(value.items().count(), least, most),
            (Check::Members(least, most), Kind::Object) => {
                within(value.members().count(), least, most)
            }
            (Check::Required(names), Kind::Object) => {
                let has = |name: &String| value.members().any(|(key, _)| key == name.as_str());
                names.iter().all(has)
            }
            (Check::Properties(named, others), Kind::Object) => {
                value.members().all(|(name, value)| {
                    let found = named.binary_search_by(|(known, _)| known.as_str().cmp(&name));
                    found.map_or(others, |at| &named[at].1).takes_text(&value)
                })
            }
            (Check::Each(plain), Kind::Array) => value.items().all(|item| plain.takes_text(&item)),
            (Check::All(all), _) => all.iter().all(|plain| plain.takes_text(value)),
            (Check::Any(any), _) => any.iter().any(|plain| plain.takes_text(value)),
            (Check::One(one), _) => {
                let takes = one.iter().filter(|plain| plain.takes_text(value));
                takes.take(2).count() == 1
            }
            (Check::Not(plain), _) => !plain.takes_text(value),
            _ => true,
        }
    }
}

/// Returns the JSON Schema types of an unparsed value, as a bit set.
fn kind_of(kind: Kind, value: &View<'_>) -> u8 {
    match kind {
        Kind::Null => NULL,
        Kind::Bool => BOOLEAN,
        Kind::Object => OBJECT,
        Kind::Array => ARRAY,
        Kind::String => STRING,
        Kind::Number => kinds(&value.to_value()),
    }
}

/// Returns the JSON Schema types of a value, as a bit set.
fn kinds(value: &Value) -> u8 {
    match value {
        Value::Null => NULL,
        Value::Bool(_) => BOOLEAN,
        Value::Object(_) => OBJECT,
        Value::Array(_) => ARRAY,
        Value::String(_) => STRING,
        Value::Number(number) => match exact(number) {
            Exact::Float(float) if float.fract() != 0.0 => NUMBER,
            _ => NUMBER | INTEGER,
        },
    }
}

/// A JSON number without loss of precision.
enum Exact {
    Integer(i128),
    Float(f64),
}

fn exact(number: &Number) -> Exact {
    let positive = number.as_u64().map(i128::from);
    let integer = positive.or_else(|| number.as_i64().map(i128::from));
    // Without the `arbitrary_precision` feature, every other number is a float.
    integer.map_or_else(
        || Exact::Float(number.as_f64().unwrap_or(f64::NAN)),
        Exact::Integer,
    )
}

/// Compares two numbers without rounding; `None` for NaN.
fn order(one: &Number, other: &Number) -> Option<Ordering> {
    match (exact(one), exact(other)) {
        (Exact::Integer(one), Exact::Integer(other)) => Some(one.cmp(&other)),
        (Exact::Float(one), Exact::Float(other)) => one.partial_cmp(&other),
        (Exact::Integer(one), Exact::Float(other)) => beside(one, other),
        (Exact::Float(one), Exact::Integer(other)) => beside(other, one).map(Ordering::reverse),
    }
}

/// Compares an integer of at most 65 bits with a float. A huge float is truncated far beyond that range, which
/// changes nothing.
fn beside(integer: i128, float: f64) -> Option<Ordering> {
    let rest = 0.0.partial_cmp(&float.fract())?;
    Some(integer.cmp(&(float.trunc() as i128)).then(rest))
}

/// Returns whether two values are equal in the sense of JSON Schema: 1 equals 1.0.
fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            order(one, other).is_some_and(Ordering::is_eq)
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let same = |(name, value)| other.get(name).is_some_and(|other| equal(value, other));
            one.len() == other.len() && one.iter().all(same)
        }
        (one, other) => one == other,
    }
}
