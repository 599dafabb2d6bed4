//! Pieces that many fixtures are made of.

use toolgate::Content;
use toolgate::handlers::ResourceContents;

/// A picture of one pixel, in Base64.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII=";
/// A sound without a sample, in Base64.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

pub(crate) fn image() -> Content {
    Content::image(PNG, "image/png")
}

pub(crate) fn audio() -> Content {
    Content::audio(WAV, "audio/wav")
}

pub(crate) fn embedded(uri: &str) -> Content {
    let contents = ResourceContents::text("an embedded resource").mime("text/plain");
    Content::resource(&contents.json(uri, None))
}
