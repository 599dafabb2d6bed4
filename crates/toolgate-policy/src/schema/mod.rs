//! JSON Schemas of tools: compiled once, within bounds, without ever fetching anything. What is plain, as most are, needs
//! the compiler only to say why a value does not fit.

mod author;
mod backtracking;
mod bounds;
mod budget;
mod defaults;
mod dialect;
mod ecma;
mod explain;
mod kept;
mod pattern;
mod plain;
mod position;
mod reference;
mod repair;
mod rewrite;
#[cfg(test)]
mod tests;
mod withhold;
mod work;

pub use author::{check_schemas, fits, judge, unchecked_keywords};
pub use bounds::Bounds;
pub use budget::RequiredDefaults;
pub(crate) use budget::{Checked, check, fits as fits_short};
pub(crate) use explain::{Explained, MOST, kind, problems, short, step, stranger};
pub(crate) use kept::{Compiled, compiled};
pub use withhold::Schemas;

use crate::arguments::is_closed;
use jsonschema::{Draft, PatternOptions, ValidationOptions, Validator};
use serde_json::Value;
use std::{sync::OnceLock, time::Duration};
use toolgate_core::Json;

/// The largest regular expression once compiled, and its cache, in bytes.
const PATTERN: usize = 512 * 1024;
/// All of one schema.
const PATTERNS: usize = 4 * 1024 * 1024;

/// A schema that values can be checked against.
pub(crate) struct Schema {
    /// As it is compiled: in the words of its dialect, without the keywords that are not checked.
    pub(crate) tree: Value,
    /// Whether it takes no members but those that it names.
    pub(crate) closed: bool,
    /// What most schemas are, and then nothing is compiled until a value does not fit.
    plain: Option<plain::Plain>,
    compiled: OnceLock<Result<Validator, String>>,
    draft: Draft,
    /// Regular expressions in it.
    patterns: usize,
    /// How deep a value may be before checking it could take too long.
    pub(crate) depth: usize,
    /// What checking a value costs.
    pub(crate) cost: work::Cost,
    /// How long a processor may work on one value.
    pub(crate) time: Duration,
    /// Keywords that are not checked, each with the reason.
    pub(crate) skipped: Vec<String>,
    /// Whether a pattern in it is matched by backtracking.
    pub(crate) backtracks: bool,
    backtracking_names: bool,
    /// The same where members with a default may be left out, if that makes a difference.
    relaxed: Option<Box<Schema>>,
}

impl Schema {
    /// Compiles a schema. A keyword that cannot be checked is skipped.
    ///
    /// # Errors
    /// Why it cannot be checked; then nothing may be checked against it.
    pub(crate) fn compile(schema: &Json, bounds: &Bounds) -> Result<Schema, String> {
        #[cfg(test)]
        tests::COMPILED.set(tests::COMPILED.get() + 1);
        bounds::bytes(schema, bounds.bytes)?;
        let original = schema.to_value();
        let dialect = dialect::of(&bounds::Graph::of(&original, bounds)?)?;
        let tree = rewrite::rewrite(&original, dialect);
        let mut schema = Schema::of(tree, dialect.draft(), bounds)?;
        if schema.plain.is_none() && schema.validator().is_err() {
            schema = schema.repaired(bounds)?;
        }
        schema.closed = is_closed(&original);
        if let Some(tree) = defaults::optional(&schema.tree) {
            let mut relaxed = Schema::of(tree, schema.draft, bounds)?;
            relaxed.backtracks = schema.backtracks;
            relaxed.backtracking_names = schema.backtracking_names;
            schema.relaxed = Some(Box::new(relaxed));
        }
        Ok(schema)
    }

    /// A schema that is checked as it stands.
    fn of(tree: Value, draft: Draft, bounds: &Bounds) -> Result<Schema, String> {
        let graph = bounds::Graph::of(&tree, bounds)?;
        let edges = reference::resolve(&graph)?;
        let work = work::of(&graph, &edges)?;
        Ok(Schema {
            plain: plain::Plain::of(&tree, draft),
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

    /// The same without the keywords that cannot be checked.
    fn repaired(self, bounds: &Bounds) -> Result<Schema, String> {
        let max_bytes = self.max_pattern_bytes();
        let repaired = repair::repair(self.tree, self.draft, max_bytes);
        let mut schema = Schema::of(repaired.tree, self.draft, bounds)?;
        let holds_keyword =
            |part: &position::Located<'_>| part.schema.contains_key(backtracking::KEYWORD);
        schema.backtracks = position::schemas(&schema.tree).iter().any(holds_keyword);
        schema.backtracking_names = repaired.backtracking_names;
        schema.skipped = repaired.skipped;
        schema.validator()?;
        Ok(schema)
    }

    /// The same without the requirement of members that have a default, if that makes a difference.
    pub(crate) fn relaxed(&self) -> Option<&Schema> {
        self.relaxed.as_deref()
    }

    /// The compiled form, made when it is first asked for: at once where the schema is not plain.
    ///
    /// # Errors
    /// Why there is none; a plain schema has one.
    pub(crate) fn validator(&self) -> Result<&Validator, String> {
        let made = self.compiled.get_or_init(|| self.build());
        made.as_ref().map_err(Clone::clone)
    }

    fn max_pattern_bytes(&self) -> usize {
        PATTERN.min(PATTERNS / self.patterns.max(1))
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
        built.map_err(|error| shorten(&error.to_string()))
    }
}

/// How schemas are compiled: with regular expressions of so many bytes each, in linear time.
fn options(draft: Draft, max_pattern_bytes: usize) -> ValidationOptions<'static> {
    let patterns = PatternOptions::regex()
        .size_limit(max_pattern_bytes)
        .dfa_size_limit(max_pattern_bytes);
    jsonschema::options()
        .with_draft(draft)
        .offline()
        // A value that is an expression would be compiled, however large it becomes.
        .with_format("regex", |_: &str| true)
        .with_pattern_options(patterns)
        .with_keyword(backtracking::KEYWORD, move |_, value, _| {
            backtracking::keyword(value, max_pattern_bytes)
        })
}

/// The first words of a message that may quote the whole schema.
fn shorten(text: &str) -> String {
    const MOST: usize = 200;
    let text = crate::text::clean(text);
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{} …", &text[..at]),
        None => text.into_owned(),
    }
}
