//! What a resource may hold.

use super::Stop;
use base64::{Engine, engine::general_purpose::STANDARD};
use toolgate_core::Json;
use toolgate_wire::json::ObjectWriter;

/// One part of a resource: text or bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Contents {
    uri: Option<String>,
    mime: Option<String>,
    body: Body,
    meta: Option<Json>,
}

#[derive(Clone, Debug, PartialEq)]
enum Body {
    Text(String),
    Bytes(Vec<u8>),
}

impl Contents {
    /// Text.
    pub fn text(text: impl Into<String>) -> Contents {
        Contents::of(Body::Text(text.into()))
    }

    /// Bytes; they leave in Base64.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Contents {
        Contents::of(Body::Bytes(bytes.into()))
    }

    fn of(body: Body) -> Contents {
        Contents {
            uri: None,
            mime: None,
            body,
            meta: None,
        }
    }

    /// The URI of this part; that of the resource where none is said.
    pub fn uri(mut self, uri: impl Into<String>) -> Contents {
        self.uri = Some(uri.into());
        self
    }

    /// Its media type; that of the resource where none is said.
    pub fn mime(mut self, mime: impl Into<String>) -> Contents {
        self.mime = Some(mime.into());
        self
    }

    /// Its `_meta`.
    pub fn meta(mut self, meta: Json) -> Contents {
        self.meta = Some(meta);
        self
    }

    /// As the protocol writes it.
    pub fn json(&self, uri: &str, mime: Option<&str>) -> Json {
        let mut o = ObjectWriter::new();
        o.str("uri", self.uri.as_deref().unwrap_or(uri));
        if let Some(mime) = self.mime.as_deref().or(mime) {
            o.str("mimeType", mime);
        }
        match &self.body {
            Body::Text(text) => o.str("text", text),
            Body::Bytes(bytes) => o.str("blob", &STANDARD.encode(bytes)),
        }
        if let Some(meta) = &self.meta {
            o.raw("_meta", meta);
        }
        o.finish()
    }
}

/// What the function behind a resource may return: text, bytes, or parts.
pub trait IntoContents {
    /// The parts.
    ///
    /// # Errors
    /// They cannot be written.
    fn into_contents(self) -> Result<Vec<Contents>, Stop>;
}

impl IntoContents for Contents {
    fn into_contents(self) -> Result<Vec<Contents>, Stop> {
        Ok(vec![self])
    }
}

impl IntoContents for Vec<Contents> {
    fn into_contents(self) -> Result<Vec<Contents>, Stop> {
        Ok(self)
    }
}

impl IntoContents for String {
    fn into_contents(self) -> Result<Vec<Contents>, Stop> {
        Ok(vec![Contents::text(self)])
    }
}

impl IntoContents for &str {
    fn into_contents(self) -> Result<Vec<Contents>, Stop> {
        Ok(vec![Contents::text(self)])
    }
}

impl IntoContents for Vec<u8> {
    fn into_contents(self) -> Result<Vec<Contents>, Stop> {
        Ok(vec![Contents::bytes(self)])
    }
}
