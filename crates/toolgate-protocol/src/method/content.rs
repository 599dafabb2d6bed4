//! Content blocks of results and prompts.

use super::{media, resource_contents::ResourceContents};
use crate::json::{Json, ObjectWriter};
use serde_core::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// Content block of a tool result or a prompt message: its kind, and its original JSON. The accessors read the members
/// of each kind; a block of an unknown kind keeps its JSON.
///
/// ```
/// use toolgate_protocol::method::content::{Content, ContentKind};
///
/// fn show(block: &Content) -> String {
///     match block.kind {
///         ContentKind::Text => block.as_text().unwrap_or_default(),
///         ContentKind::Image | ContentKind::Audio => {
///             let bytes = block.bytes().map_or(0, |bytes| bytes.len());
///             format!("{}, {bytes} bytes", block.mime_type().unwrap_or_default())
///         }
///         ContentKind::ResourceLink => block.uri().unwrap_or_default(),
///         ContentKind::Resource => block.resource_contents().map_or_else(String::new, |r| r.uri()),
///         ContentKind::Other => block.json.as_str().to_owned(),
///     }
/// }
///
/// assert_eq!(show(&Content::text("hello")), "hello");
/// assert_eq!(show(&Content::image_bytes(b"\x89PNG", "image/png")), "image/png, 4 bytes");
/// ```
///
/// Source: `ContentBlock` in the schema of each revision.
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

/// Annotations of a content block, as the server claims them (`Annotations` in the schema).
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ContentAnnotations {
    /// Intended audience of the content block: `user`, `assistant` or both.
    pub audience: Vec<String>,
    /// Importance of the content block, from 0 (optional) to 1 (required).
    pub priority: Option<f64>,
    /// Time of the last change of the content, ISO 8601.
    pub last_modified: Option<String>,
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

    /// Creates an image content block from its bytes.
    pub fn image_bytes(bytes: &[u8], mime: &str) -> Content {
        Content::image(&media::encode(bytes), mime)
    }

    /// Creates an audio content block from its bytes.
    pub fn audio_bytes(bytes: &[u8], mime: &str) -> Content {
        Content::audio(&media::encode(bytes), mime)
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

    /// Returns the text of a text content block; `None` for other kinds.
    pub fn as_text(&self) -> Option<String> {
        match self.kind {
            ContentKind::Text => self.member("text"),
            _ => None,
        }
    }

    /// Returns the decoded bytes of an image, an audio clip or an embedded binary resource. `None` for other kinds, and
    /// if the data is not valid Base64.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        match self.kind {
            ContentKind::Image | ContentKind::Audio => media::decode(&self.json.get("data")?),
            ContentKind::Resource => self.resource_contents()?.bytes(),
            _ => None,
        }
    }

    /// Returns the MIME type of an image, an audio clip, an embedded resource or a linked one, as the server claims it.
    pub fn mime_type(&self) -> Option<String> {
        match self.kind {
            ContentKind::Resource => self.resource_contents()?.mime_type(),
            ContentKind::Text | ContentKind::Other => None,
            _ => self.member("mimeType"),
        }
    }

    /// Returns the URI of a resource link or an embedded resource; `None` for other kinds.
    pub fn uri(&self) -> Option<String> {
        match self.kind {
            ContentKind::ResourceLink => self.member("uri"),
            ContentKind::Resource => self.resource_contents()?.json.get("uri")?.string(),
            _ => None,
        }
    }

    /// Returns the name of a resource link; `None` for other kinds.
    pub fn link_name(&self) -> Option<String> {
        match self.kind {
            ContentKind::ResourceLink => self.member("name"),
            _ => None,
        }
    }

    /// Returns the contents of an embedded resource; `None` for other kinds.
    pub fn resource_contents(&self) -> Option<ResourceContents> {
        match self.kind {
            ContentKind::Resource => Some(ResourceContents {
                json: self.json.get("resource")?,
            }),
            _ => None,
        }
    }

    /// Returns the annotations of the content block; empty if it has none.
    pub fn annotations(&self) -> ContentAnnotations {
        let Some(annotations) = self.json.get("annotations") else {
            return ContentAnnotations::default();
        };
        let audience = annotations.get("audience");
        let audience = audience.iter().flat_map(Json::items);
        ContentAnnotations {
            audience: audience.filter_map(|role| role.string()).collect(),
            priority: annotations.get("priority").and_then(|n| n.f64()),
            last_modified: annotations.get("lastModified").and_then(|t| t.string()),
        }
    }

    /// Returns the `_meta` of the content block.
    pub fn meta(&self) -> Option<Json> {
        self.json.get("_meta")
    }

    fn member(&self, key: &str) -> Option<String> {
        self.json.get(key)?.string()
    }
}

impl From<ResourceContents> for Content {
    fn from(contents: ResourceContents) -> Content {
        Content::resource(&contents.json)
    }
}

/// Writes the original JSON of the block.
impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

/// Reads a block of any kind; its `type` is required.
impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Content, D::Error> {
        let json = Json::deserialize(deserializer)?;
        Content::read(json).ok_or_else(|| D::Error::missing_field("type"))
    }
}
