//! Icons of items and servers.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

/// Icon of a tool, prompt, resource, resource template or server, which hosts show to people. Clients of revisions
/// before 2025-11-25 get none.
///
/// ```
/// use toolgate::{Server, handlers::{Icon, IconTheme}};
///
/// let server = Server::new("clock", "1.0.0")
///     .icon(Icon::new("https://clock.example/dark.png").mime("image/png").sizes(["48x48"]).theme(IconTheme::Dark))
///     .icon(Icon::data("image/svg+xml", "<svg xmlns=\"http://www.w3.org/2000/svg\"/>"));
/// # assert!(server.build().is_ok());
/// ```
///
/// Specification: [icons](https://modelcontextprotocol.io/specification/2026-07-28/basic#icons).
#[derive(Clone, Debug, PartialEq)]
pub struct Icon(Value);

/// Background for which an [`Icon`] is designed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum IconTheme {
    /// Light background.
    Light,
    /// Dark background.
    Dark,
}

impl Icon {
    /// Creates an icon with the URL of its image: `https:` on the server's own domain, or a `data:` URI.
    pub fn new(url: &str) -> Icon {
        Icon(json!({"src": url}))
    }

    /// Creates an icon whose image is part of the definition, as a `data:` URI. Keep it small: every list contains it.
    pub fn data(mime: &str, image: impl AsRef<[u8]>) -> Icon {
        Icon::new(&format!("data:{mime};base64,{}", STANDARD.encode(image))).mime(mime)
    }

    /// Sets the MIME type of the image. Hosts support at least `image/png` and `image/jpeg`.
    #[must_use]
    pub fn mime(mut self, mime: &str) -> Icon {
        self.0["mimeType"] = mime.into();
        self
    }

    /// Sets the sizes of the image: `48x48`, or `any` for scalable formats.
    #[must_use]
    pub fn sizes<'a>(mut self, sizes: impl IntoIterator<Item = &'a str>) -> Icon {
        self.0["sizes"] = sizes.into_iter().collect();
        self
    }

    /// Sets the background for which the icon is designed.
    #[must_use]
    pub fn theme(mut self, theme: IconTheme) -> Icon {
        let word = match theme {
            IconTheme::Light => "light",
            IconTheme::Dark => "dark",
        };
        self.0["theme"] = word.into();
        self
    }

    /// Returns the icon as JSON in the protocol's format.
    pub(super) fn into_json(self) -> Value {
        self.0
    }
}
