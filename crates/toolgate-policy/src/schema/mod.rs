//! JSON Schemas of tools: compiled once, within bounds, without ever fetching anything.

mod author;
mod bounds;
mod dialect;
mod explain;
mod reference;
#[cfg(test)]
mod tests;
mod withhold;
mod work;

pub use author::{check_schemas, fits};
pub use bounds::Bounds;
pub(crate) use explain::{Explained, MOST, kind, problems, short, step, stranger};
pub use withhold::Schemas;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;
use toolgate_core::Json;

/// The largest regular expression once compiled, and its cache, in bytes.
const PATTERN: usize = 512 * 1024;

/// A schema that values can be checked against.
pub(crate) struct Schema {
    pub(crate) tree: Value,
    pub(crate) validator: Validator,
    /// How deep a value may be before checking it could take too long.
    pub(crate) depth: usize,
}

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// Why it cannot be checked; then nothing may be checked against it.
    pub(crate) fn compile(schema: &Json, bounds: &Bounds) -> Result<Schema, String> {
        bounds::bytes(schema, bounds.bytes)?;
        let tree = schema.to_value();
        let graph = bounds::Graph::of(&tree, bounds)?;
        let draft = dialect::of(&graph)?;
        let edges = reference::resolve(&graph)?;
        let depth = work::depth(&graph, &edges)?;
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
            depth,
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
