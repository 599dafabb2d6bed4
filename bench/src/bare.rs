//! What the anchors share: they take what they need of a request, and write the answer.

use serde::Deserialize;
use serde_json::{json, value::RawValue};

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
}

impl Default for Bare {
    fn default() -> Bare {
        Bare::new()
    }
}

impl Bare {
    /// With as many tools as the command line says.
    pub fn new() -> Bare {
        let tools = crate::many(crate::number("--tools").unwrap_or(0) as usize);
        let list =
            json!({"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"});
        let discover = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"});
        Bare {
            list: list.to_string(),
            discover: discover.to_string(),
        }
    }

    /// Writes the answer to a request, where it is one.
    pub fn answer(&self, text: &[u8], out: &mut Vec<u8>) {
        let Ok(request) = serde_json::from_slice::<Request<'_>>(text) else {
            return;
        };
        let Some(id) = request.id else { return };
        out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        out.extend_from_slice(id.get().as_bytes());
        out.extend_from_slice(br#","result":"#);
        match request.method {
            "tools/call" => {
                let text = request
                    .params
                    .and_then(|p| p.arguments)
                    .and_then(|a| a.text);
                out.extend_from_slice(
                    br#"{"resultType":"complete","content":[{"type":"text","text":"#,
                );
                out.extend_from_slice(text.map_or("\"\"", RawValue::get).as_bytes());
                out.extend_from_slice(b"}]}");
            }
            "tools/list" => out.extend_from_slice(self.list.as_bytes()),
            _ => out.extend_from_slice(self.discover.as_bytes()),
        }
        out.extend_from_slice(b"}");
    }
}
