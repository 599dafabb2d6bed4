//! Input requests of a server through the real gateway, with a real child that asks during each call.

mod answers;
mod parked;

use crate::help::{Gate, Modern, SOON, Setup, TempDir, end_politely, lines, toolgate};
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, mpsc::Receiver};

const REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// Callable items: method, name and parameters.
const USES: [(&str, &str); 3] = [
    ("tools/call", r#"{"name": "s_look", "arguments": {}}"#),
    ("resources/read", r#"{"uri": "test://a"}"#),
    ("prompts/get", r#"{"name": "s_greet"}"#),
];

/// A server that asks what a file says.
struct Server {
    data: Arc<TempDir>,
    offered: PathBuf,
}

impl Server {
    fn new() -> Server {
        let data = Arc::new(TempDir::new("asking"));
        let offered = data.file("offered");
        Server { data, offered }
    }

    fn asks(&self, method: &str, params: Value) {
        let question = json!({"q": {"method": method, "params": params}});
        self.data.write("questions.json", &question.to_string());
    }

    fn start(&self, more: &str) -> Gate {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/servers/asking.py");
        let config = format!(
            "[limits]\nrate = \"100000/s\"\n[server.s]\ncommand = [\"python3\", {script:?}, {:?}, {:?}]\n{more}\n\
             [[rule]]\ntools = [\"s.*\"]\naction = \"allow\"\n",
            self.data.file("questions.json"),
            self.offered
        );
        Setup::config(config).start_in(self.data.clone())
    }

    /// Returns the capabilities that the server was offered, for each request that reached it.
    fn offered(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.offered).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

fn able() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}, "context": {}}, "roots": {}})
}

/// One use in 2026-07-28 of a client that can be asked for all.
fn modern(gate: &Gate, method: &str, params: &str) -> Value {
    let params: Value = serde_json::from_str(params).unwrap();
    let name = params
        .get("name")
        .or(params.get("uri"))
        .and_then(Value::as_str);
    let mut body = Modern::body(&json!(1), method, params.clone());
    body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = able();
    Modern::ask(gate.port, name, &body)
}

/// A client of an older revision on standard input and output that can be asked for all.
struct Lines {
    child: Child,
    stdin: ChildStdin,
    said: Receiver<String>,
    id: u32,
    /// Reply to an input request.
    reply: Value,
}

impl Lines {
    fn open(server: &Server, revision: &str) -> Lines {
        let mut start = toolgate();
        start
            .args(["serve", "--stdio", "--data"])
            .arg(server.data.file("state"));
        start.arg("--config").arg(server.data.file("toolgate.toml"));
        let start = start
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = start.spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let said = lines(child.stdout.take().unwrap());
        let mut lines = Lines {
            child,
            stdin,
            said,
            id: 0,
            reply: json!({"action": "decline"}),
        };
        lines.ask("initialize", json!({"protocolVersion": revision, "capabilities": able(), "clientInfo": {"name": "x", "version": "1"}}));
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        writeln!(lines.stdin, "{ready}").unwrap();
        lines
    }

    /// The answer, and the methods by which this client was asked meanwhile.
    fn ask(&mut self, method: &str, params: Value) -> (Value, Vec<String>) {
        self.id += 1;
        let line = json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params});
        writeln!(self.stdin, "{line}").unwrap();
        let mut asked = Vec::new();
        loop {
            let line = self.said.recv_timeout(SOON).expect("an answer");
            let message: Value = serde_json::from_str(&line).unwrap();
            match message["method"].as_str() {
                Some(method) if message.get("id").is_some() => {
                    asked.push(method.to_owned());
                    let reply =
                        json!({"jsonrpc": "2.0", "id": message["id"], "result": self.reply});
                    writeln!(self.stdin, "{reply}").unwrap();
                }
                None if message["id"] == self.id => return (message, asked),
                _ => {}
            }
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        end_politely(&mut self.child);
    }
}

/// The words of a failure.
fn words(answer: &Value) -> String {
    let error = answer["error"]["message"].as_str();
    let text = answer["result"]["content"][0]["text"].as_str();
    let failed = answer.get("error").is_some() || answer["result"]["isError"] == true;
    assert!(failed, "{answer}");
    error.or(text).unwrap().to_owned()
}

fn form(field: &str) -> Value {
    let schema = json!({"type": "object", "properties": {field: {"type": "string"}}});
    json!({"mode": "form", "message": "Hello", "requestedSchema": schema})
}

fn sampling() -> Value {
    let content = json!({"type": "text", "text": "2 + 2?"});
    json!({"messages": [{"role": "user", "content": content}], "maxTokens": 100_000})
}

/// Refused on every way, whatever is used; nobody is asked, and the record says so.
fn refused_everywhere(server: &Server, gate: &Gate, says: &str) -> usize {
    let mut refused = 0;
    for (method, params) in USES {
        let answer = modern(gate, method, params);
        assert!(words(&answer).contains(says), "{method}: {answer}");
        refused += 1;
    }
    for revision in REVISIONS {
        let mut lines = Lines::open(server, revision);
        for (method, params) in USES {
            let (answer, asked) = lines.ask(method, serde_json::from_str(params).unwrap());
            assert!(
                words(&answer).contains(says),
                "{revision} {method}: {answer}"
            );
            assert_eq!(asked, [""; 0], "{revision} {method}");
            refused += 1;
        }
    }
    refused
}

