//! The same corpus, read by the clients of the official SDKs.

use super::corpus::{Case, cases, config};
use super::gate;
use super::raw_client::{Listed, RawClient};
use crate::help::{Client, TempDir, real};
use serde_json::{Value, json};
use std::path::Path;

/// The SDKs, and the era to which each is held.
const CLIENTS: [(Client, &str); 4] = [
    (Client::TypeScript1, "legacy"),
    (Client::TypeScript2, "modern"),
    (Client::Python1, "legacy"),
    (Client::Python, "modern"),
];

/// Lists the tools and calls each; what is wrong is added.
fn read_all(
    real: &Path,
    client: (Client, &str),
    mut job: Value,
    calls: &[(&Case, String)],
    wrong: &mut Vec<String>,
) {
    let (client, mode) = client;
    let mut steps = vec![json!({"do": "list"})];
    let call =
        |name: &str, arguments: Value| json!({"do": "call", "name": name, "arguments": arguments});
    steps.extend(
        calls
            .iter()
            .map(|(case, shown)| call(shown, case.arguments())),
    );
    steps.push(call("good_add", json!({"a": 1, "b": 2})));
    job["mode"] = json!(mode);
    job["steps"] = json!(steps);
    let mut script = client.start(real, &job);
    script.event("connected");
    let names = script.event("tools")["names"].clone();
    for (case, shown) in calls {
        let event = script.event_or_error("result");
        let listed = names.as_array().unwrap().contains(&json!(shown));
        if !listed {
            wrong.push(format!(
                "{client:?}: {}: {}: it is not listed",
                case.file, case.name
            ));
        }
        if let Err(why) = case.check_sdk(&event) {
            wrong.push(format!("{client:?}: {}: {}: {why}", case.file, case.name));
        }
    }
    let sum = script.event_or_error("result");
    if !sum["text"].as_str().unwrap_or_default().contains('3') {
        wrong.push(format!("{client:?}: the good server: {sum}"));
    }
    script.event("done");
}

/// The names by which a client calls the cases.
fn calls<'a>(cases: &'a [Case], listed: &Listed) -> Vec<(&'a Case, String)> {
    let usable = cases.iter().filter(|case| case.is_usable_tool());
    usable
        .filter_map(|case| Some((case, case.shown(listed)?.to_owned())))
        .collect()
}

#[test]
fn official_sdks_read_odd_servers() {
    let Some(real) = real() else { return };
    let cases = cases();
    let gate = gate(&real);
    let listed = RawClient::over_http("2025-11-25", gate.port).lists();
    let calls = calls(&cases, &listed);
    let folder = TempDir::new("odd-sdk");
    let file = folder.write("toolgate.toml", &config(&real));
    let mut wrong = Vec::new();
    for (number, client) in CLIENTS.into_iter().enumerate() {
        let over_http = json!({"http": gate.endpoint});
        read_all(&real, client, over_http, &calls, &mut wrong);
        let data = folder.file(&format!("state-{number}"));
        let program = env!("CARGO_BIN_EXE_toolgate");
        let over_stdio =
            json!({"stdio": [program, "serve", "--stdio", "--config", file, "--data", data]});
        read_all(&real, client, over_stdio, &calls, &mut wrong);
    }
    assert!(
        wrong.is_empty(),
        "{} are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    gate.stop();
}
