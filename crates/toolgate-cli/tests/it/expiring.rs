//! Credentials whose time is over while something runs that was begun with them: a call that was handed on comes to its
//! answer in every way of asking, since its effect may be there; nothing new begins, and what only listens ends.

use crate::help::{
    Gate, Modern, Reply, SOON, Setup, TempDir, all_of, answer_of, message_of, raw, request, sayer,
    until,
};
use crate::keys::created;
use crate::many_tokens::Issuer;
use crate::oauth::{RESOURCE, bearer, call};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use toolgate_policy::{StateStore, WritePrecondition};
use toolgate_store::{DatabaseStore, StoreLimits};

/// A server whose calls end when the test lets them.
#[derive(Default)]
struct Far {
    calls: AtomicUsize,
    open: Mutex<bool>,
    opened: Condvar,
}

impl Far {
    fn start(self: &Arc<Far>) -> String {
        let far = self.clone();
        sayer(move |message| {
            let answer = |result: Value| Reply::result(message, result);
            far.calls.fetch_add(1, SeqCst);
            let open = far.open.lock().unwrap();
            drop(far.opened.wait_while(open, |open| !*open).unwrap());
            answer(json!({"content": [{"type": "text", "text": "it is done"}]}))
        })
    }

    fn gate(self: &Arc<Far>, auth: &str) -> Gate {
        let far = self.start();
        let gate = Setup::fast_demo(&format!(
            "{auth}[server.far]\nurl = \"{far}\"\ntrust_annotations = true\n"
        ));
        let gate = gate.start();
        // A list that changes later would be a message on the streams.
        until("the tools of both servers are there", SOON, || {
            let tools = gate.cli(&["tools"]);
            (tools.contains("far.say") && tools.contains("demo.add")).then_some(())
        });
        gate
    }

    fn arrived(&self, calls: usize) {
        until("the calls arrive", SOON, || {
            (self.calls.load(SeqCst) == calls).then_some(())
        });
    }

    fn release(&self) {
        *self.open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

/// A client of 2024-11-05: what its stream tells, until that ends.
struct Old {
    stream: BufReader<TcpStream>,
    messages: String,
}

impl Old {
    fn open(port: u16, lines: &[String]) -> Old {
        let lines = [lines, &["Accept: text/event-stream".to_owned()]].concat();
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        stream
            .write_all(&request(port, "GET", "/sse", &lines, b""))
            .unwrap();
        let mut old = Old {
            stream: BufReader::new(stream),
            messages: String::new(),
        };
        old.messages = old.next("data: /messages").unwrap();
        old
    }

    /// The next line that begins so, without `data: `; nothing at the end.
    fn next(&mut self, begins: &str) -> Option<String> {
        let deadline = Instant::now() + SOON;
        loop {
            // Keepalive comments are lines as well: a read timeout alone would wait forever.
            assert!(Instant::now() < deadline, "no line begins with {begins}");
            let mut line = String::new();
            match self.stream.read_line(&mut line).unwrap() {
                0 => return None,
                _ if line.starts_with(begins) => {
                    return Some(line.trim_end().replacen("data: ", "", 1));
                }
                _ => {}
            }
        }
    }

    fn post(&self, port: u16, lines: &[String], body: &Value) {
        let lines = [lines, &["Content-Type: application/json".to_owned()]].concat();
        let bytes = request(
            port,
            "POST",
            &self.messages,
            &lines,
            body.to_string().as_bytes(),
        );
        assert_eq!(raw(port, &bytes).status, 202);
    }
}

fn initialize(revision: &str) -> Value {
    let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "by-hand", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

fn say() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "far_say", "arguments": {}}})
}

/// Waiting calls and streams that were begun with credentials.
struct Begun {
    calls: Vec<JoinHandle<Value>>,
    streams: Vec<JoinHandle<String>>,
    old: Old,
    listening: Arc<AtomicBool>,
}

/// Begins a call in each way of asking, and listens in each way of listening.
fn begin(gate: &Gate, far: &Far, shown: &[String]) -> Begun {
    let port = gate.port;
    let usual = [
        "Accept: application/json, text/event-stream".to_owned(),
        "Content-Type: application/json".to_owned(),
    ];
    let lines = [shown, &usual].concat();
    let opened = initialize("2025-11-25").to_string();
    let opened = raw(
        port,
        &request(port, "POST", "/mcp", &lines, opened.as_bytes()),
    );
    let id = opened.header("mcp-session-id").unwrap();
    let session = [
        &lines[..],
        &[
            format!("Mcp-Session-Id: {id}"),
            "MCP-Protocol-Version: 2025-11-25".to_owned(),
        ],
    ]
    .concat();
    let mut old = Old::open(port, shown);
    old.post(port, shown, &initialize("2024-11-05"));
    old.next("data: {").unwrap();
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    old.post(port, shown, &ready);

    let stateless = {
        let shown = shown.to_vec();
        thread::spawn(move || {
            let response = call(port, &shown, "far_say", json!({}));
            assert_eq!(response.status, 200, "{response:?}");
            answer_of(&response, &json!(1))
        })
    };
    let in_session = {
        let bytes = request(port, "POST", "/mcp", &session, say().to_string().as_bytes());
        thread::spawn(move || {
            let response = raw(port, &bytes);
            assert_eq!(response.status, 200, "{response:?}");
            message_of(&response, &json!(1)).unwrap_or_else(|| panic!("{response:?}"))
        })
    };
    old.post(port, shown, &say());
    let params = json!({"notifications": {"toolsListChanged": true}});
    let body = Modern::body(&json!(1), "subscriptions/listen", params).to_string();
    let mut head = Modern::headers("subscriptions/listen", None);
    head.extend_from_slice(shown);
    let listening = Arc::new(AtomicBool::new(true));
    let streams = [
        request(port, "POST", "/mcp", &head, body.as_bytes()),
        request(port, "GET", "/mcp", &session, b""),
    ];
    let streams = streams.map(|bytes| {
        let listening = listening.clone();
        thread::spawn(move || {
            let all = all_of(port, &bytes);
            listening.store(false, SeqCst);
            all
        })
    });
    far.arrived(3);
    Begun {
        calls: vec![stateless, in_session],
        streams: streams.into(),
        old,
        listening,
    }
}

