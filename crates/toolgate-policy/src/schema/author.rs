//! For authors: whether definitions can be used, before anybody tries.

use super::{Bounds, Schema, problems};
use crate::{arguments::Input, output_schema::Promised};
use serde_json::Value;
use toolgate_core::{Definition, Item, Json, Origin};

/// Whether the schemas of a tool can be checked within bounds.
///
/// # Errors
/// Which one cannot, and why.
pub fn check_schemas(tool: &Definition, bounds: &Bounds) -> Result<(), String> {
    let origin = Origin {
        server: "".into(),
        trusted: true,
    };
    let item = Item::new(origin, tool.clone());
    let wrong = |which: &str, why: &str| Err(format!("its {which} cannot be used: {why}"));
    if let Err(why) = Input::of(&item, bounds).0.as_ref() {
        return wrong("inputSchema", why);
    }
    match Promised::of(&item, bounds).0.as_deref() {
        Some(Err(why)) => wrong("outputSchema", why),
        _ => Ok(()),
    }
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
