//! T10: the reader of messages and batches under damage: a message or an error, never a panic and never a long wait.

use super::mutations::{Dice, SEEDS};
use std::time::{Duration, Instant};
use toolgate_protocol::{
    batch::read_batch,
    json::{Json, JsonKind, JsonLimits},
    message::JsonRpcMessage,
};

/// Messages of every kind and revision, good ones and some that are almost good.
const MESSAGES: [&str; 16] = [
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":true}},"clientInfo":{"name":"c","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    r#"{"jsonrpc":"2.0","id":"a-1","method":"tools/call","params":{"name":"read_file","arguments":{"path":"/tmp/é"},"_meta":{"progressToken":7}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},"inputResponses":{"q":{"action":"accept","content":{"n":1}}},"requestState":"00ff"}}"#,
    r#"{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"x"}],"structuredContent":{"n":9007199254740993},"isError":false}}"#,
    r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"no such tool","data":{"path":"/a"}}}"#,
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a-1","reason":"enough"}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":0.5,"total":1,"message":"half"}}"#,
    r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":2,"result":{}}]"#,
    r#"{"jsonrpc":"2.0","id":1.0,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":1e400,"method":"ping","params":null}"#,
    r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
    r#"{"id":1,"method":"ping","params":[1,2]}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#,
    r#"{"jsonrpc":"2.0","id":4,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["file:///a"]}}}"#,
];

/// Returns the number of texts: a million, or the value of the variable.
fn count() -> usize {
    let set = std::env::var("TOOLGATE_T10").ok();
    set.and_then(|n| n.parse().ok()).unwrap_or(1_000_000)
}

/// Reads a text as an edge does; whether a message came of it.
fn take(bytes: Vec<u8>) -> bool {
    let Ok(json) = Json::read(bytes, &JsonLimits::default()) else {
        return false;
    };
    if json.kind() == JsonKind::Array {
        read_batch(&json).is_ok_and(|all| all.iter().any(Result::is_ok))
    } else {
        JsonRpcMessage::read(&json).is_ok_and(|message| {
            if let JsonRpcMessage::Request { id, .. } = &message {
                id.key();
            }
            true
        })
    }
}

/// One worker's share, with dice of its own; how many were messages, and the longest reading.
fn share(seed: u64, runs: usize) -> (usize, Duration) {
    let (mut dice, mut taken, mut longest) = (Dice(seed), 0, Duration::ZERO);
    for round in 0..runs {
        let mut bytes = match round % 8 {
            0 => (0..dice.roll(200)).map(|_| dice.roll(256) as u8).collect(),
            1 => SEEDS[dice.roll(SEEDS.len())].as_bytes().to_vec(),
            _ => MESSAGES[dice.roll(MESSAGES.len())].as_bytes().to_vec(),
        };
        for _ in 0..dice.roll(4) {
            dice.damage(&mut bytes);
        }
        let began = Instant::now();
        taken += usize::from(take(bytes));
        longest = longest.max(began.elapsed());
    }
    (taken, longest)
}

#[test]
fn t10_a_million_messages_and_no_panic() {
    let (runs, workers) = (count(), 2);
    let seeds = [0x9e37_79b9_7f4a_7c15, 0x2545_f491_4f6c_dd1d];
    let shares: Vec<_> = seeds
        .map(|seed| std::thread::spawn(move || share(seed, runs / workers)))
        .into_iter()
        .map(|worker| worker.join().expect("no panic"))
        .collect();
    let taken: usize = shares.iter().map(|(taken, _)| taken).sum();
    let longest = shares.iter().map(|(_, longest)| *longest).max().unwrap();
    println!("T10: {runs} texts, {taken} messages, 0 panics, longest reading {longest:?}");
    // Damage that breaks all or nothing would test little.
    assert!(taken > runs / 10 && taken < runs * 6 / 10, "{taken}");
    // A hang, with room for a machine that is busy.
    assert!(longest < Duration::from_secs(1), "{longest:?}");
}
