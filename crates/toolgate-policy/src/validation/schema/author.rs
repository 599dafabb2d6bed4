//! Schema checks for authors of tool definitions, to be run before anyone calls the tool.

use super::{CompiledSchema, SchemaBounds, SchemaValidator, checker::AUTHOR_ADVICE, problems};
use crate::{
    validation::arguments::CompiledInputSchema, validation::output_schema::DeclaredOutputSchema,
};
use serde_json::Value;
use toolgate_core::{Definition, Item, Json, Origin};

/// Returns `Ok` if validation can check every keyword of a tool's `inputSchema` and `outputSchema` within the bounds.
///
/// Specification: [JSON Schema usage](https://modelcontextprotocol.io/specification/2026-07-28/basic#json-schema-usage).
///
/// ```
/// use serde_json::json;
/// use toolgate_core::{Definition, Json};
/// use toolgate_policy::{SchemaBounds, check_schemas, validate_value};
///
/// let schema = json!({
///     "type": "object",
///     "properties": {"days": {"type": "integer", "minimum": 1, "maximum": 7}},
///     "required": ["days"],
/// });
/// let tool = json!({"name": "forecast", "inputSchema": schema});
/// check_schemas(&Definition::tool(Json::from_value(&tool))?, &SchemaBounds::default())?;
///
/// let schema = Json::from_value(&schema);
/// assert!(validate_value(&schema, &json!({"days": 3}), &SchemaBounds::default())?);
/// assert!(!validate_value(&schema, &json!({"days": 8}), &SchemaBounds::default())?);
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// Names the schema (`inputSchema` or `outputSchema`) that fails, or its first keyword that is not checked, and the
/// reason.
pub fn check_schemas(tool: &Definition, bounds: &SchemaBounds) -> Result<(), String> {
    let origin = Origin {
        server: "".into(),
        trusted: true,
    };
    check_item_schemas(&Item::new(origin, tool.clone()), bounds)
}

/// Checks the schemas of an item as [`check_schemas`] does. The item keeps them compiled, so that its first list does not
/// compile them again.
///
/// # Errors
/// As [`check_schemas`].
#[doc(hidden)]
pub fn check_item_schemas(item: &Item, bounds: &SchemaBounds) -> Result<(), String> {
    let compile = |item: &Item| CheckedSchemas {
        input: CompiledInputSchema::of(item, bounds),
        output: DeclaredOutputSchema::of(item, bounds),
    };
    // Never from the cache of the item: an earlier check may have had other bounds.
    let checked = item.cached_while(|_| false, compile);
    let whole = |which: &str, compiled: &CompiledSchema| match compiled {
        Err(why) => Err(format!(
            "its {which} cannot be used: {why}; {AUTHOR_ADVICE}"
        )),
        Ok(schema) => match schema.skipped.first() {
            Some(keyword) => Err(format!(
                "a part of its {which} cannot be checked: {keyword}; {AUTHOR_ADVICE}"
            )),
            None => Ok(()),
        },
    };
    whole("inputSchema", &checked.input.0)?;
    match &checked.output.0 {
        Some(promised) => whole("outputSchema", promised),
        None => Ok(()),
    }
}

/// The compiled schemas of an item, as its author checked them. A server with other bounds compiles the schemas itself.
struct CheckedSchemas {
    input: CompiledInputSchema,
    output: DeclaredOutputSchema,
}

/// Returns the keywords of a JSON Schema that validation skips, each as `/properties/a/type (why)`.
///
/// # Errors
/// Returns the reason if the schema cannot be compiled.
#[doc(hidden)]
pub fn unchecked_keywords(schema: &Json, bounds: &SchemaBounds) -> Result<Vec<String>, String> {
    Ok(SchemaValidator::compile(schema, bounds)?.skipped)
}

/// Returns whether a JSON value is valid against a JSON Schema. Nothing is valid against a schema that does not
/// compile.
#[doc(hidden)]
pub fn fits_schema(schema: &Json, value: &Value) -> bool {
    validate_value(schema, value, &SchemaBounds::default()).unwrap_or(false)
}

/// Validates a JSON value against a JSON Schema without a time limit: for tests and tools, not for untrusted values.
///
/// # Errors
/// Returns the reason if the schema cannot be compiled.
pub fn validate_value(schema: &Json, value: &Value, bounds: &SchemaBounds) -> Result<bool, String> {
    let schema = SchemaValidator::compile(schema, bounds)?;
    Ok(problems(&schema, value).is_empty())
}
