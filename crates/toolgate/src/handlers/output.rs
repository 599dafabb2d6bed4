//! What a tool may return.

use super::{Stop, schema};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use toolgate_core::{Content, Json, ToolResult};

/// What a tool may return: text, blocks of content, a whole result, or [`Structured`] values.
pub trait IntoOutput {
    /// The result.
    ///
    /// # Errors
    /// It cannot be written.
    fn into_output(self) -> Result<ToolResult, Stop>;

    /// The schema of its structured part, where it has one.
    fn schema() -> Option<Result<Value, String>> {
        None
    }
}

/// A value that programs read: sent as `structuredContent`, and once more as text for clients that know only that.
///
/// Revisions before 2026-07-28 take objects only; they get any other value as text.
#[derive(Clone, Debug)]
pub struct Structured<T>(pub T);

impl<T: Serialize + JsonSchema> IntoOutput for Structured<T> {
    fn into_output(self) -> Result<ToolResult, Stop> {
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
    fn into_output(self) -> Result<ToolResult, Stop> {
        Ok(self)
    }
}

impl IntoOutput for String {
    fn into_output(self) -> Result<ToolResult, Stop> {
        Ok(ToolResult::text(&self))
    }
}

impl IntoOutput for &str {
    fn into_output(self) -> Result<ToolResult, Stop> {
        Ok(ToolResult::text(self))
    }
}

impl IntoOutput for () {
    fn into_output(self) -> Result<ToolResult, Stop> {
        Ok(ToolResult::default())
    }
}

impl IntoOutput for Content {
    fn into_output(self) -> Result<ToolResult, Stop> {
        vec![self].into_output()
    }
}

impl IntoOutput for Vec<Content> {
    fn into_output(self) -> Result<ToolResult, Stop> {
        Ok(ToolResult {
            content: self,
            ..ToolResult::default()
        })
    }
}
