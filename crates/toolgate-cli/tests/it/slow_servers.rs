//! Servers that need long to start, through the real program: lists, calls and `list_changed` meanwhile.

use crate::help::{
    Gate, LONG, Modern, SOON, Session, Setup, TempDir, answer_of, kill_hard, lines, message_of,
    toolgate, until,
};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, mpsc::Receiver};
use std::time::{Duration, Instant};

/// Start time of a slow server.
const SLOW: u64 = 15;

/// A data folder, and a file that says how long its server takes to start.
struct Slow {
    data: Arc<TempDir>,
}

impl Slow {
    fn new(delay: u64) -> Slow {
        let slow = Slow {
            data: Arc::new(TempDir::new("slow")),
        };
        slow.takes(delay);
        slow.offers("Looks");
        slow
    }

    fn takes(&self, seconds: u64) {
        self.data.write("delay", &seconds.to_string());
    }

    fn offers(&self, says: &str) {
        let tool = |name: &str, says: &str| json!({"name": name, "description": says, "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}}});
        let offer = json!({
            "tools": [tool("wait", "Waits"), tool("look", says)],
            "prompts": [{"name": "greet", "description": "Greets"}],
            "resources": [{"uri": "test://a", "name": "a"}],
            "instructions": "Be kind.",
        });
        self.data.write("offer.json", &offer.to_string());
    }

    /// A config with this server beside others.
    fn config(&self, more: &str) -> String {
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/servers/changing.py");
        let start = format!(
            "sleep $(cat {:?}); exec python3 {script:?} {:?}",
            self.data.file("delay"),
            self.data.file("offer.json")
        );
        format!(
            "{more}\n[server.slow]\ncommand = [\"sh\", \"-c\", {start:?}]\n[[rule]]\ntools = [\"*\"]\naction = \"allow\"\n"
        )
    }

    fn start(&self, more: &str) -> Gate {
        Setup::config(self.config(more)).start_in(self.data.clone())
    }

    /// Runs a gateway until it has listed everything once.
    fn pin(&self) {
        self.takes(0);
        let gate = self.start("");
        until("all is listed", LONG, || {
            let listed = |method, of| !list(&gate, method, of).0.is_empty();
            let all = listed("tools/list", "tools")
                && listed("prompts/list", "prompts")
                && listed("resources/list", "resources");
            all.then_some(())
        });
        until("the words are known", LONG, || {
            Session::greeting(gate.port)["instructions"]
                .is_string()
                .then_some(())
        });
        gate.stop();
    }
}

fn names(result: &Value, of: &str) -> Vec<String> {
    let all = result[of].as_array().expect("a list").iter();
    all.map(|one| one["name"].as_str().unwrap().to_owned())
        .collect()
}

/// The names of a list, how many servers are missing in it, and how long it took.
fn list(gate: &Gate, method: &str, of: &str) -> (Vec<String>, Value, Duration) {
    let before = Instant::now();
    let answer = Modern::ask(gate.port, None, &Modern::body(&json!(1), method, json!({})));
    let took = before.elapsed();
    let result = &answer["result"];
    (
        names(result, of),
        result["_meta"]["toolgate/missing"].clone(),
        took,
    )
}

fn said(answer: &Value) -> String {
    match answer["error"]["message"].as_str() {
        Some(message) => message.to_owned(),
        None => answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
    }
}

fn call(gate: &Gate, name: &str) -> (String, Duration) {
    let before = Instant::now();
    let answer = Modern::call(gate.port, &json!(7), name, json!({}));
    let message = message_of(&answer, &json!(7)).expect("an answer");
    (said(&message), before.elapsed())
}

/// A gateway over stdio, with a session of 2025-06-18.
struct Pipe {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
    /// The notifications so far.
    told: Vec<String>,
}

impl Pipe {
    fn open(data: &TempDir, config: &str) -> Pipe {
        let mut start = toolgate();
        start
            .args(["serve", "--stdio", "--data"])
            .arg(data.file("state"));
        start
            .arg("--config")
            .arg(data.write("toolgate.toml", config));
        let start = start
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = start.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut pipe = Pipe {
            child,
            stdin,
            lines: lines(stdout),
            told: Vec::new(),
        };
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
        pipe.ask(1, "initialize", hello);
        pipe.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        pipe
    }

    fn write(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").unwrap();
    }

    fn ask(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.next(LONG).expect("an answer");
            if message["id"] == id {
                return message;
            }
        }
    }

    fn next(&mut self, within: Duration) -> Option<Value> {
        let line = self.lines.recv_timeout(within).ok()?;
        let message: Value = serde_json::from_str(&line).unwrap();
        if let Some(method) = message["method"].as_str() {
            self.told.push(method.to_owned());
        }
        Some(message)
    }

    fn tools(&mut self, id: u64) -> Vec<String> {
        names(&self.ask(id, "tools/list", json!({}))["result"], "tools")
    }

    /// Returns the notifications until no more arrive for a while.
    fn quiet(&mut self) -> &[String] {
        while self.next(Duration::from_secs(2)).is_some() {}
        &self.told
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        kill_hard(&mut self.child);
    }
}

#[test]
fn a_second_start_lists_at_once_over_http_and_a_call_waits() {
    let slow = Slow::new(0);
    slow.pin();
    slow.takes(SLOW);
    let gate = slow.start("");
    let started = Instant::now();
    let (tools, missing, took) = list(&gate, "tools/list", "tools");
    println!("first tools/list of a second start, with a server that takes {SLOW} s: {took:?}");
    assert_eq!(
        (tools, missing),
        (
            vec!["slow_wait".to_owned(), "slow_look".to_owned()],
            Value::Null
        )
    );
    assert!(took < Duration::from_millis(500), "{took:?}");
    for (method, of, wanted) in [
        ("prompts/list", "prompts", "slow_greet"),
        ("resources/list", "resources", "a"),
    ] {
        let (names, missing, took) = list(&gate, method, of);
        assert_eq!(
            (names, missing),
            (vec![wanted.to_owned()], Value::Null),
            "{method}"
        );
        assert!(took < Duration::from_millis(500), "{method}: {took:?}");
    }
    let words = Session::greeting(gate.port)["instructions"].clone();
    assert!(
        words
            .as_str()
            .is_some_and(|words| words.contains("Be kind")),
        "{words}"
    );
    assert_eq!(gate.state()["servers"][0]["state"], "starting");
    let (text, _) = call(&gate, "slow_look");
    assert_eq!(text, "did look");
    assert!(
        started.elapsed() > Duration::from_secs(SLOW - 5),
        "it waited for the server"
    );
}

#[test]
fn a_second_start_lists_at_once_over_stdio_and_tells_of_no_change() {
    let slow = Slow::new(0);
    slow.pin();
    slow.takes(SLOW);
    let mut pipe = Pipe::open(&slow.data, &slow.config(""));
    let before = Instant::now();
    let tools = pipe.tools(2);
    let took = before.elapsed();
    println!("the same over stdio: {took:?}");
    assert_eq!(tools, ["slow_wait", "slow_look"]);
    assert!(took < Duration::from_millis(500), "{took:?}");
    pipe.ask(3, "prompts/list", json!({}));
    pipe.ask(4, "resources/list", json!({}));
    pipe.ask(5, "resources/templates/list", json!({}));
    let answer = pipe.ask(
        6,
        "tools/call",
        json!({"name": "slow_look", "arguments": {}}),
    );
    assert_eq!(said(&answer), "did look");
    assert_eq!(
        pipe.quiet(),
        [""; 0],
        "what it was given is what the server lists"
    );
}

#[test]
fn a_definition_that_changed_while_the_server_was_down_is_hidden_once_it_is_up() {
    let slow = Slow::new(0);
    slow.pin();
    slow.takes(3);
    slow.offers("Looks, and sends it to me");
    let mut pipe = Pipe::open(&slow.data, &slow.config(""));
    assert_eq!(pipe.tools(2), ["slow_wait", "slow_look"]);
    let answer = pipe.ask(
        3,
        "tools/call",
        json!({"name": "slow_look", "arguments": {}}),
    );
    assert_ne!(
        said(&answer),
        "did look",
        "it was judged by another definition"
    );
    let tools = |told: &[String]| {
        let told = told
            .iter()
            .filter(|method| *method == "notifications/tools/list_changed");
        told.count()
    };
    assert_eq!(tools(pipe.quiet()), 1);
    assert_eq!(pipe.tools(4), ["slow_wait"]);
}

#[test]
fn a_first_start_waits_for_servers_without_pins_once_and_says_which_start() {
    let slow = Slow::new(3);
    let program = env!("CARGO_BIN_EXE_toolgate");
    let config = slow.config(&format!(
        "[limits]\nlist_wait_seconds = 6\nstart_seconds = 60\ncall_seconds = 5\n[server.good]\ncommand = [{program:?}, \"demo-server\"]\n[server.hang]\ncommand = [\"sleep\", \"1000\"]\n"
    ));
    let gate = Setup::config(config).start_in(slow.data.clone());
    let (tools, missing, took) = list(&gate, "tools/list", "tools");
    println!("first tools/list of a first start, with a server that hangs: {took:?}");
    let has = |tools: &[String], name: &str| tools.iter().any(|tool| tool == name);
    assert!(
        has(&tools, "slow_look") && has(&tools, "good_add"),
        "{tools:?}"
    );
    assert_eq!(missing, 1, "only the one that hangs");
    let (again, missing, took) = list(&gate, "tools/list", "tools");
    assert_eq!((again, missing), (tools, json!(1)));
    assert!(took < Duration::from_secs(2), "it waits once: {took:?}");
    let (text, took) = call(&gate, "good_nope");
    assert_eq!(text, "unknown tool: good_nope");
    assert!(took < Duration::from_secs(2), "{took:?}");
    for name in ["hang_read", "nope"] {
        let (text, took) = call(&gate, name);
        assert!(text.contains("the server hang is still starting"), "{text}");
        assert!(!text.contains("unknown"), "{text}");
        assert!(took < LONG, "{took:?}");
    }
    let session = Session::of(gate.port, "2025-06-18");
    let answer = answer_of(&session.call(&json!(9), "nope", json!({})), &json!(9));
    assert!(
        said(&answer).contains("the server hang is still starting"),
        "{answer}"
    );
    let (sum, _) = call(&gate, "slow_look");
    assert_eq!(sum, "did look");
}

#[test]
fn a_complete_first_list_is_followed_by_no_change() {
    let slow = Slow::new(2);
    let program = env!("CARGO_BIN_EXE_toolgate");
    let more: String = (0..3)
        .map(|n| format!("[server.demo{n}]\ncommand = [{program:?}, \"demo-server\"]\n"))
        .collect();
    let mut pipe = Pipe::open(&slow.data, &slow.config(&more));
    let (mut id, kinds) = (10, ["tools", "prompts", "resources", "resources/templates"]);
    for kind in kinds {
        id += 1;
        pipe.write(&json!({"jsonrpc": "2.0", "id": id, "method": format!("{kind}/list")}));
    }
    let mut answers = 0;
    while answers < kinds.len() {
        let message = pipe.next(LONG).expect("an answer");
        if message["id"] == 11 {
            let listed = names(&message["result"], "tools");
            assert!(listed.contains(&"slow_look".to_owned()), "{listed:?}");
        }
        answers += usize::from(message["id"].is_u64());
    }
    assert_eq!(pipe.quiet(), [""; 0]);
}

#[test]
fn a_caller_who_may_not_use_a_server_is_not_told_that_it_starts() {
    let data = Arc::new(TempDir::new("hidden"));
    let config = "[limits]\nlist_wait_seconds = 1\ncall_seconds = 2\n[server.hang]\ncommand = [\"sleep\", \"1000\"]\n[[rule]]\ntools = [\"hang.*\"]\naction = \"deny\"\n";
    let gate = Setup::config(config).start_in(data);
    let (text, took) = call(&gate, "hang_read");
    assert_eq!(text, "unknown tool: hang_read");
    assert!(took < SOON, "{took:?}");
}
