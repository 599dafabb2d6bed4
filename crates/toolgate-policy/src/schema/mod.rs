//! JSON Schemas of tools: compiled once, within bounds, without ever fetching anything. What is plain, as most are, needs
//! the compiler only to say why a value does not fit.

mod author;
mod bounds;
mod budget;
mod dialect;
mod explain;
mod kept;
mod pattern;
mod plain;
mod reference;
#[cfg(test)]
mod tests;
mod withhold;
mod work;

pub use author::{check_schemas, fits, judge};
pub use bounds::Bounds;
pub(crate) use budget::{Checked, check, fits as fits_short};
pub(crate) use explain::{Explained, MOST, kind, problems, short, step, stranger};
pub(crate) use kept::{Compiled, compiled};
pub use withhold::Schemas;

use crate::arguments::is_closed;
use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;
use std::{sync::OnceLock, time::Duration};
use toolgate_core::Json;

/// The largest regular expression once compiled, and its cache, in bytes.
const PATTERN: usize = 512 * 1024;
/// All of one schema.
const PATTERNS: usize = 4 * 1024 * 1024;

/// A schema that values can be checked against.
pub(crate) struct Schema {
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
}

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// Why it cannot be checked; then nothing may be checked against it.
    pub(crate) fn compile(schema: &Json, bounds: &Bounds) -> Result<Schema, String> {
        #[cfg(test)]
        tests::COMPILED.set(tests::COMPILED.get() + 1);
        bounds::bytes(schema, bounds.bytes)?;
        let tree = schema.to_value();
        let graph = bounds::Graph::of(&tree, bounds)?;
        let draft = dialect::of(&graph)?;
        let edges = reference::resolve(&graph)?;
        let work = work::of(&graph, &edges)?;
        let plain = plain::Plain::of(&tree, draft);
        let schema = Schema {
            plain,
            compiled: OnceLock::new(),
            draft,
            patterns: graph.patterns,
            depth: work.depth,
            cost: work.cost,
            time: bounds.time,
            closed: is_closed(&tree),
            tree,
        };
        if schema.plain.is_none() {
            schema.validator()?;
        }
        Ok(schema)
    }

    /// The compiled form, made when it is first asked for: at once where the schema is not plain.
    ///
    /// # Errors
    /// Why there is none; a plain schema has one.
    pub(crate) fn validator(&self) -> Result<&Validator, String> {
        let made = self.compiled.get_or_init(|| self.build());
        made.as_ref().map_err(Clone::clone)
    }

    fn build(&self) -> Result<Validator, String> {
        #[cfg(test)]
        tests::BUILT.set(tests::BUILT.get() + 1);
        let each = PATTERN.min(PATTERNS / self.patterns.max(1));
        let patterns = PatternOptions::regex()
            .size_limit(each)
            .dfa_size_limit(each);
        let options = jsonschema::options()
            .with_draft(self.draft)
            .offline()
            // A value that is an expression would be compiled, however large it becomes.
            .with_format("regex", |_: &str| true)
            .with_pattern_options(patterns);
        let built = options.build(&self.tree);
        built.map_err(|error| shorten(&error.to_string()))
    }
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
