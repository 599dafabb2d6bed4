//! Outputs: results of calls.

use super::{
    complete::CompleteResult, operation::Op, prompts_get::PromptResult, resources_read::ReadResult,
    tools_call::ToolResult,
};
use crate::json::Json;

/// Result of an operation: of `tools/call`, `resources/read`, `prompts/get` or `completion/complete`. An error of the
/// tool itself is a result too.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Result of `tools/call`.
    Tool(ToolResult),
    /// Result of `resources/read`: contents of a resource.
    Resource(ReadResult),
    /// Result of `prompts/get`: messages of a prompt.
    Prompt(PromptResult),
    /// Result of `completion/complete`: suggested values.
    Complete(CompleteResult),
}

impl Output {
    /// Reads the result of this operation, which must not be `input_required`.
    ///
    /// # Errors
    /// Returns the reason if a member is missing or wrong.
    pub fn read(op: Op, result: &Json) -> Result<Output, &'static str> {
        match op {
            Op::Tool => ToolResult::read(result).map(Output::Tool),
            Op::Resource => ReadResult::read(result).map(Output::Resource),
            Op::Prompt => PromptResult::read(result).map(Output::Prompt),
            Op::Complete(_) => CompleteResult::read(result).map(Output::Complete),
        }
    }

    /// Returns true if the result is a tool error (`isError`).
    pub fn is_error(&self) -> bool {
        matches!(self, Output::Tool(result) if result.is_error)
    }

    /// Creates a tool result of one text content block.
    pub fn text(text: &str) -> Output {
        Output::Tool(ToolResult::text(text))
    }

    /// Creates a tool error (`isError`) that a model can read.
    pub fn error(text: &str) -> Output {
        Output::Tool(ToolResult::error(text))
    }

    /// Returns the result of `tools/call`, by value; `None` for other results.
    pub fn into_tool(self) -> Option<ToolResult> {
        match self {
            Output::Tool(result) => Some(result),
            _ => None,
        }
    }

    /// Returns the result of `tools/call`, borrowed; `None` for other results.
    pub fn tool(&self) -> Option<&ToolResult> {
        match self {
            Output::Tool(result) => Some(result),
            _ => None,
        }
    }

    /// Returns the number of content blocks, resource contents, prompt messages or completion values.
    pub fn blocks(&self) -> usize {
        match self {
            Output::Tool(result) => result.content.len(),
            Output::Resource(result) => result.contents.len(),
            Output::Prompt(result) => result.messages.len(),
            Output::Complete(result) => result.values.len(),
        }
    }

    /// Returns the approximate size of the result as JSON text, in bytes.
    pub fn size(&self) -> usize {
        let json = |json: &Json| json.as_str().len();
        let meta = |meta: &Option<Json>| meta.as_ref().map_or(0, json);
        match self {
            Output::Tool(result) => result.size(),
            Output::Resource(result) => {
                result.contents.iter().map(json).sum::<usize>() + meta(&result.meta)
            }
            Output::Prompt(result) => {
                let messages = result.messages.iter().map(|m| json(&m.content.json));
                let description = result.description.as_ref().map_or(0, String::len);
                messages.sum::<usize>() + description + meta(&result.meta)
            }
            Output::Complete(result) => {
                result.values.iter().map(String::len).sum::<usize>() + meta(&result.meta)
            }
        }
    }
}

impl From<ToolResult> for Output {
    fn from(result: ToolResult) -> Output {
        Output::Tool(result)
    }
}
