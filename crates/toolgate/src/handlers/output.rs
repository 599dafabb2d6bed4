//! Return types of tool handlers.

use super::{HandlerExit, schema};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use toolgate_core::{Content, Json, ToolResult};

/// Types that a tool handler can return: text, content blocks, a complete result, or [`Structured`] values.
///
/// ```
/// use toolgate::{HandlerExit, core::ToolResult, handlers::IntoOutput, tool};
///
/// /// A temperature.
/// struct Celsius(f64);
///
/// impl IntoOutput for Celsius {
///     fn into_output(self) -> Result<ToolResult, HandlerExit> {
///         format!("{:.1} °C", self.0).into_output()
///     }
/// }
///
/// /// Temperature of a room.
/// #[tool(read_only)]
/// fn temperature(room: String) -> Celsius {
///     Celsius(if room == "cellar" { 12.0 } else { 21.5 })
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the value of a tool",
    label = "a tool does not return this type",
    note = "return text, `Content`, a `ToolResult`, `()`, or `Structured(value)` for a value of your own"
)]
pub trait IntoOutput {
    /// Converts the handler's return value to a tool result (`tools/call`).
    ///
    /// # Errors
    /// The value cannot be serialized.
    fn into_output(self) -> Result<ToolResult, HandlerExit>;

    /// Returns the output schema of the type's structured content, if it has any.
    fn schema() -> Option<Result<Value, String>> {
        None
    }
}

/// Wrapper for a tool's return value that is sent as `structuredContent`, and repeated as text for older clients.
///
/// Revisions before 2026-07-28 allow only objects; any other value is sent to them as text.
///
/// Specification: [structured content](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#structured-content).
#[derive(Clone, Debug)]
pub struct Structured<T>(pub T);

impl<T: Serialize + JsonSchema> IntoOutput for Structured<T> {
    fn into_output(self) -> Result<ToolResult, HandlerExit> {
        let value = serde_json::to_value(self.0)?;
        let json = Json::from_value(&value);
        Ok(ToolResult {
            structured: Some(json.clone()),
            ..ToolResult::text(json.as_str())
        })
    }

    fn schema() -> Option<Result<Value, String>> {
        Some(schema::output_schema::<T>())
    }
}

impl IntoOutput for ToolResult {
    fn into_output(self) -> Result<ToolResult, HandlerExit> {
        Ok(self)
    }
}

impl IntoOutput for String {
    fn into_output(self) -> Result<ToolResult, HandlerExit> {
        Ok(ToolResult::text(&self))
    }
}

impl IntoOutput for &str {
    fn into_output(self) -> Result<ToolResult, HandlerExit> {
        Ok(ToolResult::text(self))
    }
}

impl IntoOutput for () {
    fn into_output(self) -> Result<ToolResult, HandlerExit> {
        Ok(ToolResult::default())
    }
}

impl IntoOutput for Content {
    fn into_output(self) -> Result<ToolResult, HandlerExit> {
        vec![self].into_output()
    }
}

impl IntoOutput for Vec<Content> {
    fn into_output(self) -> Result<ToolResult, HandlerExit> {
        Ok(ToolResult {
            content: self,
            ..ToolResult::default()
        })
    }
}
