//! The resources.

use serde_json::{Value, json};
use toolgate::{Call, Error, Json, Outcome, Output, ReadResult};

use crate::content::blob;

const TEMPLATE: &str = "test://template/";

pub(crate) fn definitions() -> Vec<Value> {
    let one = |uri: &str, name: &str, mime: &str| json!({"uri": uri, "name": name, "description": format!("{name} for testing"), "mimeType": mime});
    vec![
        one("test://static-text", "Static text", "text/plain"),
        one("test://static-binary", "Static binary", "image/png"),
        one("test://watched-resource", "Watched resource", "text/plain"),
    ]
}

pub(crate) fn templates() -> Vec<Value> {
    vec![json!({
        "uriTemplate": format!("{TEMPLATE}{{id}}/data"),
        "name": "Template",
        "description": "One resource for each id",
        "mimeType": "application/json",
    })]
}

/// Reads one.
pub(crate) fn read(call: &Call) -> Result<Outcome, Error> {
    let uri = call.name();
    let text = |text: &str| json!({"uri": uri, "mimeType": "text/plain", "text": text});
    let contents = match uri {
        "test://static-text" => text("This is the content of the static text resource."),
        "test://static-binary" => json!({"uri": uri, "mimeType": "image/png", "blob": blob()}),
        "test://watched-resource" => text("watched"),
        _ => of_template(uri).ok_or_else(|| call.unknown())?,
    };
    Ok(Outcome::Done(Output::Resource(ReadResult {
        contents: vec![Json::from_value(&contents)],
        ..ReadResult::default()
    })))
}

fn of_template(uri: &str) -> Option<Value> {
    let id = uri.strip_prefix(TEMPLATE)?.strip_suffix("/data")?;
    let data = json!({"id": id, "data": format!("Data for ID: {id}")}).to_string();
    Some(json!({"uri": uri, "mimeType": "application/json", "text": data}))
}
