//! `tools/call`: using a tool.

use super::meta;
use crate::json::{Json, Kind, ObjectWriter};

/// The method.
pub const NAME: &str = "tools/call";

/// What a client sends.
#[derive(Clone, Debug)]
pub struct Params {
    /// Which tool.
    pub name: String,
    /// The arguments as they came; `{}` where there are none.
    pub arguments: Json,
    /// Answers to the questions of the round before (2026-07-28).
    pub answers: Vec<(String, Json)>,
    /// What the server gave to carry along (2026-07-28).
    pub state: Option<String>,
}

impl Params {
    /// Reads the parameters.
    ///
    /// # Errors
    /// Says which member is missing or wrong.
    pub fn read(params: Option<&Json>) -> Result<Params, &'static str> {
        let params = params.ok_or("\"params\" is missing")?;
        let name = params
            .get("name")
            .and_then(|n| n.string())
            .ok_or("\"params.name\" must be a string")?;
        let arguments = match params.get("arguments") {
            None => ObjectWriter::new().finish(),
            Some(a) if a.kind() == Kind::Object => a,
            Some(_) => return Err("\"params.arguments\" must be an object"),
        };
        let answers = match params.get("inputResponses") {
            None => Vec::new(),
            Some(a) if a.kind() == Kind::Object => {
                a.members().map(|(k, v)| (k.into_owned(), v)).collect()
            }
            Some(_) => return Err("\"params.inputResponses\" must be an object"),
        };
        let state = match params.get("requestState") {
            None => None,
            Some(s) => Some(
                s.string()
                    .ok_or("\"params.requestState\" must be a string")?,
            ),
        };
        Ok(Params {
            name,
            arguments,
            answers,
            state,
        })
    }
}

/// One block of a result: its kind, and the text as it came.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    /// What it is.
    pub kind: ContentKind,
    /// The whole block.
    pub json: Json,
}

/// The kinds of content.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ContentKind {
    /// Plain text.
    Text,
    /// A picture in Base64.
    Image,
    /// Sound in Base64 (since 2025-03-26).
    Audio,
    /// A resource, whole.
    Resource,
    /// The address of a resource (since 2025-06-18).
    ResourceLink,
    /// None that this program knows.
    Other,
}

impl ContentKind {
    fn of(word: &str) -> ContentKind {
        match word {
            "text" => ContentKind::Text,
            "image" => ContentKind::Image,
            "audio" => ContentKind::Audio,
            "resource" => ContentKind::Resource,
            "resource_link" => ContentKind::ResourceLink,
            _ => ContentKind::Other,
        }
    }
}

impl Content {
    /// Reads a block; `None` where it has no `type`.
    pub fn read(json: Json) -> Option<Content> {
        let kind = ContentKind::of(&json.get("type")?.str_cow()?);
        Some(Content { kind, json })
    }

    /// A block of text.
    pub fn text(text: &str) -> Content {
        let mut o = ObjectWriter::new();
        o.str("type", "text");
        o.str("text", text);
        Content {
            kind: ContentKind::Text,
            json: o.finish(),
        }
    }

    /// A picture; `data` is Base64.
    pub fn image(data: &str, mime: &str) -> Content {
        let mut o = ObjectWriter::new();
        o.str("type", "image");
        o.str("data", data);
        o.str("mimeType", mime);
        Content {
            kind: ContentKind::Image,
            json: o.finish(),
        }
    }
}

/// What a tool gave back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// What a model reads.
    pub content: Vec<Content>,
    /// What a program reads; absent and `null` are two things.
    pub structured: Option<Json>,
    /// The tool itself failed.
    pub is_error: bool,
    /// The `_meta` of the result without the keys of the protocol.
    pub meta: Option<Json>,
}

impl Output {
    /// Reads a complete result.
    ///
    /// # Errors
    /// Says what is missing or wrong.
    pub fn read(result: &Json) -> Result<Output, &'static str> {
        let structured = result.get("structuredContent");
        let content = match result.get("content") {
            Some(blocks) if blocks.kind() == Kind::Array => blocks,
            None if structured.is_some() => Json::from_value(&serde_json::json!([])),
            _ => return Err("the result has no \"content\" array"),
        };
        let content: Option<Vec<Content>> = content.items().map(Content::read).collect();
        Ok(Output {
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
    pub fn text(text: &str) -> Output {
        Output {
            content: vec![Content::text(text)],
            ..Output::default()
        }
    }

    /// A failure of the tool that a model can read.
    pub fn error(text: &str) -> Output {
        Output {
            is_error: true,
            ..Output::text(text)
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
