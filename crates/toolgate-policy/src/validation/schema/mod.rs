//! JSON Schemas of tools: compiled once, within bounds, without fetching anything. Most schemas are plain
//! ([`plain`]); for those the compiler is needed only to explain why a value does not fit.

mod author;
#[cfg(feature = "full-json-schema")]
mod backtracking;
mod bounds;
mod budget;
mod cache;
mod cost;
mod defaults;
mod dialect;
#[cfg(feature = "full-json-schema")]
mod ecma;
mod explain;
#[cfg(feature = "full-json-schema")]
mod full;
mod plain;
#[cfg(not(feature = "full-json-schema"))]
mod plain_only;
mod position;
mod reference;
mod regex_cost;
#[cfg(feature = "full-json-schema")]
mod repair;
mod rewrite;
mod sanitizer;
#[cfg(test)]
#[cfg(feature = "full-json-schema")]
mod tests;

#[cfg(feature = "full-json-schema")]
use full as checker;
#[cfg(not(feature = "full-json-schema"))]
use plain_only as checker;

pub use author::{
    check_item_schemas, check_schemas, fits_schema, unchecked_keywords, validate_value,
};
pub use bounds::SchemaBounds;
pub use budget::RequiredDefaults;
pub(crate) use budget::{CheckFailure, CheckResult, check, fits as fits_short};
pub(crate) use cache::{CompiledSchema, compiled};
pub(crate) use checker::USER_ADVICE;
pub(crate) use explain::{
    MAX_SCHEMA_PROBLEMS, SchemaProblems, describe_value, pointer_step, problems, truncate,
    unknown_member,
};
pub use sanitizer::SchemaSanitizer;

use crate::validation::arguments::is_closed;
use dialect::SchemaDraft;
use serde_json::Value;
use std::time::Duration;
use toolgate_core::Json;

/// The custom keyword of a backtracking pattern in a compiled schema.
const PATTERN_KEYWORD: &str = "toolgate:pattern";

/// A JSON Schema that values can be validated against.
pub(crate) struct SchemaValidator {
    /// The schema as compiled: rewritten to its dialect's draft, without the keywords that are not checked.
    pub(crate) tree: Value,
    /// True if the schema rejects members that it does not name.
    pub(crate) closed: bool,
    /// The fast path for plain schemas. With it, the validator is compiled only when a value does not fit.
    plain: Option<plain::PlainSchema>,
    compiled: checker::CompiledChecker,
    draft: SchemaDraft,
    /// Number of regular expressions.
    patterns: usize,
    /// Maximum nesting of a value; checking a deeper one could take too long.
    pub(crate) depth: usize,
    /// Estimated cost of checking a value.
    pub(crate) cost: cost::CheckCost,
    /// Maximum processor time for one value.
    pub(crate) time: Duration,
    /// Keywords that are not checked, each with the reason.
    pub(crate) skipped: Vec<String>,
    /// True if it has a pattern that is matched by backtracking.
    pub(crate) backtracks: bool,
    backtracking_names: bool,
    /// The schema without required members that have a default, if that differs.
    relaxed: Option<Box<SchemaValidator>>,
}

impl SchemaValidator {
    /// Compiles a schema. Keywords that cannot be checked are skipped.
    ///
    /// # Errors
    /// Returns the reason if the schema cannot be used; nothing may be checked against it then.
    pub(crate) fn compile(schema: &Json, bounds: &SchemaBounds) -> Result<SchemaValidator, String> {
        #[cfg(all(test, feature = "full-json-schema"))]
        tests::COMPILED.set(tests::COMPILED.get() + 1);
        bounds::check_size(schema, bounds.bytes)?;
        let original = schema.to_value();
        let dialect = dialect::of(&bounds::SchemaGraph::of(&original, bounds)?)?;
        let tree = rewrite::rewrite(&original, dialect);
        let mut schema = SchemaValidator::of(tree, dialect.draft(), bounds)?;
        if schema.plain.is_none() {
            schema = checker::compile(schema, bounds)?;
        }
        schema.closed = is_closed(&original);
        if let Some(tree) = defaults::optional(&schema.tree) {
            let mut relaxed = SchemaValidator::of(tree, schema.draft, bounds)?;
            relaxed.backtracks = schema.backtracks;
            relaxed.backtracking_names = schema.backtracking_names;
            schema.relaxed = Some(Box::new(relaxed));
        }
        Ok(schema)
    }

    /// Builds the schema from a rewritten tree, without repairs.
    fn of(
        tree: Value,
        draft: SchemaDraft,
        bounds: &SchemaBounds,
    ) -> Result<SchemaValidator, String> {
        let graph = bounds::SchemaGraph::of(&tree, bounds)?;
        let edges = reference::resolve(&graph)?;
        let work = cost::of(&graph, &edges)?;
        Ok(SchemaValidator {
            plain: plain::PlainSchema::of(&tree, draft),
            compiled: Default::default(),
            draft,
            patterns: graph.patterns,
            depth: work.depth,
            cost: work.cost,
            time: bounds.time,
            closed: false,
            skipped: Vec::new(),
            backtracks: false,
            backtracking_names: false,
            relaxed: None,
            tree,
        })
    }

    /// Returns the schema without required members that have a default, if that differs.
    pub(crate) fn relaxed(&self) -> Option<&SchemaValidator> {
        self.relaxed.as_deref()
    }
}

/// Truncates a message that may quote the whole schema.
fn truncate_message(text: &str) -> String {
    const MAX_MESSAGE_CHARS: usize = 200;
    let text = crate::sanitize::text::sanitize_text(text);
    match text.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((at, _)) => format!("{} …", &text[..at]),
        None => text.into_owned(),
    }
}
