//! `tools/call`: using a tool.

use super::{content::Content, meta};
use crate::json::{Json, Kind};

/// The method.
pub const NAME: &str = "tools/call";

/// What a tool gave back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolResult {
    /// What a model reads.
    pub content: Vec<Content>,
    /// What a program reads; absent and `null` are two things.
    pub structured: Option<Json>,
    /// The tool itself failed.
    pub is_error: bool,
    /// The `_meta` of the result without the keys of the protocol.
    pub meta: Option<Json>,
}

impl ToolResult {
    /// Reads a complete result.
    ///
    /// # Errors
    /// Says what is missing or wrong.
    pub fn read(result: &Json) -> Result<ToolResult, &'static str> {
        let structured = result.get("structuredContent");
        let content = match result.get("content") {
            Some(blocks) if blocks.kind() == Kind::Array => blocks,
            None if structured.is_some() => Json::from_value(&serde_json::json!([])),
            _ => return Err("the result has no \"content\" array"),
        };
        let content: Option<Vec<Content>> = content.items().map(Content::read).collect();
        Ok(ToolResult {
            content: content.ok_or("a block of \"content\" has no \"type\"")?,
            structured,
            is_error: result
                .get("isError")
                .and_then(|e| e.bool())
                .unwrap_or(false),
            meta: result.get("_meta").as_ref().and_then(meta::foreign),
        })
    }

    /// One block of text.
    pub fn text(text: &str) -> ToolResult {
        ToolResult {
            content: vec![Content::text(text)],
            ..ToolResult::default()
        }
    }

    /// A failure of the tool that a model can read.
    pub fn error(text: &str) -> ToolResult {
        ToolResult {
            is_error: true,
            ..ToolResult::text(text)
        }
    }

    /// Bytes that the result takes as text, nearly.
    pub fn size(&self) -> usize {
        let blocks: usize = self.content.iter().map(|c| c.json.as_str().len()).sum();
        blocks
            + [&self.structured, &self.meta]
                .into_iter()
                .flatten()
                .map(|j| j.as_str().len())
                .sum::<usize>()
    }
}