#[test]
fn t51_a_form_that_fishes_reaches_nobody_in_any_revision() {
    let server = Server::new();
    let gate = server.start("");
    server.asks("elicitation/create", form("password"));
    let said = modern(&gate, USES[0].0, USES[0].1);
    assert!(words(&said).contains("\"password\""), "{said}");
    let ends = gate.audit();
    let end = ends
        .iter()
        .find(|record| record["ev"] == "call.end")
        .unwrap();
    assert_eq!(
        (&end["out"], &end["trail"][0]["by"]),
        (&json!("refused"), &json!("asking"))
    );
    // In older revisions a form is asked for where the client can be; in 2024-11-05 and 2025-03-26 none can.
    let answers: Vec<String> = REVISIONS
        .iter()
        .map(|revision| {
            let mut lines = Lines::open(&server, revision);
            let (answer, asked) = lines.ask(USES[0].0, serde_json::from_str(USES[0].1).unwrap());
            assert_eq!(asked, [""; 0], "{revision}");
            words(&answer)
        })
        .collect();
    assert!(
        answers[2].contains("\"password\"") && answers[3].contains("\"password\""),
        "{answers:?}"
    );
    // A harmless form goes through, with the name of who asks.
    server.asks("elicitation/create", form("city"));
    let answer = modern(&gate, USES[0].0, USES[0].1);
    let asked = &answer["result"]["inputRequests"]["q"]["params"];
    assert_eq!(asked["message"], "[s] Hello", "{answer}");
    let (answer, asked) =
        Lines::open(&server, "2025-11-25").ask(USES[0].0, serde_json::from_str(USES[0].1).unwrap());
    assert_eq!(asked, ["elicitation/create"], "{answer}");
}

#[test]
fn t51_a_page_is_shown_with_its_host_and_never_fetched() {
    let server = Server::new();
    let gate = server.start("");
    let bank = TcpListener::bind("127.0.0.1:0").unwrap();
    bank.set_nonblocking(true).unwrap();
    let port = bank.local_addr().unwrap().port();
    let page = |url: String| json!({"mode": "url", "message": "Log in", "url": url});
    server.asks(
        "elicitation/create",
        page(format!("https://127.0.0.1:{port}/login")),
    );
    for (method, params) in USES {
        let answer = modern(&gate, method, params);
        let asked = &answer["result"]["inputRequests"]["q"]["params"];
        assert_eq!(
            asked["message"], "[s] [page at 127.0.0.1] Log in",
            "{answer}"
        );
        assert_eq!(asked["url"], format!("https://127.0.0.1:{port}/login"));
    }
    server.asks(
        "elicitation/create",
        page(format!("http://127.0.0.1:{port}/login")),
    );
    for (method, params) in USES {
        let answer = modern(&gate, method, params);
        assert!(words(&answer).contains("not an https URL"), "{answer}");
    }
    let connected = bank.accept();
    assert_eq!(
        connected.unwrap_err().kind(),
        std::io::ErrorKind::WouldBlock
    );
}

#[test]
fn t52_sampling_is_off_unless_the_config_says_otherwise() {
    let server = Server::new();
    let gate = server.start("");
    server.asks("sampling/createMessage", sampling());
    let refused = refused_everywhere(&server, &gate, "sampling/createMessage");
    let offered = server.offered();
    assert_eq!(offered.len(), refused);
    assert!(
        offered.iter().all(|able| able.get("sampling").is_none()),
        "{offered:?}"
    );
    assert!(offered[0].get("elicitation").is_some(), "{offered:?}");
    let out = gate
        .audit()
        .into_iter()
        .filter(|record| record["ev"] == "call.end");
    assert!(out.clone().count() >= USES.len() && out.clone().all(|end| end["out"] != "ok"));
    println!("T52: off: {refused} questions in five revisions, 0 passed");
}

#[test]
fn t52_a_quota_is_kept_across_a_reload_and_bounds_the_question() {
    let server = Server::new();
    let gate = server.start("sampling = \"3/h\"\nsampling_tokens = 100");
    server.asks("sampling/createMessage", sampling());
    let mut passed = 0;
    for round in 0..20 {
        if round == 2 {
            let config = std::fs::read_to_string(server.data.file("toolgate.toml")).unwrap();
            gate.configure(&config.replace("tokens = 100", "tokens = 50"));
            gate.cli(&["reload"]);
        }
        let (method, params) = USES[round % 3];
        let answer = modern(&gate, method, params);
        let asked = &answer["result"]["inputRequests"]["q"]["params"];
        match asked["maxTokens"].as_u64() {
            Some(tokens) => {
                assert_eq!(tokens, if round < 2 { 100 } else { 50 });
                passed += 1;
            }
            None => assert!(words(&answer).contains("3 per hour"), "{answer}"),
        }
    }
    assert_eq!(passed, 3);
    let able = &server.offered()[0]["sampling"];
    assert_eq!(able, &json!({}), "without tools and context");
}

#[test]
fn t52_a_person_looks_at_each_question_to_the_model() {
    let server = Server::new();
    let gate = server.start("sampling = \"ask\"");
    server.asks("sampling/createMessage", sampling());
    let mut lines = Lines::open(&server, "2025-11-25");
    let call =
        std::thread::spawn(move || lines.ask(USES[0].0, serde_json::from_str(USES[0].1).unwrap()));
    let id = gate.pending();
    let inbox = gate.cli(&["inbox"]);
    assert!(inbox.contains("s.sampling/createMessage"), "{inbox}");
    gate.cli(&["approve", &id]);
    let (answer, asked) = call.join().unwrap();
    assert_eq!(asked, ["sampling/createMessage"], "{answer}");
}
