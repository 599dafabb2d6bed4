//! Subschemas of a schema as a flat list, within the configured bounds.

use super::PATTERN_KEYWORD;
use crate::humanize;
use serde_json::{Map, Value};
use std::{collections::HashMap, time::Duration};
use toolgate_core::Json;

/// Bounds on the size and cost of one JSON Schema of a tool. A tool with a schema that exceeds them is withheld.
///
/// Specification: [composition keywords](https://modelcontextprotocol.io/specification/2026-07-28/basic#composition-keyword-resource-use).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct SchemaBounds {
    /// Maximum size of the JSON Schema, in bytes. Default: 64 KiB.
    pub bytes: usize,
    /// Maximum nesting of subschemas in the JSON Schema. Default: 32.
    pub depth: usize,
    /// Maximum number of subschemas in the JSON Schema. Default: 2000.
    pub subschemas: usize,
    /// Maximum number of regular expressions in the JSON Schema. Default: 200.
    pub patterns: usize,
    /// Maximum processor time for validating one value, as estimated for a release build before the check starts.
    /// Default: 50 ms.
    pub time: Duration,
}

impl Default for SchemaBounds {
    fn default() -> SchemaBounds {
        SchemaBounds {
            bytes: 64 * 1024,
            depth: 32,
            subschemas: 2000,
            patterns: 200,
            time: Duration::from_millis(50),
        }
    }
}

/// Keywords whose value is data, not schemas.
const DATA_KEYWORDS: [&str; 5] = ["const", "enum", "default", "example", "examples"];

pub(super) fn check_size(schema: &Json, most: usize) -> Result<(), String> {
    match schema.as_str().len() {
        bytes if bytes > most => Err(format!(
            "the schema is {} long, and the limit is {}",
            humanize::size(bytes),
            humanize::size(most)
        )),
        _ => Ok(()),
    }
}

/// Relation of a subschema to its parent schema.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) enum SubschemaRelation<'a> {
    /// It applies to the same value.
    Same,
    /// It applies to the member with this name.
    Member(&'a str),
    /// It applies to members that it does not name, or to member names.
    Members,
    /// It applies to the items of a list.
    Items,
    /// It applies only if a reference leads to it.
    Definition,
}

/// One subschema of a schema.
pub(super) struct SubschemaNode<'a> {
    pub(super) schema: &'a Map<String, Value>,
    /// Index of the subschema with the `$id` that is the base of references; the root is always one.
    pub(super) base: usize,
    pub(super) within: Vec<(SubschemaRelation<'a>, usize)>,
}

/// All subschemas of a schema; the root is the first.
pub(super) struct SchemaGraph<'a> {
    pub(super) parts: Vec<SubschemaNode<'a>>,
    /// Number of regular expressions in it.
    pub(super) patterns: usize,
    index: HashMap<*const Value, usize>,
}

impl<'a> SchemaGraph<'a> {
    /// Collects the subschemas iteratively, not recursively: the nesting comes from the server.
    pub(super) fn of(root: &'a Value, bounds: &SchemaBounds) -> Result<SchemaGraph<'a>, String> {
        let mut graph = SchemaGraph {
            parts: Vec::new(),
            patterns: 0,
            index: HashMap::new(),
        };
        let mut waiting = vec![(
            root,
            0_usize,
            0_usize,
            None::<(usize, SubschemaRelation<'a>)>,
        )];
        while let Some((value, depth, base, parent)) = waiting.pop() {
            let Value::Object(schema) = value else {
                continue;
            };
            let at = graph.parts.len();
            if depth > bounds.depth {
                return Err(format!(
                    "its subschemas are nested more than {} levels deep",
                    bounds.depth
                ));
            }
            if at >= bounds.subschemas {
                return Err(format!(
                    "the schema has more than {} subschemas",
                    bounds.subschemas
                ));
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
            graph.parts.push(SubschemaNode {
                schema,
                base,
                within: Vec::new(),
            });
            for (place, inner) in subschemas_of(schema, &mut graph.patterns) {
                waiting.push((inner, depth + 1, base, Some((at, place))));
            }
            if graph.patterns > bounds.patterns {
                return Err(format!(
                    "the schema has more than {} regular expressions",
                    bounds.patterns
                ));
            }
        }
        Ok(graph)
    }

    /// Returns the index of the subschema that is this value.
    pub(super) fn at(&self, value: &Value) -> Option<usize> {
        self.index.get(&std::ptr::from_ref(value)).copied()
    }
}

/// Returns the direct subschemas of a schema.
fn subschemas_of<'a>(
    schema: &'a Map<String, Value>,
    patterns: &mut usize,
) -> Vec<(SubschemaRelation<'a>, &'a Value)> {
    let mut parts = Vec::new();
    for (key, value) in schema {
        match (key.as_str(), value) {
            ("pattern" | PATTERN_KEYWORD, Value::String(_)) => *patterns += 1,
            ("properties", Value::Object(map)) => {
                parts.extend(map.iter().map(|(k, v)| (SubschemaRelation::Member(k), v)))
            }
            ("patternProperties", Value::Object(map)) => {
                *patterns += map.len();
                parts.extend(map.values().map(|v| (SubschemaRelation::Members, v)));
            }
            ("$defs" | "definitions", Value::Object(map)) => {
                parts.extend(map.values().map(|v| (SubschemaRelation::Definition, v)))
            }
            ("dependentSchemas" | "dependencies", Value::Object(map)) => {
                parts.extend(map.values().map(|v| (SubschemaRelation::Same, v)));
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(list)) => {
                parts.extend(list.iter().map(|v| (SubschemaRelation::Same, v)))
            }
            ("items" | "prefixItems", Value::Array(list)) => {
                parts.extend(list.iter().map(|v| (SubschemaRelation::Items, v)))
            }
            ("not" | "if" | "then" | "else", _) => parts.push((SubschemaRelation::Same, value)),
            ("items" | "contains" | "additionalItems" | "unevaluatedItems", _) => {
                parts.push((SubschemaRelation::Items, value))
            }
            ("additionalProperties" | "unevaluatedProperties" | "propertyNames", _) => {
                parts.push((SubschemaRelation::Members, value));
            }
            (key, _) if DATA_KEYWORDS.contains(&key) => {}
            // A reference may lead into an unknown keyword, so its value counts too.
            (_, Value::Object(_)) => parts.push((SubschemaRelation::Definition, value)),
            (_, Value::Array(list)) => {
                parts.extend(list.iter().map(|v| (SubschemaRelation::Definition, v)))
            }
            _ => {}
        }
    }
    parts
}
