//! The anchor over stdio: reads lines, takes what it needs with serde_json, and writes the answers of all whole lines at
//! once. It checks nothing.

use serde::Deserialize;
use serde_json::{json, value::RawValue};
use std::io::{Read, Write};

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

fn main() -> std::io::Result<()> {
    let tools = toolgate_bench::many(toolgate_bench::number("--tools").unwrap_or(0) as usize);
    let list =
        json!({"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"})
            .to_string();
    let discover = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"}).to_string();
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let (mut held, mut out) = (Vec::with_capacity(1 << 16), Vec::with_capacity(1 << 16));
    let mut chunk = vec![0; 1 << 16];
    loop {
        let count = input.read(&mut chunk)?;
        if count == 0 {
            return Ok(());
        }
        held.extend_from_slice(&chunk[..count]);
        let mut from = 0;
        while let Some(end) = held[from..].iter().position(|b| *b == b'\n') {
            answer(&held[from..from + end], &list, &discover, &mut out);
            from += end + 1;
        }
        held.drain(..from);
        output.write_all(&out)?;
        output.flush()?;
        out.clear();
    }
}

fn answer(line: &[u8], list: &str, discover: &str, out: &mut Vec<u8>) {
    let Ok(request) = serde_json::from_slice::<Request<'_>>(line) else {
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
            out.extend_from_slice(br#"{"resultType":"complete","content":[{"type":"text","text":"#);
            out.extend_from_slice(text.map_or("\"\"", RawValue::get).as_bytes());
            out.extend_from_slice(b"}]}");
        }
        "tools/list" => out.extend_from_slice(list.as_bytes()),
        _ => out.extend_from_slice(discover.as_bytes()),
    }
    out.extend_from_slice(b"}\n");
}
