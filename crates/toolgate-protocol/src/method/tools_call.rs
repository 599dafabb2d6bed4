//! `tools/call`: call of a tool.

use super::{
    content::{Content, ContentKind},
    meta,
};
use crate::json::{Json, JsonKind};

/// Method name `tools/call`, which calls a tool.
pub const NAME: &str = "tools/call";

/// Result of `tools/call`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolResult {
    /// Content blocks of the tool result, for the model.
    pub content: Vec<Content>,
    /// Member `structuredContent` of the tool result, for programs; absent and `null` differ.
    pub structured: Option<Json>,
    /// True if the server sent no text content beside `structuredContent`. Clients without structured content get it as
    /// text.
    pub without_text: bool,
    /// True if the tool itself failed (`isError`), which is not a protocol error.
    pub is_error: bool,
    /// `_meta` of the result without the protocol's keys.
    pub meta: Option<Json>,
}

impl ToolResult {
    /// Reads the result of `tools/call`.
    ///
    /// # Errors
    /// Returns the reason if a member is missing or wrong.
    pub fn read(result: &Json) -> Result<ToolResult, &'static str> {
        let structured = result.get("structuredContent");
        let content = match result.get("content") {
            Some(blocks) if blocks.kind() == JsonKind::Array => blocks,
            // Servers omit an empty array, and the official SDKs accept that.
            None => Json::from_value(&serde_json::json!([])),
            Some(_) => return Err("\"content\" is not an array"),
        };
        let content: Option<Vec<Content>> = content.items().map(Content::read).collect();
        let content = content.ok_or("a block in \"content\" has no \"type\"")?;
        Ok(ToolResult {
            without_text: structured.is_some() && !has_text(&content),
            content,
            structured,
            is_error: result
                .get("isError")
                .and_then(|e| e.bool())
                .unwrap_or(false),
            meta: result
                .get("_meta")
                .as_ref()
                .and_then(meta::without_reserved_keys),
        })
    }

    /// Creates a tool result of one text content block.
    pub fn text(text: &str) -> ToolResult {
        ToolResult {
            content: vec![Content::text(text)],
            ..ToolResult::default()
        }
    }

    /// Creates a tool error (`isError`) that a model can read.
    pub fn error(text: &str) -> ToolResult {
        ToolResult {
            is_error: true,
            ..ToolResult::text(text)
        }
    }

    /// Returns `structuredContent` as a text content block, if the server sent no text beside it. A sanitizer or layer
    /// that adds or changes text calls it first.
    ///
    /// Source: the page on tools: servers should repeat structured content as text, for older clients.
    pub fn structured_as_text(&self) -> Option<Content> {
        let structured = self.structured.as_ref()?;
        let lacks = self.without_text || !has_text(&self.content);
        lacks.then(|| Content::text(structured.as_str()))
    }

    /// Adds `structuredContent` as a text content block, if there is no text beside it.
    pub fn add_structured_as_text(&mut self) {
        self.content.extend(self.structured_as_text());
        self.without_text = false;
    }

    /// Returns the approximate size of the tool result as JSON text, in bytes.
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

fn has_text(content: &[Content]) -> bool {
    content.iter().any(|block| block.kind == ContentKind::Text)
}
