//! For authors: whether definitions can be used, before anybody tries.

use super::{Bounds, Compiled, Schema, problems};
use crate::{arguments::Input, output_schema::Promised};
use serde_json::Value;
use toolgate_core::{Definition, Item, Json, Origin};

/// Whether the schemas of a tool can be checked within bounds, with every keyword.
///
/// # Errors
/// Which one cannot, or not as a whole, and why.
pub fn check_schemas(tool: &Definition, bounds: &Bounds) -> Result<(), String> {
    let origin = Origin {
        server: "".into(),
        trusted: true,
    };
    let item = Item::new(origin, tool.clone());
    let whole = |which: &str, compiled: &Compiled| match compiled {
        Err(why) => Err(format!("its {which} cannot be used: {why}")),
        Ok(schema) => match schema.skipped.first() {
            Some(keyword) => Err(format!("its {which} cannot be used: {keyword}")),
            None => Ok(()),
        },
    };
    whole("inputSchema", &Input::of(&item, bounds).0)?;
    match Promised::of(&item, bounds).0 {
        Some(promised) => whole("outputSchema", &promised),
        None => Ok(()),
    }
}

/// The keywords of a schema that are not checked, as `/properties/a/type (why)`.
///
/// # Errors
/// Why the schema cannot be used at all.
pub fn unchecked_keywords(schema: &Json, bounds: &Bounds) -> Result<Vec<String>, String> {
    Ok(Schema::compile(schema, bounds)?.skipped)
}

/// Whether a value fits a schema. One that cannot be checked fits nothing.
pub fn fits(schema: &Json, value: &Value) -> bool {
    judge(schema, value, &Bounds::default()).unwrap_or(false)
}

/// Whether a value fits a schema, without a limit of time: for tests and tools, not for foreign values.
///
/// # Errors
/// Why the schema cannot be used.
pub fn judge(schema: &Json, value: &Value, bounds: &Bounds) -> Result<bool, String> {
    let schema = Schema::compile(schema, bounds)?;
    Ok(problems(&schema, value).is_empty())
}
