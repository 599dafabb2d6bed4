//! `tools/call`: using a tool.

use super::{
    content::{Content, ContentKind},
    meta,
};
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
    /// Its server sent no text beside `structured`: clients that cannot take that get it as text.
    pub without_text: bool,
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
            // Servers leave an empty one out, and the official SDKs read it so.
            None => Json::from_value(&serde_json::json!([])),
            Some(_) => return Err("the \"content\" of the result is no array"),
        };
        let content: Option<Vec<Content>> = content.items().map(Content::read).collect();
        let content = content.ok_or("a block of \"content\" has no \"type\"")?;
        Ok(ToolResult {
            without_text: structured.is_some() && !has_text(&content),
            content,
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

    /// The structured content as a block of text, if there is no text of the server beside it. A sanitizer or a layer
    /// that adds or changes text calls it first.
    ///
    /// Source: the page on tools: servers should repeat structured content as text, for older clients.
    pub fn structured_as_text(&self) -> Option<Content> {
        let structured = self.structured.as_ref()?;
        let lacks = self.without_text || !has_text(&self.content);
        lacks.then(|| Content::text(structured.as_str()))
    }

    /// Puts the structured content into the text, if there is none beside it.
    pub fn add_structured_as_text(&mut self) {
        self.content.extend(self.structured_as_text());
        self.without_text = false;
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

fn has_text(content: &[Content]) -> bool {
    content.iter().any(|block| block.kind == ContentKind::Text)
}
