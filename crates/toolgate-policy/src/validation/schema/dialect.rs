//! JSON Schema dialects.

use super::bounds::SchemaGraph;
use serde_json::{Map, Value};

/// A draft of JSON Schema that checkers implement.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SchemaDraft {
    Draft6,
    Draft7,
    Draft201909,
    Draft202012,
}

/// A JSON Schema dialect that can be checked.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum SchemaDialect {
    /// Rewritten to 2020-12.
    Draft04,
    Draft06,
    Draft07,
    Draft201909,
    /// Named by `$schema`.
    Draft202012,
    /// 2020-12, because no `$schema` names a dialect. Such schemas often come from OpenAPI.
    Unnamed,
}

impl SchemaDialect {
    /// The draft that the rewritten schema is compiled as.
    pub(super) fn draft(self) -> SchemaDraft {
        match self {
            SchemaDialect::Draft06 => SchemaDraft::Draft6,
            SchemaDialect::Draft07 => SchemaDraft::Draft7,
            SchemaDialect::Draft201909 => SchemaDraft::Draft201909,
            SchemaDialect::Draft04 | SchemaDialect::Draft202012 | SchemaDialect::Unnamed => {
                SchemaDraft::Draft202012
            }
        }
    }

    /// Returns whether `$ref` makes validators of this dialect ignore its sibling keywords.
    pub(super) fn ignores_siblings_of_ref(self) -> bool {
        self <= SchemaDialect::Draft07
    }
}

/// Returns the dialect that the root schema names, or 2020-12.
///
/// `definitions` does not identify a dialect: 2020-12 knows it too. A subschema may name an older dialect than a
/// 2020-12 root, since older keywords are rewritten anyway.
///
/// Source: the Tools pages of the specification since 2025-11-25 (2020-12 if no dialect is named).
pub(super) fn of(graph: &SchemaGraph<'_>) -> Result<SchemaDialect, String> {
    let named = |schema| match schema_uri(schema).map(|uri| (uri, known(uri))) {
        Some((uri, None)) => Err(format!(
            "the dialect {uri:?} is not supported; the supported dialects are 2020-12, 2019-09, draft-07, draft-06 and draft-04"
        )),
        Some((_, dialect)) => Ok(dialect),
        None => Ok(None),
    };
    let root = graph.parts.first().map(|part| named(part.schema));
    let root = root
        .transpose()?
        .flatten()
        .unwrap_or(SchemaDialect::Unnamed);
    for part in graph.parts.iter().skip(1) {
        let inner = named(part.schema)?.unwrap_or(root);
        if inner.draft() != root.draft() && root.draft() != SchemaDraft::Draft202012 {
            return Err("the schema mixes two dialects (\"$schema\")".to_owned());
        }
    }
    Ok(root)
}

/// Returns the dialect that this schema itself names, if it is a known one.
pub(super) fn named_by(schema: &Map<String, Value>) -> Option<SchemaDialect> {
    schema_uri(schema).and_then(known)
}

fn schema_uri(schema: &Map<String, Value>) -> Option<&str> {
    schema.get("$schema").and_then(Value::as_str)
}

fn known(name: &str) -> Option<SchemaDialect> {
    let name = name.strip_suffix('#').unwrap_or(name);
    let name = name
        .strip_prefix("https://")
        .or_else(|| name.strip_prefix("http://"))?;
    match name.strip_prefix("json-schema.org/")? {
        // The unversioned URI means the newest dialect.
        "draft/2020-12/schema" | "schema" => Some(SchemaDialect::Draft202012),
        "draft/2019-09/schema" => Some(SchemaDialect::Draft201909),
        "draft-07/schema" => Some(SchemaDialect::Draft07),
        "draft-06/schema" => Some(SchemaDialect::Draft06),
        "draft-04/schema" => Some(SchemaDialect::Draft04),
        _ => None,
    }
}
