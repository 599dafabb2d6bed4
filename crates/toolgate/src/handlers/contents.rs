//! Contents of resources.

use super::{HandlerExit, Structured};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Serialize;
use toolgate_core::Json;
use toolgate_protocol::json::ObjectWriter;

/// Part of the contents of a resource: text or bytes with a MIME type, for the result of `resources/read`.
///
/// Specification: [resource contents](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#resource-contents).
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceContents {
    uri: Option<String>,
    mime: Option<String>,
    body: ContentsBody,
    meta: Option<Json>,
}

#[derive(Clone, Debug, PartialEq)]
enum ContentsBody {
    Text(String),
    Bytes(Vec<u8>),
}

impl ResourceContents {
    /// Creates a text part of a resource's contents.
    pub fn text(text: impl Into<String>) -> ResourceContents {
        ResourceContents::of(ContentsBody::Text(text.into()))
    }

    /// Creates a binary part of a resource's contents; it is sent as Base64.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> ResourceContents {
        ResourceContents::of(ContentsBody::Bytes(bytes.into()))
    }

    fn of(body: ContentsBody) -> ResourceContents {
        ResourceContents {
            uri: None,
            mime: None,
            body,
            meta: None,
        }
    }

    /// Sets the URI of this part of the contents. Default: that of the resource.
    pub fn uri(mut self, uri: impl Into<String>) -> ResourceContents {
        self.uri = Some(uri.into());
        self
    }

    /// Sets the MIME type of this part of the contents. Default: that of the resource.
    pub fn mime(mut self, mime: impl Into<String>) -> ResourceContents {
        self.mime = Some(mime.into());
        self
    }

    /// Sets the `_meta` of this part of the contents.
    pub fn meta(mut self, meta: Json) -> ResourceContents {
        self.meta = Some(meta);
        self
    }

    /// Returns this part of the contents as JSON in the protocol's format (`contents` of `resources/read`).
    pub fn json(&self, uri: &str, mime: Option<&str>) -> Json {
        let mut o = ObjectWriter::new();
        o.str("uri", self.uri.as_deref().unwrap_or(uri));
        if let Some(mime) = self.mime.as_deref().or(mime) {
            o.str("mimeType", mime);
        }
        match &self.body {
            ContentsBody::Text(text) => o.str("text", text),
            ContentsBody::Bytes(bytes) => o.str("blob", &STANDARD.encode(bytes)),
        }
        if let Some(meta) = &self.meta {
            o.raw("_meta", meta);
        }
        o.finish()
    }
}

/// Types that a resource handler can return: text, bytes, or parts with a URI and MIME type.
///
/// ```
/// use toolgate::{HandlerExit, handlers::{IntoContents, ResourceContents}, resource};
///
/// /// A page in two formats.
/// struct Page(&'static str);
///
/// impl IntoContents for Page {
///     fn into_contents(self) -> Result<Vec<ResourceContents>, HandlerExit> {
///         let html = format!("<p>{}</p>", self.0);
///         Ok(vec![
///             ResourceContents::text(self.0).mime("text/plain"),
///             ResourceContents::text(html).mime("text/html"),
///         ])
///     }
/// }
///
/// /// Terms of use.
/// #[resource("shop:///terms")]
/// fn terms() -> Page {
///     Page("Returns within 30 days.")
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the value of a resource",
    label = "a resource does not return this type",
    note = "return text, `Vec<u8>`, `ResourceContents`, or `Structured(value)` to send a value of your own as JSON"
)]
pub trait IntoContents {
    /// Converts the handler's return value to parts of the resource's contents.
    ///
    /// # Errors
    /// The value cannot be serialized.
    fn into_contents(self) -> Result<Vec<ResourceContents>, HandlerExit>;

    /// Returns the MIME type of the type, which the definition of a resource has by default.
    fn mime() -> Option<&'static str> {
        None
    }
}

/// The value as JSON text.
impl<T: Serialize> IntoContents for Structured<T> {
    fn into_contents(self) -> Result<Vec<ResourceContents>, HandlerExit> {
        serde_json::to_string(&self.0)?.into_contents()
    }

    fn mime() -> Option<&'static str> {
        Some("application/json")
    }
}

impl IntoContents for Json {
    fn into_contents(self) -> Result<Vec<ResourceContents>, HandlerExit> {
        self.as_str().into_contents()
    }

    fn mime() -> Option<&'static str> {
        Some("application/json")
    }
}

impl IntoContents for ResourceContents {
    fn into_contents(self) -> Result<Vec<ResourceContents>, HandlerExit> {
        Ok(vec![self])
    }
}

impl IntoContents for Vec<ResourceContents> {
    fn into_contents(self) -> Result<Vec<ResourceContents>, HandlerExit> {
        Ok(self)
    }
}

impl IntoContents for String {
    fn into_contents(self) -> Result<Vec<ResourceContents>, HandlerExit> {
        Ok(vec![ResourceContents::text(self)])
    }
}

impl IntoContents for &str {
    fn into_contents(self) -> Result<Vec<ResourceContents>, HandlerExit> {
        Ok(vec![ResourceContents::text(self)])
    }
}

impl IntoContents for Vec<u8> {
    fn into_contents(self) -> Result<Vec<ResourceContents>, HandlerExit> {
        Ok(vec![ResourceContents::bytes(self)])
    }
}
