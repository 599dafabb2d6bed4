//! JSON Schemas of tools: compiled once, within bounds, without ever fetching anything.

mod author;
mod bounds;
mod budget;
mod dialect;
mod explain;
mod kept;
mod pattern;
mod reference;
#[cfg(test)]
mod tests;
mod withhold;
mod work;

pub use author::{check_schemas, fits, judge};
pub use bounds::Bounds;
pub(crate) use budget::{Checked, check};
pub(crate) use explain::{Explained, MOST, kind, problems, short, step, stranger};
pub(crate) use kept::{Compiled, compiled};
pub use withhold::Schemas;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;
use std::time::Duration;
use toolgate_core::Json;

/// The largest regular expression once compiled, and its cache, in bytes.
const PATTERN: usize = 512 * 1024;

/// A schema that values can be checked against.
pub(crate) struct Schema {
    pub(crate) tree: Value,
    pub(crate) validator: Validator,
    /// How deep a value may be before checking it could take too long.
    pub(crate) depth: usize,
    /// How many schemas look at one place of a value at most.
    pub(crate) looks: u64,
    /// The states of its largest regular expression, about; 0 without any.
    pub(crate) states: u64,
    /// How long a check may take.
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
        let states = graph.patterns.states;
        let patterns = PatternOptions::regex()
            .size_limit(PATTERN)
            .dfa_size_limit(PATTERN);
        let options = jsonschema::options()
            .with_draft(draft)
            .offline()
            .with_pattern_options(patterns);
        let validator = options
            .build(&tree)
            .map_err(|error| shorten(&error.to_string()))?;
        Ok(Schema {
            validator,
            depth: work.depth,
            // To compare with a value is less than to ask a schema.
            looks: work.looks.saturating_mul(1 + graph.compared / 8),
            states,
            time: bounds.time,
            tree,
        })
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
