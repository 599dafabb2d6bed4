//! Repair of a schema that does not compile: patterns move to the backtracking engine, unusable keywords are removed.
//!
//! A removal may only make the schema accept more values. A `not`, `if` or `oneOf` with a weakened subschema would
//! accept fewer, so it is removed too, or becomes `anyOf`.

use super::{
    PATTERN_KEYWORD,
    backtracking::EcmaPattern,
    dialect::SchemaDraft,
    ecma,
    position::{self, get_mut, is_list, is_map, pointer},
    truncate_message,
};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of passes, both of meta-schema validation and of following references.
const MAX_REPAIR_PASSES: usize = 16;

/// A schema without the keywords that cannot be checked.
pub(super) struct RepairedSchema {
    pub(super) tree: Value,
    /// Each keyword that is not checked, with the reason.
    pub(super) skipped: Vec<String>,
    /// True if a name in `patternProperties` needs backtracking.
    pub(super) backtracking_names: bool,
}

/// Repairs a schema that does not compile.
pub(super) fn repair(tree: Value, draft: SchemaDraft, max_pattern_bytes: usize) -> RepairedSchema {
    let mut repair = SchemaRepair {
        tree,
        draft,
        max_pattern_bytes,
        skipped: Vec::new(),
        weakened: BTreeSet::new(),
        applicators: false,
        backtracking_names: false,
    };
    repair.values();
    repair.patterns();
    repair.negations();
    repair.unevaluated();
    RepairedSchema {
        tree: repair.tree,
        skipped: repair.skipped,
        backtracking_names: repair.backtracking_names,
    }
}

type SchemaPath = Vec<String>;

struct SchemaRepair {
    tree: Value,
    draft: SchemaDraft,
    max_pattern_bytes: usize,
    skipped: Vec<String>,
    /// Paths of weakened schemas: they accept more values than written.
    weakened: BTreeSet<SchemaPath>,
    /// True if a removed keyword decides which members or items are known.
    applicators: bool,
    backtracking_names: bool,
}

impl SchemaRepair {
    /// Removes keywords with values that violate the meta-schema.
    fn values(&mut self) {
        for _ in 0..MAX_REPAIR_PASSES {
            let wrong = meta_errors(self.draft, &self.tree);
            if wrong.is_empty() {
                return;
            }
            let schemas: BTreeSet<SchemaPath> = paths(&self.tree).into_iter().collect();
            for (path, why) in wrong {
                self.skip_value(&schemas, &path, &why);
            }
        }
    }

    /// Removes the keyword that contains the value at this path, or replaces the subschema at this path by `true`.
    fn skip_value(&mut self, schemas: &BTreeSet<SchemaPath>, path: &[String], why: &str) {
        let mut holders = (0..path.len()).rev().map(|length| &path[..length]);
        let Some(holder) = holders.find(|holder| schemas.contains(*holder)) else {
            return;
        };
        let holder = holder.to_vec();
        let key = path[holder.len()].clone();
        let part = path.len() == holder.len() + 2 && (is_map(&key) || is_list(&key));
        let Some(Value::Object(schema)) = get_mut(&mut self.tree, &holder) else {
            return;
        };
        // An earlier error of the same pass may have removed it.
        let Some(value) = schema.get_mut(&key) else {
            return;
        };
        let mut at = holder.clone();
        at.push(key.clone());
        match get_mut(value, &path[at.len()..]).filter(|_| part) {
            Some(part) => {
                at.push(path[path.len() - 1].clone());
                *part = Value::Bool(true);
            }
            None => self.applicators |= remove(schema, &key),
        }
        let why = match key.as_str() {
            "type" => "the value is not a type of JSON Schema",
            _ => why,
        };
        self.note(&at, why);
        self.weakened.insert(holder);
    }

    fn note(&mut self, at: &[String], why: &str) {
        let at = truncate_message(&pointer(at));
        self.skipped
            .push(format!("{at} ({})", truncate_message(why)));
    }

