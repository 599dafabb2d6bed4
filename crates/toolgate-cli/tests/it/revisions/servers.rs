//! A server of each revision behind the gateway: what it does reaches the caller, and a cancel reaches it.
//!
//! The caller speaks 2026-07-28 by hand, so that only one side differs.

use super::{notes, server};
use crate::help::{
    Gate, Modern, SOON, Script, Setup, TempDir, answer_of, raw, real, request, until,
};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    path::Path,
};

const ELICITATION: &str = "io.modelcontextprotocol/clientCapabilities";

/// A running gateway before one server.
struct Scene {
    gate: Gate,
    notes: std::path::PathBuf,
    _folder: TempDir,
}

impl Scene {
    fn open(config: impl FnOnce(&Path) -> String) -> Scene {
        let folder = TempDir::new("upstream");
        let notes = folder.file("notes");
        let gate = Setup::config(config(&notes)).start();
        Scene {
            gate,
            notes,
            _folder: folder,
        }
    }

    /// The bytes of a request whose `params` may say more than usual.
    fn bytes(
        &self,
        method: &str,
        tool: Option<&str>,
        params: Value,
        meta: &[(&str, Value)],
    ) -> Vec<u8> {
        let mut body = Modern::body(&json!(1), method, params);
        for (key, value) in meta {
            body["params"]["_meta"][key] = value.clone();
        }
        let headers = Modern::headers(method, tool);
        request(
            self.gate.port,
            "POST",
            "/mcp",
            &headers,
            body.to_string().as_bytes(),
        )
    }

    fn ask(
        &self,
        method: &str,
        tool: Option<&str>,
        params: Value,
        meta: &[(&str, Value)],
    ) -> Value {
        let response = raw(self.gate.port, &self.bytes(method, tool, params, meta));
        answer_of(&response, &json!(1))
    }

    fn call(&self, tool: &str, arguments: Value) -> Value {
        let tool = format!("peer_{tool}");
        self.ask(
            "tools/call",
            Some(&tool),
            json!({"name": tool, "arguments": arguments}),
            &[],
        )
    }

    fn names(&self) -> Vec<String> {
        let listed = self.ask("tools/list", None, json!({}), &[]);
        let tools = listed["result"]["tools"].as_array().unwrap();
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("no text in {answer}"))
}

fn of_sdk(script: &str, package: &str, revision: &str) {
    let Some(real) = real() else { return };
    does_everything(|notes| server(&real, script, package, notes), revision);
}

/// The same server at an address of its own, over `transport`: `true`, or `"sse"` for the one of 2024-11-05.
fn at_url(script: &str, package: &str, transport: Value, revision: &str) {
    let Some(real) = real() else { return };
    let setting = json!({"interop": real, "package": package, "http": transport});
    reached_at(
        |setting| Script::start(&real, &format!("servers/{script}"), setting),
        setting,
        revision,
    );
}

/// Starts a server that says where it listens, and a gateway that reaches it there.
pub(super) fn reached_at(start: impl FnOnce(&Value) -> Script, mut setting: Value, revision: &str) {
    let mut running = None;
    let config = |notes: &Path| {
        setting["notes"] = json!(notes);
        let server = running.insert(start(&setting));
        let url = server.event("listening")["url"].clone();
        format!("[server.peer]\nurl = {url}\ntrust_annotations = true\n")
    };
    does_everything(config, revision);
}

/// Starts a gateway before the server of this config, which is told where to write its notes.
pub(super) fn does_everything(config: impl FnOnce(&Path) -> String, revision: &str) {
    let scene = Scene::open(config);
    lists_and_answers(&scene);
    tells_progress(&scene);
    asks(&scene, revision);
    changes_its_list(&scene);
    is_in_order(&scene, revision);
    hears_a_cancel(&scene);
    assert_eq!(
        text(&scene.call("grown", json!({}))),
        "here I am",
        "the stream still works"
    );
    scene.gate.stop();
}

