//! Schemas of Rust types, in the words that all clients understand.
//!
//! They are 2020-12 without what some clients refuse: no lists of types, no `const`, no `oneOf`, no formats of
//! numbers, no `true` for "anything", no `$schema`. A definition that is small or used once stands where it is used;
//! only recursive types and large ones stay in `$defs`.
//!
//! An argument of type `Option` may be left out, but `null` does not stand for it. In a result, where the type decides,
//! `null` is allowed.

mod inline;
mod merge;
mod plain;
mod range;
mod root;
#[cfg(test)]
mod tests;
mod walk;

use plain::Plain;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::Value;
use toolgate_policy::Bounds;

/// The schema of what a type is read from. Its root is an object, because the arguments of a tool are.
///
/// # Errors
/// The type is not read from an object, or its schema is larger or deeper than a server may offer.
pub fn input_schema<T: JsonSchema>() -> Result<Value, String> {
    let settings = SchemaSettings::draft2020_12().for_deserialize();
    let schema = root::object(schema_of::<T>(settings, Plain::Input)).map_err(about::<T>)?;
    bounded(schema).map_err(about::<T>)
}

/// The schema of what a type is written as.
///
/// # Errors
/// It is larger or deeper than a server may offer.
pub fn output_schema<T: JsonSchema>() -> Result<Value, String> {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let schema = root::at_top(schema_of::<T>(settings, Plain::Output));
    let schema = root::said_to_be_object(schema);
    bounded(schema).map_err(about::<T>)
}

fn about<T: JsonSchema>(why: String) -> String {
    format!("the type {}: {why}", T::schema_name())
}

/// Inlined before and after it is made plain: what is plain is smaller, and what is inlined can be made plainer.
fn schema_of<T: JsonSchema>(settings: SchemaSettings, plain: Plain) -> Value {
    let mut generator = settings.into_generator();
    let mut schema = generator.subschema_for::<T>().to_value();
    let definitions = generator.take_definitions(true);
    if !schema.is_object() {
        schema = Value::Object(serde_json::Map::new());
    }
    if !definitions.is_empty() {
        schema["$defs"] = Value::Object(definitions);
    }
    plain.make(&mut schema);
    inline::definitions(&mut schema);
    plain.make(&mut schema);
    schema
}

fn bounded(schema: Value) -> Result<Value, String> {
    let bounds = Bounds::default();
    let bytes = schema.to_string().len();
    if bytes > bounds.bytes {
        return Err(format!(
            "its schema is {bytes} bytes long, the limit is {}; use a smaller type",
            bounds.bytes
        ));
    }
    let depth = walk::depth(&schema);
    if depth > bounds.depth {
        return Err(format!(
            "its schema is {depth} levels deep, the limit is {}; use a flatter type",
            bounds.depth
        ));
    }
    Ok(schema)
}
