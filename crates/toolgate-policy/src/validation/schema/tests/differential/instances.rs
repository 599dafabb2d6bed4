//! Random instances near a schema, so that valid and invalid ones are both frequent.

use super::{
    random::Random,
    schemas::{edge_number, name, number, value},
};
use serde_json::{Map, Number, Value, json};

/// Maximum number of items, members or characters that a lower limit is met with.
const MAX_COUNT: u64 = 6;

/// Returns an instance: one that the schema probably accepts, changed in one place or not.
pub(super) fn near(random: &Random, schema: &Value) -> Value {
    let mut instance = fitting(random, schema, 6);
    if random.one_in(3) {
        change(random, &mut instance);
    }
    instance
}

/// Returns an instance that keeps the keywords of a schema where that is easy.
fn fitting(random: &Random, schema: &Value, depth: usize) -> Value {
    let Value::Object(schema) = schema else {
        return value(random, 2);
    };
    if depth == 0 {
        return value(random, 0);
    }
    if let Some(exact) = schema.get("const") {
        return exact.clone();
    }
    if let Some(Value::Array(values)) = schema.get("enum")
        && !values.is_empty()
    {
        return random.pick(values);
    }
    let own = of_type(random, schema, depth);
    for key in ["allOf", "anyOf", "oneOf"] {
        if let Some(Value::Array(parts)) = schema.get(key)
            && !parts.is_empty()
            && !random.one_in(4)
        {
            return merged(own, fitting(random, &random.pick(parts), depth - 1));
        }
    }
    own
}

/// Returns the members of both objects, or the second value.
fn merged(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::Object(mut one), Value::Object(other)) => {
            one.extend(other);
            Value::Object(one)
        }
        (_, other) => other,
    }
}

fn of_type(random: &Random, schema: &Map<String, Value>, depth: usize) -> Value {
    let kind = match schema.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(Value::Array(kinds)) if !kinds.is_empty() => {
            kinds[random.below(kinds.len())].as_str().unwrap_or("")
        }
        _ => kind_of_keywords(schema),
    };
    match kind {
        "null" => Value::Null,
        "boolean" => Value::Bool(random.one_in(2)),
        "object" => object(random, schema, depth),
        "array" => {
            let count = count(random, schema, "minItems", "maxItems");
            let items = schema.get("items").unwrap_or(&Value::Null);
            (0..count)
                .map(|_| fitting(random, items, depth - 1))
                .collect()
        }
        "string" => {
            let count = count(random, schema, "minLength", "maxLength");
            let signs = (0..count).map(|_| random.pick(&['a', 'é', '\u{301}', '👍', '"', '\u{0}']));
            signs.collect::<String>().into()
        }
        "number" | "integer" => near_limit(random, schema),
        _ => value(random, 2),
    }
}

/// Returns the type that the keywords of a schema judge.
fn kind_of_keywords(schema: &Map<String, Value>) -> &'static str {
    let kinds = [
        ("properties", "object"),
        ("required", "object"),
        ("additionalProperties", "object"),
        ("minProperties", "object"),
        ("maxProperties", "object"),
        ("items", "array"),
        ("minItems", "array"),
        ("maxItems", "array"),
        ("minLength", "string"),
        ("maxLength", "string"),
        ("minimum", "number"),
        ("maximum", "number"),
        ("exclusiveMinimum", "number"),
        ("exclusiveMaximum", "number"),
    ];
    let found = kinds.iter().find(|(key, _)| schema.contains_key(*key));
    found.map_or("", |(_, kind)| *kind)
}

/// Returns a count at or within the limits, as far as they are small.
fn count(random: &Random, schema: &Map<String, Value>, least: &str, most: &str) -> u64 {
    let limit = |key: &str| schema.get(key).and_then(Value::as_u64);
    let least = limit(least).unwrap_or(0).min(MAX_COUNT);
    let most = limit(most).unwrap_or(MAX_COUNT).min(MAX_COUNT);
    match random.below(4) {
        0 => least,
        1 => most,
        _ => least + random.below(most.saturating_sub(least) as usize + 1) as u64,
    }
}

fn object(random: &Random, schema: &Map<String, Value>, depth: usize) -> Value {
    let empty = Map::new();
    let known = schema
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    let others = schema.get("additionalProperties").unwrap_or(&Value::Null);
    let mut object = Map::new();
    let put = |random: &Random, object: &mut Map<String, Value>, name: &str| {
        let part = known.get(name).unwrap_or(others);
        object.insert(name.to_owned(), fitting(random, part, depth - 1));
    };
    for name in schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        put(random, &mut object, name.as_str().unwrap_or(""));
    }
    for name in known.keys() {
        if random.one_in(2) {
            put(random, &mut object, name);
        }
    }
    let count = count(random, schema, "minProperties", "maxProperties") as usize;
    let closed = others == &Value::Bool(false);
    for _ in 0..12 {
        if object.len() >= count || closed {
            break;
        }
        let name = name(random);
        put(random, &mut object, &name);
    }
    Value::Object(object)
}

/// Returns a number at or beside a limit, or any number.
fn near_limit(random: &Random, schema: &Map<String, Value>) -> Value {
    let keys = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];
    let limits: Vec<&Number> = keys
        .iter()
        .filter_map(|key| schema.get(*key)?.as_number())
        .collect();
    if limits.is_empty() || random.one_in(8) {
        return number(random);
    }
    beside(random, random.pick(&limits))
}

/// Returns the number, the same as another type, or a neighbor.
fn beside(random: &Random, limit: &Number) -> Value {
    let float = limit.as_f64().unwrap_or(0.0);
    match (random.below(8), limit.as_i64(), limit.as_u64()) {
        (0, ..) => Value::Number(limit.clone()),
        (1, ..) => json!(float),
        (2, ..) => json!(float.next_up()),
        (3, ..) => json!(float.next_down()),
        (4, ..) => json!(float + 0.5),
        (5, ..) => json!(float as i64),
        (6, Some(whole), _) => json!(whole.saturating_add(1)),
        (6, _, Some(whole)) => json!(whole.saturating_add(1)),
        (_, Some(whole), _) => json!(whole.saturating_sub(1)),
        (_, _, Some(whole)) => json!(whole - 1),
        _ => json!(float.trunc()),
    }
}

/// Changes one value inside an instance.
fn change(random: &Random, instance: &mut Value) {
    let deeper = random.one_in(2);
    match instance {
        Value::Array(items) if deeper && !items.is_empty() => {
            let at = random.below(items.len());
            change(random, &mut items[at]);
        }
        Value::Object(members) if deeper && !members.is_empty() => {
            let at = random.below(members.len());
            if let Some(member) = members.values_mut().nth(at) {
                change(random, member);
            }
        }
        Value::Array(items) => match items.pop() {
            Some(_) if random.one_in(2) => {}
            Some(item) => items.extend([item.clone(), item]),
            None => items.push(value(random, 1)),
        },
        Value::Object(members) => match members.keys().next().cloned() {
            Some(name) if random.one_in(2) => _ = members.remove(&name),
            _ => _ = members.insert(name(random), value(random, 1)),
        },
        Value::String(text) if random.one_in(2) => match text.pop() {
            Some(_) if random.one_in(2) => {}
            _ => text.push_str("é👍"),
        },
        Value::Number(number) if random.one_in(2) => *instance = beside(random, &number.clone()),
        Value::Number(_) if random.one_in(2) => *instance = edge_number(random),
        other => *other = value(random, 1),
    }
}
