//! Blocks of content: what results and prompts are made of.

use crate::json::{Json, ObjectWriter};

/// One block: its kind, and the text as it came.
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
