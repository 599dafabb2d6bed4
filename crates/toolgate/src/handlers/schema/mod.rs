//! JSON Schemas of Rust types, restricted to keywords that all clients support.
//!
//! They follow 2020-12 without features that some clients reject: lists of types, `const`, `oneOf`, number formats,
//! `true` as a schema, and `$schema`. A definition that is small or used once is inlined; only recursive and large
//! types stay in `$defs`.
//!
//! An argument of type `Option` may be omitted, but must not be `null`. In a result, `null` is allowed as the type
//! says.

mod inline;
mod merge;
mod range;
mod root;
mod simplify;
#[cfg(test)]
mod tests;
mod traverse;

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::Value;
use simplify::SchemaDirection;
use toolgate_policy::SchemaBounds;

/// Returns the JSON Schema of a tool's arguments: of the JSON that `T` is deserialized from. Its root is an object,
/// because tool arguments are.
///
/// Specification: [JSON Schema usage](https://modelcontextprotocol.io/specification/2026-07-28/basic#json-schema-usage).
///
/// # Errors
/// The type is not deserialized from an object, or the schema exceeds the size or depth limit.
pub fn input_schema<T: JsonSchema>() -> Result<Value, String> {
    let settings = SchemaSettings::draft2020_12().for_deserialize();
    let schema =
        root::object_root(schema_of::<T>(settings, SchemaDirection::Input)).map_err(about::<T>)?;
    bounded(schema).map_err(about::<T>)
}

/// Returns the JSON Schema of a tool's structured content: of the JSON that `T` is serialized to.
///
/// Specification: [output schema](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#output-schema).
///
/// ```
/// use toolgate::handlers::schema::{input_schema, output_schema};
///
/// #[derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
/// struct Place {
///     /// Name of the city.
///     city: String,
///     country: Option<String>,
/// }
///
/// let schema = input_schema::<Place>()?;
/// assert_eq!(schema["properties"]["city"]["description"], "Name of the city.");
/// assert_eq!(schema["required"], serde_json::json!(["city"]));
/// assert_eq!(output_schema::<Place>()?["type"], "object");
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// The schema exceeds the size or depth limit.
pub fn output_schema<T: JsonSchema>() -> Result<Value, String> {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let schema = root::inline_root(schema_of::<T>(settings, SchemaDirection::Output));
    let schema = root::mark_as_object(schema);
    bounded(schema).map_err(about::<T>)
}

fn about<T: JsonSchema>(why: String) -> String {
    format!("the type {}: {why}", T::schema_name())
}

/// Simplifies before and after inlining: a simplified schema is smaller, and an inlined one can be simplified further.
fn schema_of<T: JsonSchema>(settings: SchemaSettings, plain: SchemaDirection) -> Value {
    let mut generator = settings.into_generator();
    let mut schema = generator.subschema_for::<T>().to_value();
    let definitions = generator.take_definitions(true);
    if !schema.is_object() {
        schema = Value::Object(serde_json::Map::new());
    }
    if !definitions.is_empty() {
        schema["$defs"] = Value::Object(definitions);
    }
    plain.simplify(&mut schema);
    inline::definitions(&mut schema);
    plain.simplify(&mut schema);
    schema
}

fn bounded(schema: Value) -> Result<Value, String> {
    let bounds = SchemaBounds::default();
    let bytes = schema.to_string().len();
    if bytes > bounds.bytes {
        return Err(format!(
            "its schema is {bytes} bytes long, but the limit is {}; use a smaller type",
            bounds.bytes
        ));
    }
    let depth = traverse::depth(&schema);
    if depth > bounds.depth {
        return Err(format!(
            "its schema is {depth} levels deep, but the limit is {}; use a flatter type",
            bounds.depth
        ));
    }
    Ok(schema)
}
