//! The parts of a schema as a flat list, refused where there are too many.

use super::backtracking;
use crate::words;
use serde_json::{Map, Value};
use std::{collections::HashMap, time::Duration};
use toolgate_core::Json;

/// What a schema may be. One that is more withholds its tool.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Bounds {
    /// Bytes of a schema; 64 KiB.
    pub bytes: usize,
    /// How deep schemas may stand in schemas; 32.
    pub depth: usize,
    /// Schemas in a schema; 2000.
    pub parts: usize,
    /// Regular expressions in a schema; 200.
    pub patterns: usize,
    /// How long a processor may work on one value, as it is known before; 50 ms. For a release build.
    pub time: Duration,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            bytes: 64 * 1024,
            depth: 32,
            parts: 2000,
            patterns: 200,
            time: Duration::from_millis(50),
        }
    }
}

/// Keywords whose value is data, not schemas.
const DATA: [&str; 5] = ["const", "enum", "default", "example", "examples"];

pub(super) fn bytes(schema: &Json, most: usize) -> Result<(), String> {
    match schema.as_str().len() {
        bytes if bytes > most => Err(format!(
            "it is {} long, the limit is {}",
            words::size(bytes),
            words::size(most)
        )),
        _ => Ok(()),
    }
}

/// How one schema stands in another.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) enum Place<'a> {
    /// It judges the same value.
    Same,
    /// It judges a member of that name.
    Member(&'a str),
    /// It judges members that it does not name, or their names.
    Members,
    /// It judges items of a list.
    Items,
    /// Nothing is judged by it unless it is referred to.
    Kept,
}

/// One schema in a schema.
pub(super) struct Part<'a> {
    pub(super) schema: &'a Map<String, Value>,
    /// The part whose `$id` is the base of references; the root has one always.
    pub(super) base: usize,
    pub(super) within: Vec<(Place<'a>, usize)>,
}

/// All schemas in a schema; the root is the first.
pub(super) struct Graph<'a> {
    pub(super) parts: Vec<Part<'a>>,
    /// How many regular expressions there are in it.
    pub(super) patterns: usize,
    index: HashMap<*const Value, usize>,
}

impl<'a> Graph<'a> {
    /// Walks without a stack of its own making: foreign depth costs memory that the bounds limit.
    pub(super) fn of(root: &'a Value, bounds: &Bounds) -> Result<Graph<'a>, String> {
        let mut graph = Graph {
            parts: Vec::new(),
            patterns: 0,
            index: HashMap::new(),
        };
        let mut waiting = vec![(root, 0_usize, 0_usize, None::<(usize, Place<'a>)>)];
        while let Some((value, depth, base, parent)) = waiting.pop() {
            let Value::Object(schema) = value else {
                continue;
            };
            let at = graph.parts.len();
            if depth > bounds.depth {
                return Err(format!(
                    "schemas stand more than {} deep in it",
                    bounds.depth
                ));
            }
            if at >= bounds.parts {
                return Err(format!("it has more than {} parts", bounds.parts));
            }
            let base = if at > 0 && schema.get("$id").is_some_and(Value::is_string) {
                at
            } else {
                base
            };
            if let Some((parent, place)) = parent {
                graph.parts[parent].within.push((place, at));
            }
            graph.index.insert(value, at);
            graph.parts.push(Part {
                schema,
                base,
                within: Vec::new(),
            });
            for (place, inner) in parts_of(schema, &mut graph.patterns) {
                waiting.push((inner, depth + 1, base, Some((at, place))));
            }
            if graph.patterns > bounds.patterns {
                return Err(format!(
                    "it has more than {} regular expressions",
                    bounds.patterns
                ));
            }
        }
        Ok(graph)
    }

    /// The part that this value is.
    pub(super) fn at(&self, value: &Value) -> Option<usize> {
        self.index.get(&std::ptr::from_ref(value)).copied()
    }
}

/// The schemas that stand right in a schema.
fn parts_of<'a>(
    schema: &'a Map<String, Value>,
    patterns: &mut usize,
) -> Vec<(Place<'a>, &'a Value)> {
    let mut parts = Vec::new();
    for (key, value) in schema {
        match (key.as_str(), value) {
            ("pattern" | backtracking::KEYWORD, Value::String(_)) => *patterns += 1,
            ("properties", Value::Object(map)) => {
                parts.extend(map.iter().map(|(k, v)| (Place::Member(k), v)))
            }
            ("patternProperties", Value::Object(map)) => {
                *patterns += map.len();
                parts.extend(map.values().map(|v| (Place::Members, v)));
            }
            ("$defs" | "definitions", Value::Object(map)) => {
                parts.extend(map.values().map(|v| (Place::Kept, v)))
            }
            ("dependentSchemas" | "dependencies", Value::Object(map)) => {
                parts.extend(map.values().map(|v| (Place::Same, v)));
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(list)) => {
                parts.extend(list.iter().map(|v| (Place::Same, v)))
            }
            ("items" | "prefixItems", Value::Array(list)) => {
                parts.extend(list.iter().map(|v| (Place::Items, v)))
            }
            ("not" | "if" | "then" | "else", _) => parts.push((Place::Same, value)),
            ("items" | "contains" | "additionalItems" | "unevaluatedItems", _) => {
                parts.push((Place::Items, value))
            }
            ("additionalProperties" | "unevaluatedProperties" | "propertyNames", _) => {
                parts.push((Place::Members, value));
            }
            (key, _) if DATA.contains(&key) => {}
            // A reference may lead into a keyword that nobody knows, so what stands there counts too.
            (_, Value::Object(_)) => parts.push((Place::Kept, value)),
            (_, Value::Array(list)) => parts.extend(list.iter().map(|v| (Place::Kept, v))),
            _ => {}
        }
    }
    parts
}
