//! One bad call for each duty: all must be refused, or what they bring be made harmless, so that no duty is off.

use crate::{load::Load, wire::Wire};
use serde_json::{Value, json};

/// A duty, the tool and arguments that break it, and a word of the answer that shows it.
const BAD: [(&str, &str, &str, &str); 10] = [
    ("rules: unseen", "hidden", "{}", "unknown tool: hidden"),
    (
        "rules: refused",
        "denied",
        "{}",
        "refused: this door is shut",
    ),
    (
        "arguments",
        "echo",
        r#"{"text":5}"#,
        "invalid arguments for echo",
    ),
    (
        "arguments: unknown",
        "echo",
        r#"{"text":"a","more":1}"#,
        "invalid arguments for echo",
    ),
    ("secrets", "key", "{}", "the key is [redacted"),
    ("text", "unseen", "{}", "abc"),
    ("output schema", "broken", "{}", "held back"),
    ("size", "blocks", "{}", "1000"),
    ("contain", "panics", "{}", "\"error\":"),
    ("deadline", "slow", "{}", "timed out after"),
];

/// Number of these calls that count for the measured tool: they pass the rate limit and fail later.
pub const COUNTED: u64 = 2;

/// The most that a peer may have in flight.
const IN_FLIGHT: u64 = 64;

/// Breaks each duty once.
pub fn all_refused(load: &Load, calls: u64, pipes: &mut Wire) {
    let mut id = calls;
    let mut line = String::new();
    for (duty, tool, arguments, word) in BAD {
        id += 1;
        let arguments: Value = serde_json::from_str(arguments).expect("JSON");
        pipes.say(&load.call(id, tool, &arguments));
        pipes.flush();
        pipes.hear(&mut line);
        let off = tool == "key" && !load.secrets;
        let word = if off { "the key is AKI" } else { word };
        assert!(line.contains(word), "{duty} does not hold: {line}");
    }
    strict(pipes, &mut line);
    // Over HTTP it would need as many connections; with few calls the quota of the slow tool ends before.
    if !load.http && calls > IN_FLIGHT {
        crowd(load, id, pipes, &mut line);
    }
    // Anonymous calls have one quota per session, and these sessions have not used up theirs.
    if !load.lists && load.sessions <= 1 {
        often(load, calls, pipes, &mut line);
    }
}

/// A key that stands twice is read by nobody.
fn strict(pipes: &mut Wire, line: &mut String) {
    pipes.say(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":{}}"#);
    pipes.flush();
    pipes.hear(line);
    assert!(
        line.contains("-32600"),
        "the strict reader does not hold: {line}"
    );
}

/// One more in flight than may be; the others end by their deadline.
fn crowd(load: &Load, from: u64, pipes: &mut Wire, line: &mut String) {
    for more in 0..=IN_FLIGHT {
        pipes.say(&load.call(from + 1 + more, "slow", &json!({})));
    }
    pipes.flush();
    pipes.hear(line);
    assert!(
        line.contains("too many"),
        "the limit in flight does not hold: {line}"
    );
    for _ in 0..IN_FLIGHT {
        pipes.hear(line);
        assert!(
            line.contains("timed out after"),
            "the deadline does not hold: {line}"
        );
    }
}

/// All calls of the quota are used up.
fn often(load: &Load, calls: u64, pipes: &mut Wire, line: &mut String) {
    pipes.say(&load.call(calls, "echo", &json!({"text": "once more"})));
    pipes.flush();
    pipes.hear(line);
    assert!(
        line.contains("rate limit of"),
        "the rate does not hold: {line}"
    );
}
