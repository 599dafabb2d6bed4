//! Shared code of the bare anchors: reads the needed parts of a request and writes the answer.

use crate::breaking;
use serde::Deserialize;
use serde_json::{json, value::RawValue};
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: &'a str,
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    name: Option<&'a str>,
    #[serde(borrow)]
    arguments: Option<Arguments<'a>>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

/// An anchor with its tools.
pub struct Bare {
    list: String,
    discover: String,
    /// Padding at the end of the text of each result.
    padding: String,
    structured: bool,
    breaking: Option<Breaking>,
}

/// State for measured clients.
struct Breaking {
    /// The list after a tool was changed.
    later: String,
    changed: AtomicBool,
}

impl Default for Bare {
    fn default() -> Bare {
        Bare::new()
    }
}

impl Bare {
    /// With as many tools as the command line says; with `--breaking` those come first that break duties of clients. With
    /// `--structured` the first one has an output schema. With `--padding N`, the text of each result ends with so many bytes.
    pub fn new() -> Bare {
        let list = |first: Vec<serde_json::Value>| {
            let count = crate::number("--tools").unwrap_or(0) as usize;
            let more = crate::many(count.saturating_sub(first.len()));
            let mut tools = [first, more].concat();
            if let (true, Some(first)) = (crate::has("--structured"), tools.first_mut()) {
                first["outputSchema"] = json!({"type": "object", "required": ["text"],
                    "properties": {"text": {"type": "string"}}});
            }
            json!({"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"})
        };
        let breaking = crate::has("--breaking").then(|| Breaking {
            later: list(breaking::tools(true)).to_string(),
            changed: AtomicBool::new(false),
        });
        let list = list(match breaking {
            Some(_) => breaking::tools(false),
            None => Vec::new(),
        });
        let discover = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"});
        Bare {
            list: list.to_string(),
            discover: discover.to_string(),
            padding: crate::padding(crate::number("--padding").unwrap_or(0) as usize),
            structured: crate::has("--structured"),
            breaking,
        }
    }

    fn list(&self) -> &str {
        match &self.breaking {
            Some(breaking) if breaking.changed.load(Ordering::Relaxed) => &breaking.later,
            _ => &self.list,
        }
    }

    /// Takes the call of a tool that breaks a duty: its answer, or nothing where it never answers.
    fn break_with(breaking: &Breaking, tool: &str) -> Option<String> {
        if tool == "changed" {
            breaking.changed.store(true, Ordering::Relaxed);
        }
        breaking::answer(tool)
    }

    /// Writes the answer to a request, where it is one. Says no where the sender shall wait forever.
    pub fn answer(&self, text: &[u8], out: &mut Vec<u8>) -> bool {
        let Ok(request) = serde_json::from_slice::<Request<'_>>(text) else {
            return true;
        };
        let Some(id) = request.id else { return true };
        let tool = request.params.as_ref().and_then(|params| params.name);
        let broken = match (&self.breaking, tool) {
            (None, _) | (_, None | Some("echo")) => None,
            (Some(breaking), Some(tool)) => match Bare::break_with(breaking, tool) {
                None => return false,
                broken => broken,
            },
        };
        out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        out.extend_from_slice(id.get().as_bytes());
        out.extend_from_slice(br#","result":"#);
        match (request.method, broken) {
            (_, Some(broken)) => out.extend_from_slice(broken.as_bytes()),
            ("tools/call", _) => {
                let text = request
                    .params
                    .and_then(|p| p.arguments)
                    .and_then(|a| a.text);
                out.extend_from_slice(
                    br#"{"resultType":"complete","content":[{"type":"text","text":"#,
                );
                let text = text.map_or("\"\"", RawValue::get);
                out.extend_from_slice(text.strip_suffix('"').unwrap_or(text).as_bytes());
                out.extend_from_slice(self.padding.as_bytes());
                out.extend_from_slice(b"\"}]");
                if self.structured {
                    out.extend_from_slice(br#","structuredContent":{"text":"#);
                    out.extend_from_slice(text.as_bytes());
                    out.extend_from_slice(b"}");
                }
                out.extend_from_slice(b"}");
            }
            ("tools/list", _) => out.extend_from_slice(self.list().as_bytes()),
            _ => out.extend_from_slice(self.discover.as_bytes()),
        }
        out.extend_from_slice(b"}");
        true
    }
}
