//! Results of tools as model APIs read them.

use super::ModelApi;
use crate::client::CallResult;
use serde_json::{Value, json};
use toolgate_core::{Content, ContentKind};

/// Image formats that Anthropic accepts; those of OpenAI are the same.
const IMAGE_TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];
/// Prefix of a failed result, for an API without a flag for it.
const FAILED: &str = "The tool failed: ";

/// Part of a response to a model.
enum ModelPart {
    Text(String),
    /// MIME type, and Base64 of the image.
    Image(String, String),
}

pub(super) fn response(api: ModelApi, call_id: &str, result: &CallResult) -> Value {
    let parts = parts(result);
    let failed = match result.is_error() {
        true => FAILED,
        false => "",
    };
    match api {
        ModelApi::OpenAiChat => {
            let content = format!("{failed}{}", all_text(&parts));
            json!({"role": "tool", "tool_call_id": call_id, "content": content})
        }
        ModelApi::OpenAiResponses => {
            let output = match parts
                .iter()
                .any(|part| matches!(part, ModelPart::Image(..)))
            {
                false => json!(format!("{failed}{}", all_text(&parts))),
                true => parts.iter().map(openai_part).collect(),
            };
            json!({"type": "function_call_output", "call_id": call_id, "output": output})
        }
        ModelApi::Anthropic => anthropic_block(call_id, result.is_error(), &parts),
    }
}

impl CallResult {
    /// Returns the result as one text for a model: all text, structured content if there is no text, and descriptions of
    /// content that is no text.
    pub fn model_text(&self) -> String {
        all_text(&parts(self))
    }
}

fn openai_part(part: &ModelPart) -> Value {
    match part {
        ModelPart::Text(text) => json!({"type": "input_text", "text": text}),
        ModelPart::Image(mime, data) => {
            json!({"type": "input_image", "image_url": format!("data:{mime};base64,{data}")})
        }
    }
}

/// Returns a `tool_result` block. The API rejects empty texts, and anything but text in an error.
fn anthropic_block(call_id: &str, is_error: bool, parts: &[ModelPart]) -> Value {
    let part = |part: &ModelPart| match part {
        ModelPart::Text(text) if text.is_empty() => None,
        ModelPart::Image(mime, data) if !is_error => Some(json!({"type": "image",
            "source": {"type": "base64", "media_type": mime, "data": data}})),
        part => Some(json!({"type": "text", "text": part_text(part)})),
    };
    let content: Vec<Value> = parts.iter().filter_map(part).collect();
    let mut block = json!({"type": "tool_result", "tool_use_id": call_id});
    if !content.is_empty() {
        block["content"] = json!(content);
    }
    if is_error {
        block["is_error"] = json!(true);
    }
    block
}

/// Returns the parts of a result. Structured content without text becomes text.
fn parts(result: &CallResult) -> Vec<ModelPart> {
    let structured = result.inner().structured_as_text();
    let blocks = result.content().iter().chain(&structured);
    blocks.map(part).collect()
}

fn part(block: &Content) -> ModelPart {
    let mime = block.mime_type().unwrap_or_default();
    match block.kind {
        ContentKind::Text => ModelPart::Text(block.as_text().unwrap_or_default()),
        ContentKind::Image if IMAGE_TYPES.contains(&mime.as_str()) => {
            let data = block.json.get("data").and_then(|data| data.string());
            ModelPart::Image(mime, data.unwrap_or_default())
        }
        ContentKind::Image | ContentKind::Audio => ModelPart::Text(media_text(block, &mime)),
        ContentKind::ResourceLink => ModelPart::Text(format!(
            "[resource {}: {}]",
            block.link_name().unwrap_or_default(),
            block.uri().unwrap_or_default()
        )),
        ContentKind::Resource => ModelPart::Text(resource_text(block)),
        ContentKind::Other => ModelPart::Text(block.json.as_str().to_owned()),
    }
}

fn resource_text(block: &Content) -> String {
    let Some(contents) = block.resource_contents() else {
        return String::new();
    };
    match contents.text() {
        Some(text) => format!("[resource {}]\n{text}", contents.uri()),
        None => format!(
            "[resource {}: {}]",
            contents.uri(),
            media_text(block, &contents.mime_type().unwrap_or_default())
        ),
    }
}

fn media_text(block: &Content, mime: &str) -> String {
    let bytes = block.bytes().map_or(0, |bytes| bytes.len());
    format!("[{mime}, {bytes} bytes, not shown]")
}

fn part_text(part: &ModelPart) -> String {
    match part {
        ModelPart::Text(text) => text.clone(),
        ModelPart::Image(mime, data) => {
            let bytes = data.trim_end_matches('=').len() * 3 / 4;
            format!("[{mime}, {bytes} bytes, not shown]")
        }
    }
}

fn all_text(parts: &[ModelPart]) -> String {
    let texts: Vec<String> = parts.iter().map(part_text).collect();
    texts.join("\n")
}
