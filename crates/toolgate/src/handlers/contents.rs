//! Contents of resources.

use super::Stop;
use base64::{Engine, engine::general_purpose::STANDARD};
use toolgate_core::Json;
use toolgate_wire::json::ObjectWriter;

/// Part of a resource: text or bytes.
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
    /// Returns a text part.
    pub fn text(text: impl Into<String>) -> Contents {
        Contents::of(Body::Text(text.into()))
    }

    /// Returns a binary part; it is sent as Base64.
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

    /// Sets the URI of this part. Default: that of the resource.
    pub fn uri(mut self, uri: impl Into<String>) -> Contents {
        self.uri = Some(uri.into());
        self
    }

    /// Sets the MIME type of this part. Default: that of the resource.
    pub fn mime(mut self, mime: impl Into<String>) -> Contents {
        self.mime = Some(mime.into());
        self
    }

    /// Sets the `_meta` of this part.
    pub fn meta(mut self, meta: Json) -> Contents {
        self.meta = Some(meta);
        self
    }

    /// Returns the part as JSON in the protocol's format.
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

/// Return type of a resource handler: text, bytes, or parts.
pub trait IntoContents {
    /// Converts the value to parts.
    ///
    /// # Errors
    /// The value cannot be serialized.
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
