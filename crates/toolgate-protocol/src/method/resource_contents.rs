//! Contents of a resource: `TextResourceContents` and `BlobResourceContents`.

use super::media;
use crate::json::{Json, ObjectWriter};

/// Contents of one resource, as text or as bytes: a part of a `resources/read` result, or the inside of an embedded
/// resource block.
///
/// ```
/// use toolgate_protocol::method::resource_contents::ResourceContents;
///
/// let logo = ResourceContents::from_bytes("file:///logo.png", "image/png", b"\x89PNG");
/// assert_eq!(logo.bytes().as_deref(), Some(&b"\x89PNG"[..]));
/// assert_eq!(logo.text(), None);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceContents {
    /// Complete contents object as JSON.
    pub json: Json,
}

impl ResourceContents {
    /// Creates the contents of a text resource.
    pub fn from_text(uri: &str, mime_type: &str, text: &str) -> ResourceContents {
        ResourceContents::write(uri, mime_type, |o| o.str("text", text))
    }

    /// Creates the contents of a binary resource; the bytes are written as Base64.
    pub fn from_bytes(uri: &str, mime_type: &str, bytes: &[u8]) -> ResourceContents {
        ResourceContents::write(uri, mime_type, |o| o.str("blob", &media::encode(bytes)))
    }

    fn write(uri: &str, mime_type: &str, body: impl FnOnce(&mut ObjectWriter)) -> ResourceContents {
        let mut o = ObjectWriter::new();
        o.str("uri", uri);
        o.str("mimeType", mime_type);
        body(&mut o);
        ResourceContents { json: o.finish() }
    }

    /// Returns the URI of the resource; empty if it has none.
    pub fn uri(&self) -> String {
        self.member("uri").unwrap_or_default()
    }

    /// Returns the MIME type of the resource, as the server claims it.
    pub fn mime_type(&self) -> Option<String> {
        self.member("mimeType")
    }

    /// Returns the text of the resource; `None` if it is binary.
    pub fn text(&self) -> Option<String> {
        self.member("text")
    }

    /// Returns the decoded bytes of a binary resource; `None` if it is text, or not valid Base64.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        media::decode(&self.json.get("blob")?)
    }

    /// Returns the `_meta` of the contents.
    pub fn meta(&self) -> Option<Json> {
        self.json.get("_meta")
    }

    fn member(&self, key: &str) -> Option<String> {
        self.json.get(key)?.string()
    }
}