impl Begun {
    /// The credentials are over: what listens has ended, and nothing new begins; then the calls may go on.
    fn ends_well(mut self, gate: &Gate, far: &Far, shown: &[String]) {
        until("they are over", SOON, || {
            (add(gate.port, shown) == 401).then_some(())
        });
        for stream in self.streams {
            let all = stream.join().unwrap();
            assert!(all.starts_with("HTTP/1.1 200"), "{all}");
        }
        far.release();
        for call in self.calls {
            let answer = call.join().unwrap();
            assert!(
                answer["result"].to_string().contains("it is done"),
                "{answer}"
            );
        }
        let answer = self
            .old
            .next("data: {")
            .expect("the answer of the old call");
        assert!(answer.contains("it is done"), "{answer}");
        assert_eq!(self.old.next("data: {"), None, "then its stream ends");
        assert_eq!(far.calls.load(SeqCst), 3, "each went out once");
        let records = gate.audit();
        let ended = |ev: &str| {
            let of = records
                .iter()
                .filter(|r| r["ev"] == ev && r["srv"] == "far");
            of.map(|r| (r["call"].to_string(), r["out"].clone()))
                .collect::<Vec<_>>()
        };
        let ends = ended("call.end");
        assert_eq!(ends.len(), 3, "{ends:?}");
        assert!(ends.iter().all(|(_, out)| out == "ok"), "{ends:?}");
    }
}

fn add(port: u16, shown: &[String]) -> u16 {
    call(port, shown, "demo_add", json!({"a": 1, "b": 2})).status
}

/// The time of a key is over, as if it had been made so.
pub(crate) fn expire(data: &TempDir, name: &str) {
    let state = DatabaseStore::open(
        data.path().join("state").join("state"),
        StoreLimits::default(),
    );
    let state = state.unwrap();
    let mut key = state.row("keys", name).unwrap().value;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    key["expires"] = json!(now.as_millis() as u64 - 1);
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let written = state.write("keys", name, Some(key), WritePrecondition::Any);
    runtime.unwrap().block_on(written).unwrap();
}

#[test]
fn a_call_outlives_the_key_that_began_it() {
    let far = Arc::new(Far::default());
    let gate = far.gate("[auth]\nrequired = true\n");
    let key = bearer(&created(&gate, "ci"));
    let begun = begin(&gate, &far, &key);
    assert!(begun.listening.load(SeqCst));
    expire(&gate.data, "ci");
    begun.ends_well(&gate, &far, &key);
}

/// Another key took its place: the holder is the same.
#[test]
fn a_call_outlives_the_key_that_was_rotated() {
    let far = Arc::new(Far::default());
    let gate = far.gate("[auth]\nrequired = true\n");
    let shown = bearer(&created(&gate, "ci"));
    let begun = begin(&gate, &far, &shown);
    gate.cli(&["keys", "rotate", "ci"]);
    begun.ends_well(&gate, &far, &shown);
}

/// The token is over by its own clock already, and taken for as long as clocks may be off: what lets it in ends nothing.
#[test]
fn a_call_outlives_the_token_that_began_it() {
    let (far, issuer) = (Arc::new(Far::default()), Issuer::start());
    let gate = far.gate(&format!(
        "[auth]\nresource = \"{RESOURCE}\"\n[auth.issuer.corp]\nurl = \"{}\"\n",
        issuer.url
    ));
    let port = gate.port;
    let end = SystemTime::now() - Duration::from_secs(60 - 8);
    let token = bearer(&issuer.token_until(1, end));
    // Calls one after the other, each of which may be the one in whose middle the time is over.
    let calls: Vec<JoinHandle<(usize, String)>> = (0..3)
        .map(|_| {
            let token = token.clone();
            thread::spawn(move || {
                let count = json!({"to": 10, "delay_ms": 20});
                for n in 0.. {
                    let response = call(port, &token, "demo_slow_count", count.clone());
                    match response.status {
                        200 => assert!(answer_of(&response, &json!(1))["result"].is_object()),
                        401 => return (n, response.body),
                        _ => panic!("{response:?}"),
                    }
                }
                unreachable!()
            })
        })
        .collect();
    begin(&gate, &far, &token).ends_well(&gate, &far, &token);
    let calls: Vec<_> = calls.into_iter().map(|hand| hand.join().unwrap()).collect();
    let answered: usize = calls.iter().map(|(n, _)| n).sum();
    assert!(answered > 3, "{answered}");
    let records = gate.audit();
    let of = |ev: &str| {
        let of = records
            .iter()
            .filter(|r| r["ev"] == ev && r["tool"] == "demo.slow_count");
        of.map(|r| r["call"].to_string()).collect::<BTreeSet<_>>()
    };
    let (begun, ended) = (of("call.begin"), of("call.end"));
    assert_eq!(
        (begun.len(), &begun),
        (answered, &ended),
        "none was cut off"
    );
    let told: BTreeSet<_> = calls.into_iter().map(|(_, told)| told).collect();
    assert_eq!(told.len(), 1, "{told:?}");
}