    /// Moves patterns that need it to the backtracking engine, and removes those that no engine compiles.
    fn patterns(&mut self) {
        let paths: Vec<SchemaPath> = position::schemas(&self.tree)
            .into_iter()
            .filter(|one| {
                one.schema.contains_key("pattern") || one.schema.contains_key("patternProperties")
            })
            .map(|one| one.path)
            .collect();
        for path in paths {
            self.pattern(&path);
            self.pattern_names(&path);
        }
    }

    fn pattern(&mut self, path: &[String]) {
        let Some(Value::Object(schema)) = get_mut(&mut self.tree, path) else {
            return;
        };
        let Some(Value::String(pattern)) = schema.get("pattern").cloned() else {
            return;
        };
        if is_linear(&pattern, self.max_pattern_bytes) {
            return;
        }
        schema.remove("pattern");
        match EcmaPattern::compile(&pattern, self.max_pattern_bytes) {
            Ok(_) => {
                schema.insert(PATTERN_KEYWORD.to_owned(), pattern.into());
            }
            Err(why) => self.skip_pattern(path, &["pattern"], &why),
        }
    }

    /// Does the same for the names in `patternProperties`. If one fails, `additionalProperties` is undecidable and is
    /// removed.
    fn pattern_names(&mut self, path: &[String]) {
        let max_bytes = self.max_pattern_bytes;
        let Some(Value::Object(schema)) = get_mut(&mut self.tree, path) else {
            return;
        };
        let Some(Value::Object(named)) = schema.get_mut("patternProperties") else {
            return;
        };
        let mut failed = Vec::new();
        let taken = std::mem::take(named);
        let (linear, others): (Map<_, _>, Map<_, _>) = taken
            .into_iter()
            .partition(|(name, _)| is_linear(name, max_bytes));
        *named = linear;
        for (name, value) in others {
            match (
                EcmaPattern::compile(&name, max_bytes),
                ecma::translate(&name),
            ) {
                (Ok(pattern), Ok(mut translated)) => {
                    self.backtracking_names |= matches!(pattern, EcmaPattern::Backtracking(_));
                    // Two spellings of one pattern both apply.
                    while named.contains_key(&translated) {
                        translated.push_str("(?:)");
                    }
                    named.insert(translated, value);
                }
                (Err(why), _) | (_, Err(why)) => failed.push((name, why)),
            }
        }
        if failed.is_empty() {
            return;
        }
        schema.remove("additionalProperties");
        self.applicators = true;
        for (name, why) in failed {
            self.skip_pattern(path, &["patternProperties", &name], &why);
        }
    }

    fn skip_pattern(&mut self, path: &[String], keys: &[&str], why: &str) {
        let keys = keys.iter().map(|key| (*key).to_owned());
        let at: SchemaPath = path.iter().cloned().chain(keys).collect();
        self.note(&at, &format!("the pattern cannot be compiled: {why}"));
        self.weakened.insert(path.to_vec());
    }

    /// Removes the `unevaluated…` keywords if it is unknown which members or items other keywords evaluate.
    fn unevaluated(&mut self) {
        if !self.applicators {
            return;
        }
        for path in paths(&self.tree) {
            if let Some(Value::Object(schema)) = get_mut(&mut self.tree, &path) {
                schema.retain(|key, _| !key.starts_with("unevaluated"));
            }
        }
    }

    /// Removes negations of weakened schemas.
    fn negations(&mut self) {
        if self.weakened.is_empty() {
            return;
        }
        let partial = weakened(&self.tree, &self.weakened);
        for path in paths(&self.tree) {
            self.negation(&path, &partial);
        }
    }

