//! Inlining of definitions.

use super::{merge, traverse};
use serde_json::{Map, Value};

/// Maximum size of a definition that is inlined in more than one place, in bytes.
const MAX_INLINED_BYTES: usize = 200;

/// Inlines definitions that are used once or are small. Recursive ones stay, and unused ones are removed.
pub(super) fn definitions(root: &mut Value) {
    let names: Vec<String> = match root.get("$defs").and_then(Value::as_object) {
        Some(definitions) => definitions.keys().cloned().collect(),
        None => return,
    };
    for name in inner_first(root, &names) {
        let Some(body) = root["$defs"].get(&name).cloned() else {
            continue;
        };
        if reaches(root, &name, &name) {
            continue;
        }
        if body.to_string().len() <= MAX_INLINED_BYTES || count(root, &name) <= 1 {
            replace_references(root, &name, &body);
            remove(root, &name);
        }
    }
    remove_unused(root);
}

fn remove(root: &mut Value, name: &str) {
    let Some(definitions) = root.get_mut("$defs").and_then(Value::as_object_mut) else {
        return;
    };
    definitions.remove(name);
    if definitions.is_empty()
        && let Value::Object(root) = root
    {
        root.remove("$defs");
    }
}

fn remove_unused(root: &mut Value) {
    let mut used = Vec::new();
    let mut top = root.clone();
    if let Value::Object(top) = &mut top {
        top.remove("$defs");
    }
    let mut waiting: Vec<String> = targets(&top);
    while let Some(name) = waiting.pop() {
        if !used.contains(&name) {
            waiting.extend(root["$defs"].get(&name).map(targets).unwrap_or_default());
            used.push(name);
        }
    }
    let names: Vec<String> = match root.get("$defs").and_then(Value::as_object) {
        Some(definitions) => definitions.keys().cloned().collect(),
        None => return,
    };
    for name in names.iter().filter(|name| !used.contains(*name)) {
        remove(root, name);
    }
}

/// Returns the names of all definitions that a schema refers to, once per reference.
fn targets(schema: &Value) -> Vec<String> {
    let mut names: Vec<String> = traverse::reference_target(schema).into_iter().collect();
    for inner in traverse::subschemas(schema) {
        names.extend(targets(inner));
    }
    names
}

fn count(root: &Value, name: &str) -> usize {
    targets(root)
        .iter()
        .filter(|target| *target == name)
        .count()
}

/// Returns whether the definition `from` refers to `to`, directly or indirectly.
fn reaches(root: &Value, from: &str, to: &str) -> bool {
    let (mut seen, mut waiting) = (Vec::new(), vec![from.to_owned()]);
    while let Some(name) = waiting.pop() {
        for target in root["$defs"].get(&name).map(targets).unwrap_or_default() {
            if target == to {
                return true;
            }
            if !seen.contains(&target) {
                seen.push(target.clone());
                waiting.push(target);
            }
        }
    }
    false
}

/// Sorts the definitions so that each comes after those it refers to: its size is then known when it is needed.
fn inner_first(root: &Value, names: &[String]) -> Vec<String> {
    fn visit(root: &Value, name: &str, done: &mut Vec<String>, order: &mut Vec<String>) {
        if done.iter().any(|one| one == name) {
            return;
        }
        done.push(name.to_owned());
        for target in root["$defs"].get(name).map(targets).unwrap_or_default() {
            visit(root, &target, done, order);
        }
        order.push(name.to_owned());
    }
    let (mut done, mut order) = (Vec::new(), Vec::new());
    for name in names {
        visit(root, name, &mut done, &mut order);
    }
    order
}

/// Replaces every reference to a definition with its body.
fn replace_references(schema: &mut Value, name: &str, body: &Value) {
    for inner in traverse::subschemas_mut(schema) {
        replace_references(inner, name, body);
    }
    if traverse::reference_target(schema).is_some_and(|target| target == name) {
        let outer: &mut Map<String, Value> = match schema {
            Value::Object(outer) => outer,
            _ => return,
        };
        outer.remove("$ref");
        merge::merge_into(outer, body.clone());
    }
}
