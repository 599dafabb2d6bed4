//! Content blocks of results and prompts.

use crate::json::{Json, ObjectWriter};

/// Content block of a tool result or a prompt message: its kind, and its original JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    /// Kind of the content block.
    pub kind: ContentKind,
    /// Complete content block as JSON.
    pub json: Json,
}

/// Kind of a content block, its `type`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ContentKind {
    /// Text content block.
    Text,
    /// Image content block, Base64.
    Image,
    /// Audio content block, Base64 (since 2025-03-26).
    Audio,
    /// Embedded resource content block.
    Resource,
    /// Resource link content block (since 2025-06-18).
    ResourceLink,
    /// Content block of an unknown type.
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
    /// Reads a content block; `None` if it has no `type`.
    pub fn read(json: Json) -> Option<Content> {
        let kind = ContentKind::of(&json.get("type")?.str_cow()?);
        Some(Content { kind, json })
    }

    /// Creates a text content block.
    pub fn text(text: &str) -> Content {
        let mut o = ObjectWriter::new();
        o.constant_member(r#""type":"text""#);
        o.str("text", text);
        Content {
            kind: ContentKind::Text,
            json: o.finish(),
        }
    }

    /// Creates an image content block; `data` is Base64.
    pub fn image(data: &str, mime: &str) -> Content {
        Content::media("image", ContentKind::Image, data, mime)
    }

    /// Creates an audio content block; `data` is Base64.
    pub fn audio(data: &str, mime: &str) -> Content {
        Content::media("audio", ContentKind::Audio, data, mime)
    }

    fn media(word: &str, kind: ContentKind, data: &str, mime: &str) -> Content {
        let mut o = ObjectWriter::new();
        o.str("type", word);
        o.str("data", data);
        o.str("mimeType", mime);
        Content {
            kind,
            json: o.finish(),
        }
    }

    /// Creates an embedded resource block from an object with `uri`, and `text` or `blob`.
    pub fn resource(contents: &Json) -> Content {
        let mut o = ObjectWriter::new();
        o.str("type", "resource");
        o.raw("resource", contents);
        Content {
            kind: ContentKind::Resource,
            json: o.finish(),
        }
    }

    /// Creates a `resource_link` content block.
    pub fn link(uri: &str, name: &str) -> Content {
        let mut o = ObjectWriter::new();
        o.str("type", "resource_link");
        o.str("uri", uri);
        o.str("name", name);
        Content {
            kind: ContentKind::ResourceLink,
            json: o.finish(),
        }
    }

    /// Returns the same content block with one more member, for example `annotations`.
    pub fn with(mut self, member: &str, value: &Json) -> Content {
        self.json = self.json.with(member, value);
        self
    }
}