    fn negation(&mut self, path: &[String], partial: &BTreeSet<SchemaPath>) {
        let below = |keys: &[&str]| {
            let keys = keys.iter().map(|key| (*key).to_owned());
            let below: SchemaPath = path.iter().cloned().chain(keys).collect();
            partial
                .range(below.clone()..)
                .next()
                .is_some_and(|one| one.starts_with(&below))
        };
        let (not, condition) = (below(&["not"]), below(&["if"]));
        let (one, contains) = (below(&["oneOf"]), below(&["contains"]));
        let Some(Value::Object(schema)) = get_mut(&mut self.tree, path) else {
            return;
        };
        self.applicators |= (condition && schema.contains_key("if")) || one;
        let mut gone = Vec::new();
        if not && schema.remove("not").is_some() {
            gone.push("not");
        }
        if condition && schema.remove("if").is_some() {
            gone.push("if");
        }
        if contains && schema.remove("maxContains").is_some() {
            gone.push("maxContains");
        }
        if one && let Some(forms) = schema.remove("oneOf") {
            gone.push("oneOf");
            match schema.contains_key("anyOf") {
                true => {}
                false => {
                    schema.insert("anyOf".to_owned(), forms);
                }
            }
        }
        for key in gone {
            let mut at = path.to_vec();
            at.push(key.to_owned());
            self.note(
                &at,
                "not checked, because it contains a keyword that Toolgate cannot check",
            );
        }
    }
}

/// Removes a keyword and those that depend on it. Returns whether it decides which members or items are known.
fn remove(schema: &mut Map<String, Value>, key: &str) -> bool {
    schema.remove(key);
    let depend: &[&str] = match key {
        "properties" | "patternProperties" => &["additionalProperties"],
        "prefixItems" => &["items"],
        "items" => &["additionalItems"],
        "minContains" | "maxContains" => &["contains"],
        _ => &[],
    };
    depend.iter().for_each(|key| {
        schema.remove(*key);
    });
    let asserts = [
        "const",
        "enum",
        "format",
        "pattern",
        "required",
        "type",
        "uniqueItems",
        "multipleOf",
    ];
    !asserts.contains(&key) && !key.starts_with("min") && !key.starts_with("max")
}

fn paths(tree: &Value) -> Vec<SchemaPath> {
    let schemas = position::schemas(tree).into_iter();
    schemas.map(|one| one.path).collect()
}

/// Returns the weakened schemas, and all schemas that contain or refer to one.
fn weakened(tree: &Value, changed: &BTreeSet<SchemaPath>) -> BTreeSet<SchemaPath> {
    let schemas = position::schemas(tree);
    let mut partial = BTreeSet::new();
    changed
        .iter()
        .for_each(|path| with_holders(path, &mut partial));
    for _ in 0..MAX_REPAIR_PASSES {
        let before = partial.len();
        for one in &schemas {
            let refers = ["$ref", "$dynamicRef", "$recursiveRef"];
            let mut targets = refers
                .iter()
                .filter_map(|key| one.schema.get(*key)?.as_str());
            // A reference that is not a JSON pointer may lead anywhere.
            if targets.any(|to| match to.strip_prefix("#/") {
                Some(_) => partial.contains(&position::tokens(&to[1..])),
                None => true,
            }) {
                with_holders(&one.path, &mut partial);
            }
        }
        if partial.len() == before {
            return partial;
        }
    }
    // The chain of references is too long: all schemas count as weakened.
    schemas.into_iter().map(|one| one.path).collect()
}

fn with_holders(path: &[String], partial: &mut BTreeSet<SchemaPath>) {
    for length in (0..=path.len()).rev() {
        if !partial.insert(path[..length].to_vec()) && length < path.len() {
            return;
        }
    }
}

/// Returns the meta-schema errors by path, one for each.
fn meta_errors(draft: SchemaDraft, tree: &Value) -> BTreeMap<SchemaPath, String> {
    let validator = match draft {
        SchemaDraft::Draft6 => jsonschema::draft6::meta::validator(),
        SchemaDraft::Draft7 => jsonschema::draft7::meta::validator(),
        SchemaDraft::Draft201909 => jsonschema::draft201909::meta::validator(),
        _ => jsonschema::draft202012::meta::validator(),
    };
    let errors = validator.iter_errors(tree);
    errors
        .map(|error| {
            let path = position::tokens(error.instance_path().as_str());
            (path, error.to_string())
        })
        .collect()
}

/// Returns whether the linear-time engine compiles the pattern.
fn is_linear(pattern: &str, max_bytes: usize) -> bool {
    let schema = serde_json::json!({"pattern": pattern});
    super::full::options(SchemaDraft::Draft202012, max_bytes)
        .build(&schema)
        .is_ok()
}
