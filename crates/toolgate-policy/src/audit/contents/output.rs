//! Serialization of a result as one JSON text, with the member names of the MCP specification.

use toolgate_core::{Json, Output};
use toolgate_protocol::json::{JsonLimits, write_string};

/// Emits the text in pieces, so that a large result is not copied for its digest. Protocol details such as cache
/// lifetimes are left out.
pub(super) fn pieces(output: &Output, put: &mut dyn FnMut(&str)) {
    let meta = match output {
        Output::Tool(result) => {
            put("{\"content\":");
            list(result.content.iter().map(|block| block.json.as_str()), put);
            if let Some(structured) = &result.structured {
                put(",\"structuredContent\":");
                put(structured.as_str());
            }
            if result.is_error {
                put(",\"isError\":true");
            }
            &result.meta
        }
        Output::Resource(result) => {
            put("{\"contents\":");
            list(result.contents.iter().map(Json::as_str), put);
            &result.meta
        }
        Output::Prompt(result) => {
            put("{\"messages\":[");
            for (n, message) in result.messages.iter().enumerate() {
                put(if n > 0 { "," } else { "" });
                let role = if message.assistant {
                    "assistant"
                } else {
                    "user"
                };
                put("{\"role\":\"");
                put(role);
                put("\",\"content\":");
                put(message.content.json.as_str());
                put("}");
            }
            put("]");
            if let Some(description) = &result.description {
                put(",\"description\":");
                put(&quoted(description));
            }
            &result.meta
        }
        Output::Complete(result) => {
            let values: Vec<String> = result.values.iter().map(|value| quoted(value)).collect();
            put("{\"values\":");
            list(values.iter().map(String::as_str), put);
            &result.meta
        }
    };
    if let Some(meta) = meta {
        put(",\"_meta\":");
        put(meta.as_str());
    }
    put("}");
}

/// Returns the text as a value; `None` for duplicate keys, which parsed results never have.
pub(super) fn json(output: &Output) -> Option<Json> {
    let mut text = String::new();
    pieces(output, &mut |piece| text.push_str(piece));
    let limits = JsonLimits {
        bytes: usize::MAX,
        keys: usize::MAX,
        elements: usize::MAX,
        depth: JsonLimits::MAX_DEPTH,
    };
    Json::read(text.into_bytes(), &limits).ok()
}

fn list<'a>(items: impl Iterator<Item = &'a str>, put: &mut dyn FnMut(&str)) {
    put("[");
    for (n, item) in items.enumerate() {
        put(if n > 0 { "," } else { "" });
        put(item);
    }
    put("]");
}

fn quoted(text: &str) -> String {
    let mut out = String::new();
    write_string(&mut out, text);
    out
}
