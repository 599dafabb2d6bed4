//! Pieces that many fixtures are made of.

use serde_json::{Value, json};
use toolgate::{Ask, AskKind, Content, Error, Json, Kind, Outcome, Output, Questions, ToolResult};

/// A picture of one pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII=";
/// A sound without a sample.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

pub(crate) fn image() -> Value {
    json!({"type": "image", "data": PNG, "mimeType": "image/png"})
}

pub(crate) fn audio() -> Value {
    json!({"type": "audio", "data": WAV, "mimeType": "audio/wav"})
}

pub(crate) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

pub(crate) fn embedded(uri: &str) -> Value {
    let resource = json!({"uri": uri, "mimeType": "text/plain", "text": "an embedded resource"});
    json!({"type": "resource", "resource": resource})
}

/// The blob of the binary resource: the picture.
pub(crate) fn blob() -> &'static str {
    PNG
}

/// One block.
///
/// # Errors
/// It has no type: a slip in a fixture.
pub(crate) fn block(value: &Value) -> Result<Content, Error> {
    Content::read(Json::from_value(value)).ok_or_else(|| Error::new(Kind::Bug, "a broken block"))
}

/// A tool's result of these blocks.
///
/// # Errors
/// One of them has no type: a slip in a fixture.
pub(crate) fn blocks(values: &[Value]) -> Result<Outcome, Error> {
    let content = values.iter().map(block).collect::<Result<_, _>>()?;
    Ok(Outcome::Done(Output::Tool(ToolResult {
        content,
        ..ToolResult::default()
    })))
}

/// A tool's result of one line.
pub(crate) fn said(text: &str) -> Result<Outcome, Error> {
    Ok(Outcome::Done(Output::Tool(ToolResult::text(text))))
}

/// Questions, by their keys.
pub(crate) fn asked(asks: Vec<(&str, AskKind)>) -> Result<Outcome, Error> {
    let ask = |(key, kind): (&str, AskKind)| Ask {
        key: key.to_owned(),
        kind,
    };
    Ok(Outcome::Ask(Questions {
        asks: asks.into_iter().map(ask).collect(),
        ..Questions::default()
    }))
}

/// A form with these properties.
pub(crate) fn form(message: &str, properties: Value, required: Value) -> AskKind {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    let params = json!({"mode": "form", "message": message, "requestedSchema": schema});
    AskKind::Elicit(Json::from_value(&params))
}

/// A question to the model.
pub(crate) fn sample(prompt: &str) -> AskKind {
    let message = json!({"role": "user", "content": text(prompt)});
    AskKind::Sample(Json::from_value(
        &json!({"messages": [message], "maxTokens": 100}),
    ))
}
