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
    let wrong = |which: &str, why: String| Err(format!("its {which} cannot be used: {why}"));
    if let Err(why) = Input::of(&item, bounds).0 {
        return wrong("inputSchema", why);
    }
    match Promised::of(&item, bounds).0 {
        Err(why) => wrong("outputSchema", why),
        Ok(_) => Ok(()),
    }
}

/// Whether a value fits a schema. One that cannot be checked fits nothing.
pub fn fits(schema: &Json, value: &Value) -> bool {
    let compiled = Schema::compile(schema, &Bounds::default());
    compiled.is_ok_and(|schema| problems(&schema, value).is_empty())
}
