//! What came of using something.

use super::{
    complete::CompleteResult, prompts_get::PromptResult, resources_read::ReadResult,
    tools_call::ToolResult, usage::Op,
};
use crate::json::Json;

/// What came of using something. An error of a tool itself is a result too.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Of a tool.
    Tool(ToolResult),
    /// Of a resource.
    Resource(ReadResult),
    /// Of a prompt.
    Prompt(PromptResult),
    /// Of a completion.
    Complete(CompleteResult),
}

impl Output {
    /// Reads a complete result by what was done.
    ///
    /// # Errors
    /// Says what is missing or wrong.
    pub fn read(op: Op, result: &Json) -> Result<Output, &'static str> {
        match op {
            Op::Tool => ToolResult::read(result).map(Output::Tool),
            Op::Resource => ReadResult::read(result).map(Output::Resource),
            Op::Prompt => PromptResult::read(result).map(Output::Prompt),
            Op::Complete(_) => CompleteResult::read(result).map(Output::Complete),
        }
    }

    /// Whether a tool failed.
    pub fn is_error(&self) -> bool {
        matches!(self, Output::Tool(result) if result.is_error)
    }

    /// A tool's result of one block of text.
    pub fn text(text: &str) -> Output {
        Output::Tool(ToolResult::text(text))
    }

    /// A failure of a tool that a model can read.
    pub fn error(text: &str) -> Output {
        Output::Tool(ToolResult::error(text))
    }

    /// The result of a tool, taken out; `None` for all else.
    pub fn into_tool(self) -> Option<ToolResult> {
        match self {
            Output::Tool(result) => Some(result),
            _ => None,
        }
    }

    /// The result of a tool; `None` for all else.
    pub fn tool(&self) -> Option<&ToolResult> {
        match self {
            Output::Tool(result) => Some(result),
            _ => None,
        }
    }

    /// How many blocks, parts, messages or values it has.
    pub fn blocks(&self) -> usize {
        match self {
            Output::Tool(result) => result.content.len(),
            Output::Resource(result) => result.contents.len(),
            Output::Prompt(result) => result.messages.len(),
            Output::Complete(result) => result.values.len(),
        }
    }

    /// Bytes that the result takes as text, nearly.
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
