//! Audit log of a server.

use super::peer::{NEWEST_REVISION, Peer};
use serde_json::{Value, json};
use std::{fs, path::Path};
use toolgate::handlers::{HandlerExit, Server, Tool};

fn echo() -> Tool {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    Tool::dynamic("echo", schema, |args: Value, _| async move {
        Ok::<_, HandlerExit>(args["text"].as_str().unwrap_or_default().to_owned())
    })
}

fn records(folder: &Path) -> Vec<Value> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(records(&path));
        } else if path.extension().is_some_and(|e| e == "jsonl") {
            let text = fs::read_to_string(path).unwrap();
            found.extend(text.lines().map(|line| serde_json::from_str(line).unwrap()));
        }
    }
    found
}

/// Holds: TOOL-49
#[tokio::test]
async fn a_log_in_a_folder_has_each_call_and_no_contents() {
    let folder = std::env::temp_dir().join(toolgate::ids::short_id("toolgate-test"));
    let server = Server::new("s", "1")
        .tool(echo())
        .audit_in(&folder)
        .build()
        .unwrap();
    let mut peer = Peer::open(&server, NEWEST_REVISION, json!({})).await;
    let call = json!({"name": "echo", "arguments": {"text": "very private"}});
    assert_eq!(
        peer.result("tools/call", call).await["content"][0]["text"],
        "very private"
    );
    let bad = json!({"name": "echo", "arguments": {"text": 1}});
    assert_eq!(peer.result("tools/call", bad).await["isError"], true);
    let records = records(&folder);
    let events: Vec<&str> = records.iter().map(|r| r["ev"].as_str().unwrap()).collect();
    assert!(
        events.ends_with(&["call.begin", "call.end", "deny"]),
        "{events:?}"
    );
    assert!(records.iter().all(|r| !r.to_string().contains("private")));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_log_that_cannot_be_written_is_no_server() {
    let built = Server::new("s", "1").audit_in("/dev/null/log").build();
    let Err(error) = built else { panic!("built") };
    assert!(
        error
            .to_string()
            .starts_with("the audit log in /dev/null/log: "),
        "{error}"
    );
}
