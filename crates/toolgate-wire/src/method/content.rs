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
        o.fixed(r#""type":"text""#);
        o.str("text", text);
        Content {
            kind: ContentKind::Text,
            json: o.finish(),
        }
    }

    /// A picture; `data` is Base64.
    pub fn image(data: &str, mime: &str) -> Content {
        Content::media("image", ContentKind::Image, data, mime)
    }

    /// Sound; `data` is Base64.
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

    /// A resource, whole: an object with `uri`, and `text` or `blob`.
    pub fn resource(contents: &Json) -> Content {
        let mut o = ObjectWriter::new();
        o.str("type", "resource");
        o.raw("resource", contents);
        Content {
            kind: ContentKind::Resource,
            json: o.finish(),
        }
    }

    /// The address of a resource.
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

    /// The same block with one more member, for example `annotations`.
    pub fn with(mut self, member: &str, value: &Json) -> Content {
        self.json = self.json.with(member, value);
        self
    }
}
