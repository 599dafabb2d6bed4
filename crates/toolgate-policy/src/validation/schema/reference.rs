//! Resolution of references, all of which stay inside the schema.

use super::bounds::{SchemaGraph, SubschemaNode};
use serde_json::Value;
use std::collections::HashMap;

/// For each subschema, the indexes of the subschemas that it refers to.
pub(super) type ReferenceEdges = Vec<Vec<usize>>;

/// Resolves all references.
///
/// # Errors
/// Fails if a reference leads out of the schema or to nothing.
pub(super) fn resolve(graph: &SchemaGraph<'_>) -> Result<ReferenceEdges, String> {
    let names = SchemaAnchors::of(graph);
    graph
        .parts
        .iter()
        .map(|part| names.edges(graph, part))
        .collect()
}

/// Identifiers and anchors of subschemas.
struct SchemaAnchors<'a> {
    ids: HashMap<&'a str, usize>,
    /// `$anchor` and `$dynamicAnchor`, by base and name.
    anchors: HashMap<(usize, &'a str), usize>,
    /// Subschemas by `$dynamicAnchor`; a dynamic reference can lead to any with its name.
    dynamic: HashMap<&'a str, Vec<usize>>,
    /// Subschemas with `$recursiveAnchor`; a recursive reference can lead to any of them.
    recursive: Vec<usize>,
}

impl<'a> SchemaAnchors<'a> {
    fn of(graph: &SchemaGraph<'a>) -> SchemaAnchors<'a> {
        let mut names = SchemaAnchors {
            ids: HashMap::new(),
            anchors: HashMap::new(),
            dynamic: HashMap::new(),
            recursive: Vec::new(),
        };
        for (at, part) in graph.parts.iter().enumerate() {
            let word = |key: &str| part.schema.get(key).and_then(Value::as_str);
            if let Some(id) = word("$id") {
                match id.strip_prefix('#') {
                    // Anchors of draft-07.
                    Some(anchor) => names.anchors.insert((part.base, anchor), at),
                    None => names.ids.insert(id.strip_suffix('#').unwrap_or(id), at),
                };
            }
            for anchor in [word("$anchor"), word("$dynamicAnchor")]
                .into_iter()
                .flatten()
            {
                names.anchors.insert((part.base, anchor), at);
            }
            if part.schema.get("$recursiveAnchor") == Some(&Value::Bool(true)) {
                names.recursive.push(at);
            }
            if let Some(anchor) = word("$dynamicAnchor") {
                names.dynamic.entry(anchor).or_default().push(at);
            }
        }
        names
    }

    fn edges(
        &self,
        graph: &SchemaGraph<'_>,
        part: &SubschemaNode<'_>,
    ) -> Result<Vec<usize>, String> {
        let mut edges = Vec::new();
        for key in ["$ref", "$dynamicRef", "$recursiveRef"] {
            let Some(reference) = part.schema.get(key).and_then(Value::as_str) else {
                continue;
            };
            edges.push(self.target(graph, part.base, reference)?);
            if key == "$recursiveRef" {
                edges.extend(&self.recursive);
            }
            if key == "$dynamicRef" {
                let name = reference.rsplit('#').next().unwrap_or_default();
                edges.extend(self.dynamic.get(name).into_iter().flatten());
            }
        }
        Ok(edges)
    }

    fn target(
        &self,
        graph: &SchemaGraph<'_>,
        base: usize,
        reference: &str,
    ) -> Result<usize, String> {
        let (id, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let outside = || {
            format!(
                "the reference {reference:?} leads out of the schema, and only references within a schema are followed"
            )
        };
        let base = match id {
            "" => base,
            id => *self.ids.get(id).ok_or_else(outside)?,
        };
        let nowhere = || format!("the reference {reference:?} does not lead to a subschema");
        match fragment {
            "" => Ok(base),
            pointer if pointer.starts_with('/') => {
                resolve_pointer(graph, base, pointer).ok_or_else(nowhere)
            }
            anchor => self
                .anchors
                .get(&(base, anchor))
                .copied()
                .ok_or_else(nowhere),
        }
    }
}

/// Returns the index of the subschema at a JSON pointer. Boolean schemas have no index: the root stands for them,
/// which only raises the cost estimate.
fn resolve_pointer(graph: &SchemaGraph<'_>, base: usize, pointer: &str) -> Option<usize> {
    let pointer = percent_decode(pointer)?;
    let mut steps = pointer
        .split('/')
        .skip(1)
        .map(|step| step.replace("~1", "/").replace("~0", "~"));
    let first = graph.parts[base].schema.get(&steps.next()?)?;
    let found = steps.try_fold(first, |value, step| match value {
        Value::Object(map) => map.get(&step),
        Value::Array(list) => list.get(step.parse::<usize>().ok()?),
        _ => None,
    })?;
    if found.is_boolean() {
        Some(0)
    } else {
        graph.at(found)
    }
}

pub(super) fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                u8::from_str_radix(std::str::from_utf8(&[rest.next()?, rest.next()?]).ok()?, 16)
                    .ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}
