//! Schemas of Rust types, as other programs take them.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::Value;

/// The schema of what a type is read from.
///
/// # Errors
/// Why there is none.
pub fn input_schema<T: JsonSchema>() -> Result<Value, String> {
    Ok(SchemaSettings::draft2020_12()
        .for_deserialize()
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value())
}

/// The schema of what a type is written as.
///
/// # Errors
/// Why there is none.
pub fn output_schema<T: JsonSchema>() -> Result<Value, String> {
    Ok(SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value())
}
