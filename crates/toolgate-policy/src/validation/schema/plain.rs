//! Fast path for plain JSON Schema keywords, which most tools use, without a compiled validator.
//!
//! It can only accept. The compiled validator, built on demand, judges all other values and writes the errors. A
//! schema that is not plain, or violates its meta-schema, has no fast path. A differential fuzz test
//! (`tests/differential.rs`) compares both results.

#[cfg(any(test, not(feature = "full-json-schema")))]
mod problems;

use super::dialect::SchemaDraft;
use serde_json::{Map, Number, Value};
use std::cmp::Ordering;
use toolgate_core::JsonView;
use toolgate_protocol::json::JsonKind;

/// Checks that a value must all pass.
pub(super) struct PlainSchema(Vec<PlainCheck>);

/// A check for one keyword, or for two that depend on each other.
enum PlainCheck {
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
    Properties(Vec<(String, PlainSchema)>, PlainSchema),
    Each(PlainSchema),
    All(Vec<PlainSchema>),
    Any(Vec<PlainSchema>),
    One(Vec<PlainSchema>),
    Not(PlainSchema),
}

const TYPES: [&str; 7] = [
    "null", "boolean", "object", "array", "string", "number", "integer",
];
const NULL_BIT: u8 = 1;
const BOOLEAN_BIT: u8 = 1 << 1;
const OBJECT_BIT: u8 = 1 << 2;
const ARRAY_BIT: u8 = 1 << 3;
const STRING_BIT: u8 = 1 << 4;
const NUMBER_BIT: u8 = 1 << 5;
const INTEGER_BIT: u8 = 1 << 6;

impl PlainSchema {
    /// Returns the checks of a schema, if all of it is plain and well-formed.
    pub(super) fn of(schema: &Value, draft: SchemaDraft) -> Option<PlainSchema> {
        // The other drafts differ in keywords that are plain here.
        if !matches!(draft, SchemaDraft::Draft202012 | SchemaDraft::Draft7) {
            return None;
        }
        match schema {
            Value::Object(schema) => read(schema, draft, true),
            schema => part(schema, draft),
        }
    }

    /// Returns whether a value passes all checks. The JSON parser bounds the recursion.
    pub(super) fn accepts(&self, value: &Value) -> bool {
        self.0.iter().all(|check| check.accepts(value))
    }

    /// Returns whether an unparsed value passes all checks, without building a tree.
    pub(super) fn accepts_text(&self, value: &JsonView<'_>) -> bool {
        self.0.iter().all(|check| check.accepts_text(value))
    }
}

fn part(schema: &Value, draft: SchemaDraft) -> Option<PlainSchema> {
    match schema {
        Value::Bool(true) => Some(PlainSchema(Vec::new())),
        Value::Bool(false) => Some(PlainSchema(vec![PlainCheck::Never])),
        Value::Object(schema) => read(schema, draft, false),
        _ => None,
    }
}

fn parts(schemas: &Value, draft: SchemaDraft) -> Option<Vec<PlainSchema>> {
    let schemas = schemas.as_array().filter(|list| !list.is_empty())?;
    schemas.iter().map(|schema| part(schema, draft)).collect()
}

