//! The resources.

use serde_json::json;
use toolgate::handlers::{
    Cx, HandlerExit, Resource, ResourceContents, ResourceTemplate, TemplateVariables,
};

/// Bytes that are no text.
const BYTES: [u8; 6] = [0xff, 0x00, 0xfe, 0x01, 0xfd, 0x02];

/// Every resource.
pub(crate) fn all() -> [Resource; 3] {
    let text = |text: &str| ResourceContents::text(text);
    let static_text = text("This is the content of the static text resource.");
    [
        Resource::fixed("test://static-text", "Static text", static_text).mime("text/plain"),
        Resource::fixed(
            "test://static-binary",
            "Static binary",
            ResourceContents::bytes(BYTES),
        )
        .mime("application/octet-stream"),
        Resource::fixed(
            "test://watched-resource",
            "Watched resource",
            text("watched"),
        )
        .mime("text/plain"),
    ]
}

/// The one template.
pub(crate) fn template() -> ResourceTemplate {
    ResourceTemplate::new("test://template/{id}/data", "Template", of_template)
        .description("One resource for each id")
        .mime("application/json")
}

async fn of_template(vars: TemplateVariables, _: Cx) -> Result<String, HandlerExit> {
    let id = vars.get("id");
    Ok(json!({"id": id, "data": format!("Data for ID: {id}")}).to_string())
}