fn lists_and_answers(scene: &Scene) {
    let names = [
        "peer_echo",
        "peer_sum",
        "peer_fail",
        "peer_slow",
        "peer_grow",
        "peer_ask",
    ];
    // A slow machine may need longer to start a server than the gateway waits for its list.
    let listed = crate::help::until("the server is up", crate::help::LONG, || {
        Some(scene.names()).filter(|names| !names.is_empty())
    });
    assert_eq!(listed, names);
    assert_eq!(text(&scene.call("echo", json!({"text": "Grüße"}))), "Grüße");
    let sum = scene.call("sum", json!({"a": 2, "b": 3}));
    assert_eq!(
        sum["result"]["structuredContent"],
        json!({"sum": 5}),
        "{sum}"
    );
    let failed = scene.call("fail", json!({}));
    assert_eq!(
        (text(&failed), &failed["result"]["isError"]),
        ("the printer is on fire", &json!(true))
    );
    let unknown = scene.call("nothing", json!({}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let bad = scene.call("sum", json!({"a": "two", "b": 3}));
    assert_eq!(bad["result"]["isError"], true, "{bad}");
}

fn tells_progress(scene: &Scene) {
    let params = json!({"name": "peer_slow", "arguments": {"to": 3}});
    let bytes = scene.bytes(
        "tools/call",
        Some("peer_slow"),
        params,
        &[("progressToken", json!("p"))],
    );
    let response = raw(scene.gate.port, &bytes);
    assert_eq!(text(&answer_of(&response, &json!(1))), "counted to 3");
    let events = response
        .body
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data:")?).ok());
    let told: Vec<Value> = events
        .filter(|event| event["method"] == "notifications/progress")
        .map(|event| event["params"].clone())
        .collect();
    let expected = [1, 2, 3].map(|n| json!({"progressToken": "p", "progress": n, "total": 3}));
    assert_eq!(told, expected);
}

/// Checks the console's view of the server.
fn is_in_order(scene: &Scene, revision: &str) {
    let server = &scene.gate.state()["servers"][0];
    let shown = ["revision", "restarts", "tools", "note"].map(|key| server[key].clone());
    assert_eq!(json!(shown), json!([revision, 0, 7, null]), "{server}");
}

/// The caller goes away in the middle, which is how 2026-07-28 cancels over HTTP.
fn hears_a_cancel(scene: &Scene) {
    let params = json!({"name": "peer_slow", "arguments": {"to": 5000}});
    let bytes = scene.bytes(
        "tools/call",
        Some("peer_slow"),
        params,
        &[("progressToken", json!("p"))],
    );
    let mut answer = lines(scene, &bytes);
    assert!(
        answer.any(|line| line.contains("notifications/progress")),
        "it has begun"
    );
    drop(answer);
    until("the server hears of the cancel", SOON, || {
        notes(&scene.notes)
            .contains(&"cancelled".to_owned())
            .then_some(())
    });
}

/// A server of 2026-07-28 asks by its result, one of 2025 by a request in the middle of its call. To the caller both are
/// the same. Before 2025-06-18 there are no questions.
fn asks(scene: &Scene, revision: &str) {
    let able = [(ELICITATION, json!({"elicitation": {}}))];
    let mut params = json!({"name": "peer_ask", "arguments": {}});
    let asked = scene.ask("tools/call", Some("peer_ask"), params.clone(), &able);
    if revision < "2025-06-18" {
        assert_eq!(asked["result"]["isError"], true, "{asked}");
        return;
    }
    let questions = asked["result"]["inputRequests"].as_object();
    let (key, question) = questions.and_then(|all| all.iter().next()).unwrap();
    assert_eq!(
        question["params"]["message"], "[peer] What is your name?",
        "{asked}"
    );
    params["inputResponses"][key] = json!({"action": "accept", "content": {"name": "Ada"}});
    params["requestState"] = asked["result"]["requestState"].clone();
    let greeted = scene.ask("tools/call", Some("peer_ask"), params, &able);
    assert_eq!(text(&greeted), "hello, Ada");
}

/// The change is told all the way to whoever listens at the gateway.
fn changes_its_list(scene: &Scene) {
    let wish = json!({"notifications": {"toolsListChanged": true}});
    let mut told = lines(scene, &scene.bytes("subscriptions/listen", None, wish, &[]));
    assert!(told.any(|line| line.contains("subscriptions/acknowledged")));
    assert_eq!(text(&scene.call("grow", json!({}))), "grown");
    assert!(told.any(|line| line.contains("tools/list_changed")));
    assert!(scene.names().contains(&"peer_grown".to_owned()));
    assert_eq!(text(&scene.call("grown", json!({}))), "here I am");
}

/// The lines of an answer as they come; dropping them closes the stream.
fn lines(scene: &Scene, bytes: &[u8]) -> impl Iterator<Item = String> + use<> {
    let mut stream = TcpStream::connect(("127.0.0.1", scene.gate.port)).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream.write_all(bytes).unwrap();
    BufReader::new(stream).lines().map_while(Result::ok)
}

#[test]
fn typescript_of_2024_11_05() {
    of_sdk("ts1.mjs", "sdk-1.4.1", "2024-11-05");
}

#[test]
fn typescript_of_2025_03_26() {
    of_sdk("ts1.mjs", "sdk-1.11.5", "2025-03-26");
}

#[test]
fn typescript_of_2025_06_18() {
    of_sdk("ts1.mjs", "sdk-1.17.5", "2025-06-18");
}

#[test]
fn typescript_of_2025_11_25() {
    of_sdk("ts1.mjs", "@modelcontextprotocol/sdk", "2025-11-25");
}

#[test]
fn typescript_of_2026_07_28() {
    of_sdk("ts2.mjs", "@modelcontextprotocol/server", "2026-07-28");
}

#[test]
fn python_1_of_2025_11_25() {
    of_sdk("py1_server.py", "mcp", "2025-11-25");
}

#[test]
fn python_of_2026_07_28() {
    of_sdk("py_server.py", "mcp", "2026-07-28");
}

#[test]
fn typescript_of_2024_11_05_at_a_url_with_sse() {
    at_url("ts1.mjs", "sdk-1.4.1", json!("sse"), "2024-11-05");
}

#[test]
fn typescript_of_2025_03_26_at_a_url() {
    at_url("ts1.mjs", "sdk-1.11.5", json!(true), "2025-03-26");
}

#[test]
fn typescript_of_2025_06_18_at_a_url() {
    at_url("ts1.mjs", "sdk-1.17.5", json!(true), "2025-06-18");
}

#[test]
fn typescript_of_2025_11_25_at_a_url() {
    at_url(
        "ts1.mjs",
        "@modelcontextprotocol/sdk",
        json!(true),
        "2025-11-25",
    );
}

#[test]
fn typescript_of_2026_07_28_at_a_url() {
    at_url(
        "ts2.mjs",
        "@modelcontextprotocol/server",
        json!(true),
        "2026-07-28",
    );
}

#[test]
fn python_1_of_2025_11_25_at_a_url() {
    at_url("py1_server.py", "mcp", json!(true), "2025-11-25");
}

#[test]
fn python_of_2026_07_28_at_a_url() {
    at_url("py_server.py", "mcp", json!(true), "2026-07-28");
}