fn read(schema: &Map<String, Value>, draft: SchemaDraft, root: bool) -> Option<PlainSchema> {
    let mut checks = Vec::new();
    for (key, value) in schema {
        let known = match key.as_str() {
            // The dialect was checked before.
            "$schema" => root && value.is_string(),
            "title" | "description" | "$comment" => value.is_string(),
            "readOnly" | "writeOnly" | "deprecated" => value.is_boolean(),
            "examples" => value.is_array(),
            "default" => true,
            // SchemaDraft-07 validates formats.
            "format" => value.is_string() && draft == SchemaDraft::Draft202012,
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
    Some(PlainSchema(checks))
}

/// Returns the check of a keyword: `None` if it is not plain, `Some(None)` if it is checked with another one.
fn keyword(key: &str, value: &Value, draft: SchemaDraft) -> Option<Option<PlainCheck>> {
    let limit = |holds| Some(PlainCheck::Limit(value.as_number()?.clone(), holds));
    Some(Some(match key {
        "type" => PlainCheck::Type(types(value)?),
        "enum" => PlainCheck::Enum(value.as_array()?.clone()),
        "const" => PlainCheck::Enum(vec![value.clone()]),
        "minimum" => limit(Ordering::is_ge)?,
        "maximum" => limit(Ordering::is_le)?,
        "exclusiveMinimum" => limit(Ordering::is_gt)?,
        "exclusiveMaximum" => limit(Ordering::is_lt)?,
        "minLength" => PlainCheck::Length(value.as_u64()?, u64::MAX),
        "maxLength" => PlainCheck::Length(0, value.as_u64()?),
        "minItems" => PlainCheck::Items(value.as_u64()?, u64::MAX),
        "maxItems" => PlainCheck::Items(0, value.as_u64()?),
        "minProperties" => PlainCheck::Members(value.as_u64()?, u64::MAX),
        "maxProperties" => PlainCheck::Members(0, value.as_u64()?),
        "required" => PlainCheck::Required(names(value)?),
        "items" => PlainCheck::Each(part(value, draft)?),
        "allOf" => PlainCheck::All(parts(value, draft)?),
        "anyOf" => PlainCheck::Any(parts(value, draft)?),
        "oneOf" => PlainCheck::One(parts(value, draft)?),
        "not" => PlainCheck::Not(part(value, draft)?),
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
    let mut sorted: Vec<&str> = names.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    let differ = sorted.windows(2).all(|two| two[0] != two[1]);
    differ.then_some(names)
}

fn properties(schema: &Map<String, Value>, draft: SchemaDraft) -> Option<Option<PlainCheck>> {
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
    let others = others.map_or(Some(PlainSchema(Vec::new())), |others| part(others, draft))?;
    Some(Some(PlainCheck::Properties(members, others)))
}

impl PlainCheck {
    fn accepts(&self, value: &Value) -> bool {
        let within =
            |count: usize, least: &u64, most: &u64| (*least..=*most).contains(&(count as u64));
        match (self, value) {
            (PlainCheck::Never, _) => false,
            (PlainCheck::Type(types), value) => types & type_bits(value) != 0,
            (PlainCheck::Enum(values), value) => values.iter().any(|one| equal(one, value)),
            (PlainCheck::Limit(limit, holds), Value::Number(number)) => {
                compare_numbers(number, limit).is_some_and(holds)
            }
            (PlainCheck::Length(least, most), Value::String(text)) => {
                within(text.chars().count(), least, most)
            }
            (PlainCheck::Items(least, most), Value::Array(items)) => {
                within(items.len(), least, most)
            }
            (PlainCheck::Members(least, most), Value::Object(map)) => {
                within(map.len(), least, most)
            }
            (PlainCheck::Required(names), Value::Object(map)) => {
                names.iter().all(|name| map.contains_key(name))
            }
            (PlainCheck::Properties(named, others), Value::Object(map)) => {
                map.iter().all(|(name, value)| {
                    let found = named.binary_search_by(|(known, _)| known.as_str().cmp(name));
                    found.map_or(others, |at| &named[at].1).accepts(value)
                })
            }
            (PlainCheck::Each(plain), Value::Array(items)) => {
                items.iter().all(|item| plain.accepts(item))
            }
            (PlainCheck::All(all), value) => all.iter().all(|plain| plain.accepts(value)),
            (PlainCheck::Any(any), value) => any.iter().any(|plain| plain.accepts(value)),
            (PlainCheck::One(one), value) => {
                one.iter()
                    .filter(|plain| plain.accepts(value))
                    .take(2)
                    .count()
                    == 1
            }
            (PlainCheck::Not(plain), value) => !plain.accepts(value),
            _ => true,
        }
    }

    fn accepts_text(&self, value: &JsonView<'_>) -> bool {
        let within =
            |count: usize, least: &u64, most: &u64| (*least..=*most).contains(&(count as u64));
        match (self, value.kind()) {
            (PlainCheck::Never, _) => false,
            // The tree has its type and value; beyond the range of `f64`, it is a string there.
            (_, JsonKind::Number) => self.accepts(&value.to_value()),
            (PlainCheck::Type(types), kind) => types & view_type_bits(kind) != 0,
            (PlainCheck::Enum(values), JsonKind::String) => {
                let text = value.str_cow();
                values.iter().any(|one| one.as_str() == text.as_deref())
            }
            // Lists and objects in `enum` are rare.
            (PlainCheck::Enum(_), _) => self.accepts(&value.to_value()),
            (PlainCheck::Length(least, most), JsonKind::String) => {
                let text = value.str_cow().unwrap_or_default();
                within(text.chars().count(), least, most)
            }
            (PlainCheck::Items(least, most), JsonKind::Array) => {
                within(value.items().count(), least, most)
            }
            (PlainCheck::Members(least, most), JsonKind::Object) => {
                within(value.members().count(), least, most)
            }
            (PlainCheck::Required(names), JsonKind::Object) => {
                let has = |name: &String| value.members().any(|(key, _)| key == name.as_str());
                names.iter().all(has)
            }
            (PlainCheck::Properties(named, others), JsonKind::Object) => {
                value.members().all(|(name, value)| {
                    let found = named.binary_search_by(|(known, _)| known.as_str().cmp(&name));
                    found.map_or(others, |at| &named[at].1).accepts_text(&value)
                })
            }
            (PlainCheck::Each(plain), JsonKind::Array) => {
                value.items().all(|item| plain.accepts_text(&item))
            }
            (PlainCheck::All(all), _) => all.iter().all(|plain| plain.accepts_text(value)),
            (PlainCheck::Any(any), _) => any.iter().any(|plain| plain.accepts_text(value)),
            (PlainCheck::One(one), _) => {
                let takes = one.iter().filter(|plain| plain.accepts_text(value));
                takes.take(2).count() == 1
            }
            (PlainCheck::Not(plain), _) => !plain.accepts_text(value),
            _ => true,
        }
    }
}

/// Returns the JSON Schema types of an unparsed value other than a number, as a bit set.
fn view_type_bits(kind: JsonKind) -> u8 {
    match kind {
        JsonKind::Null => NULL_BIT,
        JsonKind::Bool => BOOLEAN_BIT,
        JsonKind::Object => OBJECT_BIT,
        JsonKind::Array => ARRAY_BIT,
        JsonKind::String => STRING_BIT,
        JsonKind::Number => NUMBER_BIT,
    }
}

/// Returns the JSON Schema types of a value, as a bit set.
fn type_bits(value: &Value) -> u8 {
    match value {
        Value::Null => NULL_BIT,
        Value::Bool(_) => BOOLEAN_BIT,
        Value::Object(_) => OBJECT_BIT,
        Value::Array(_) => ARRAY_BIT,
        Value::String(_) => STRING_BIT,
        Value::Number(number) => match exact(number) {
            ExactNumber::Float(float) if float.fract() != 0.0 => NUMBER_BIT,
            _ => NUMBER_BIT | INTEGER_BIT,
        },
    }
}

/// A JSON number without loss of precision.
enum ExactNumber {
    Integer(i128),
    Float(f64),
}

fn exact(number: &Number) -> ExactNumber {
    let positive = number.as_u64().map(i128::from);
    let integer = positive.or_else(|| number.as_i64().map(i128::from));
    // Without the `arbitrary_precision` feature, every other number is a float.
    integer.map_or_else(
        || ExactNumber::Float(number.as_f64().unwrap_or(f64::NAN)),
        ExactNumber::Integer,
    )
}

/// Compares two numbers without rounding; `None` for NaN.
fn compare_numbers(one: &Number, other: &Number) -> Option<Ordering> {
    match (exact(one), exact(other)) {
        (ExactNumber::Integer(one), ExactNumber::Integer(other)) => Some(one.cmp(&other)),
        (ExactNumber::Float(one), ExactNumber::Float(other)) => one.partial_cmp(&other),
        (ExactNumber::Integer(one), ExactNumber::Float(other)) => compare_int_float(one, other),
        (ExactNumber::Float(one), ExactNumber::Integer(other)) => {
            compare_int_float(other, one).map(Ordering::reverse)
        }
    }
}

/// Compares an integer of at most 65 bits with a float. A huge float is truncated far beyond that range, which
/// changes nothing.
fn compare_int_float(integer: i128, float: f64) -> Option<Ordering> {
    let rest = 0.0.partial_cmp(&float.fract())?;
    Some(integer.cmp(&(float.trunc() as i128)).then(rest))
}

/// Returns whether two values are equal in the sense of JSON Schema: 1 equals 1.0.
fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            compare_numbers(one, other).is_some_and(Ordering::is_eq)
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
