//! JSON Schemas of tools: compiled once, within bounds, without fetching anything. Most schemas are plain
//! ([`plain`]); for those the compiler is needed only to explain why a value does not fit.

mod author;
mod backtracking;
mod bounds;
mod budget;
mod cache;
mod cost;
mod defaults;
mod dialect;
mod ecma;
mod explain;
mod plain;
mod position;
mod reference;
mod regex_cost;
mod repair;
mod rewrite;
mod sanitizer;
#[cfg(test)]
mod tests;

pub use author::{check_schemas, fits_schema, unchecked_keywords, validate_value};
pub use bounds::SchemaBounds;
pub use budget::RequiredDefaults;
pub(crate) use budget::{CheckFailure, CheckResult, check, fits as fits_short};
pub(crate) use cache::{CompiledSchema, compiled};
pub(crate) use explain::{
    MAX_SCHEMA_PROBLEMS, SchemaProblems, describe_value, pointer_step, problems, truncate,
    unknown_member,
};
pub use sanitizer::SchemaSanitizer;

use crate::validation::arguments::is_closed;
use jsonschema::{Draft, PatternOptions, ValidationOptions, Validator};
use serde_json::Value;
use std::{sync::OnceLock, time::Duration};
use toolgate_core::Json;

/// Maximum size of one compiled regular expression, and of its cache, in bytes.
const MAX_REGEX_BYTES: usize = 512 * 1024;
/// Maximum size of all compiled regular expressions of a schema, in bytes.
const MAX_SCHEMA_REGEX_BYTES: usize = 4 * 1024 * 1024;

/// A JSON Schema that values can be validated against.
pub(crate) struct SchemaValidator {
    /// The schema as compiled: rewritten to its dialect's draft, without the keywords that are not checked.
    pub(crate) tree: Value,
    /// True if the schema rejects members that it does not name.
    pub(crate) closed: bool,
    /// The fast path for plain schemas. With it, the validator is compiled only when a value does not fit.
    plain: Option<plain::PlainSchema>,
    compiled: OnceLock<Result<Validator, String>>,
    draft: Draft,
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
        #[cfg(test)]
        tests::COMPILED.set(tests::COMPILED.get() + 1);
        bounds::check_size(schema, bounds.bytes)?;
        let original = schema.to_value();
        let dialect = dialect::of(&bounds::SchemaGraph::of(&original, bounds)?)?;
        let tree = rewrite::rewrite(&original, dialect);
        let mut schema = SchemaValidator::of(tree, dialect.draft(), bounds)?;
        if schema.plain.is_none() && schema.validator().is_err() {
            schema = schema.repaired(bounds)?;
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
    fn of(tree: Value, draft: Draft, bounds: &SchemaBounds) -> Result<SchemaValidator, String> {
        let graph = bounds::SchemaGraph::of(&tree, bounds)?;
        let edges = reference::resolve(&graph)?;
        let work = cost::of(&graph, &edges)?;
        Ok(SchemaValidator {
            plain: plain::PlainSchema::of(&tree, draft),
            compiled: OnceLock::new(),
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

    /// Returns the schema without the keywords that cannot be checked.
    fn repaired(self, bounds: &SchemaBounds) -> Result<SchemaValidator, String> {
        let max_bytes = self.max_pattern_bytes();
        let repaired = repair::repair(self.tree, self.draft, max_bytes);
        let mut schema = SchemaValidator::of(repaired.tree, self.draft, bounds)?;
        let holds_keyword = |part: &position::LocatedSchema<'_>| {
            part.schema.contains_key(backtracking::PATTERN_KEYWORD)
        };
        schema.backtracks = position::schemas(&schema.tree).iter().any(holds_keyword);
        schema.backtracking_names = repaired.backtracking_names;
        schema.skipped = repaired.skipped;
        schema.validator()?;
        Ok(schema)
    }

    /// Returns the schema without required members that have a default, if that differs.
    pub(crate) fn relaxed(&self) -> Option<&SchemaValidator> {
        self.relaxed.as_deref()
    }

    /// Returns the compiled validator, built on first use, or at once if the schema is not plain.
    ///
    /// # Errors
    /// Returns the reason if the schema does not compile; a plain schema always does.
    pub(crate) fn validator(&self) -> Result<&Validator, String> {
        let made = self.compiled.get_or_init(|| self.build());
        made.as_ref().map_err(Clone::clone)
    }

    fn max_pattern_bytes(&self) -> usize {
        MAX_REGEX_BYTES.min(MAX_SCHEMA_REGEX_BYTES / self.patterns.max(1))
    }

    fn build(&self) -> Result<Validator, String> {
        #[cfg(test)]
        tests::BUILT.set(tests::BUILT.get() + 1);
        let max_bytes = self.max_pattern_bytes();
        let options = options(self.draft, max_bytes);
        let options = match self.backtracking_names {
            true => options.with_pattern_options(
                PatternOptions::fancy_regex()
                    .backtrack_limit(backtracking::MAX_NAME_STEPS)
                    .size_limit(max_bytes)
                    .dfa_size_limit(max_bytes),
            ),
            false => options,
        };
        let built = options.build(&self.tree);
        built.map_err(|error| truncate_message(&error.to_string()))
    }
}

/// Returns the compiler options, with linear-time regular expressions of at most `max_pattern_bytes` each.
fn options(draft: Draft, max_pattern_bytes: usize) -> ValidationOptions<'static> {
    let patterns = PatternOptions::regex()
        .size_limit(max_pattern_bytes)
        .dfa_size_limit(max_pattern_bytes);
    jsonschema::options()
        .with_draft(draft)
        .offline()
        // A value that is itself a regular expression would be compiled, however large it becomes.
        .with_format("regex", |_: &str| true)
        .with_pattern_options(patterns)
        .with_keyword(backtracking::PATTERN_KEYWORD, move |_, value, _| {
            backtracking::keyword(value, max_pattern_bytes)
        })
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
