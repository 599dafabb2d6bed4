//! Tasks of a server that outlive the gateway: the next one takes them up.

use super::restart::{begin_2025, of_2025};
use super::{ask, begin, look, until_is};
use crate::help::{Gate, Modern, Reply, SOON, Session, Setup, TempDir, answer_of, send, upstream};
use crate::help::{command, until};
use serde_json::{Value, json};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

const TASKS: &str = "io.modelcontextprotocol/tasks";
const SECRET: &str = "ghp_k3Y9k3Y9k3Y9k3Y9k3Y9k3Y9k3Y9k3Y9k3Y9";
const FOREIGN: &str = "t-of-the-server";
const POLL: u64 = 600;
/// The revisions in which servers have tasks.
const REVISIONS: [&str; 2] = ["2026-07-28", "2025-11-25"];

/// State of the server's only task.
#[derive(Default)]
struct Held {
    status: &'static str,
    /// Times of the polls.
    looks: Vec<Instant>,
    methods: Vec<String>,
    answers: Vec<Value>,
}

struct Far {
    address: String,
    held: Arc<(Mutex<Held>, Condvar)>,
}

/// A server whose tool `work` is always a task, which ends when the test says so.
fn far(revision: &'static str) -> Far {
    let first = Held {
        status: "working",
        ..Held::default()
    };
    let held = Arc::new((Mutex::new(first), Condvar::new()));
    let shared = held.clone();
    let modern = revision == "2026-07-28";
    let address = upstream(move |message| {
        let mut held = shared.0.lock().unwrap();
        let method = message["method"].as_str().unwrap_or_default();
        held.methods.push(method.to_owned());
        let answer = |mut result: Value| {
            if modern && result.get("resultType").is_none() {
                result["resultType"] = "complete".into();
                result["ttlMs"] = result.get("ttlMs").cloned().unwrap_or(60_000.into());
                result["cacheScope"] = "private".into();
            }
            Reply::result(message, result)
        };
        let error = |code: i64, text: &str| {
            let error = json!({"code": code, "message": text});
            Reply::Events(vec![
                json!({"jsonrpc": "2.0", "id": message["id"], "error": error}),
            ])
        };
        let result =
            json!({"content": [{"type": "text", "text": format!("done, with {SECRET} in it")}]});
        let state = |status: &str| {
            let times = json!({"taskId": FOREIGN, "status": status, "createdAt": "2026-01-01T00:00:00Z",
                "lastUpdatedAt": "2026-01-01T00:00:00Z"});
            let mut state = times;
            let [ttl, poll] = match modern {
                true => ["ttlMs", "pollIntervalMs"],
                false => ["ttl", "pollInterval"],
            };
            (state[ttl], state[poll]) = (600_000.into(), POLL.into());
            state
        };
        match method {
            "server/discover" if modern => answer(json!({
                "supportedVersions": [revision],
                "capabilities": {"tools": {}, "extensions": {TASKS: {}}},
            })),
            "initialize" if !modern => answer(json!({
                "protocolVersion": revision, "serverInfo": {"name": "far", "version": "1"},
                "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}},
            })),
            "tools/list" => {
                let mut tool = json!({"name": "work", "inputSchema": {"type": "object"}});
                if !modern {
                    tool["execution"] = json!({"taskSupport": "required"});
                }
                answer(json!({"tools": [tool]}))
            }
            "tools/call" if modern => {
                let mut created = state("working");
                created["resultType"] = "task".into();
                answer(created)
            }
            "tools/call" => answer(json!({"task": state("working")})),
            "tasks/get" => {
                held.looks.push(Instant::now());
                if message["params"]["taskId"] != FOREIGN || held.status == "forgotten" {
                    return error(-32602, "no such task");
                }
                let mut state = state(held.status);
                if modern {
                    match held.status {
                        "completed" => state["result"] = result,
                        "input_required" => {
                            let form = json!({"type": "object", "properties": {"name": {"type": "string"}}});
                            let ask = json!({"method": "elicitation/create",
                                "params": {"mode": "form", "message": "Who?", "requestedSchema": form}});
                            state["inputRequests"] = json!({"theirs": ask});
                        }
                        _ => {}
                    }
                }
                answer(state)
            }
            "tasks/update" => {
                held.answers
                    .push(message["params"]["inputResponses"].clone());
                held.status = "completed";
                answer(json!({}))
            }
            "tasks/result" => {
                let runs = |held: &mut Held| held.status != "completed";
                let waited = shared.1.wait_timeout_while(held, 2 * SOON, runs);
                drop(waited);
                answer(result)
            }
            "server/discover" | "initialize" => error(-32601, "not this one"),
            _ => answer(json!({})),
        }
    });
    Far { address, held }
}

impl Far {
    fn becomes(&self, status: &'static str) {
        self.held.0.lock().unwrap().status = status;
        self.held.1.notify_all();
    }

    fn looks(&self) -> usize {
        self.held.0.lock().unwrap().looks.len()
    }

    fn heard(&self, method: &str) -> usize {
        let held = self.held.0.lock().unwrap();
        held.methods.iter().filter(|one| *one == method).count()
    }

    fn is_looked_at(&self, times: usize) {
        until("its server is asked how far it is", SOON, || {
            (self.looks() >= times).then_some(())
        });
    }

    fn setup(&self, then: &str) -> Setup {
        let url = &self.address;
        Setup::config(format!(
            "[server.far]\nurl = {url:?}\ntrust_annotations = true\n[[rule]]\ntools = [\"*.*\"]\naction = {then:?}\n"
        ))
    }
}

/// A task of the gateway that is one of the server, as both know it.
fn begun(far: &Far, gate: &Gate) -> String {
    let id = begin(gate, "far_work", json!({"n": 1}));
    // The revision without a word of tasks in lists is asked for the result, which waits.
    until("its server has begun", SOON, || {
        let asked = far.looks() > 0 || far.heard("tasks/result") > 0;
        asked.then_some(())
    });
    id
}

fn intact(gate: &Gate) {
    assert!(gate.cli(&["audit", "verify"]).contains("intact"));
}

fn of_call<'a>(records: &'a [Value], event: &str, call: &str) -> Vec<&'a Value> {
    let of = |r: &&Value| r["ev"] == event && r["call"] == call;
    records.iter().filter(of).collect()
}

/// After a kill the task goes on under the same id, at the pace that its server asked for; its result is cleaned, and the
/// record has the call.
///
/// Holds: XTASK-14
#[test]
fn a_task_of_a_server_goes_on_after_a_kill() {
    for revision in REVISIONS {
        let far = far(revision);
        let gate = far.setup("allow").start();
        let id = begun(&far, &gate);
        let data = gate.kill();
        let looks = far.looks();
        let state = data.stored_text("state/tasks");
        assert!(state.contains("sealed"), "nothing is stored");
        assert!(!state.contains(FOREIGN), "the server's id is sealed");
        let gate = far.setup("allow").start_in(data);
        assert_eq!(look(&gate, &id)["status"], "working", "{revision}");
        far.is_looked_at(looks + 3);
        assert_eq!(
            far.heard("tools/call"),
            1,
            "{revision}: it is never begun anew"
        );
        let list = gate.cli(&["tasks", "list"]);
        assert_eq!(list.matches("working").count(), 1, "{list}");
        let call = list.split_whitespace().next().unwrap().to_owned();
        far.becomes("completed");
        let task = until_is(&gate, &id, "completed");
        let text = task["result"]["content"][0]["text"].as_str().unwrap();
        assert!(
            text.starts_with("done, with [redacted"),
            "{revision}: {text}"
        );
        let times = far.held.0.lock().unwrap().looks.clone();
        for pair in times.windows(2) {
            // A tenth for the clocks.
            let between = pair[1] - pair[0];
            assert!(
                between >= Duration::from_millis(POLL * 9 / 10),
                "{between:?}"
            );
        }
        let records = gate.audit();
        let begins = of_call(&records, "call.begin", &call);
        assert_eq!(begins.len(), 2, "{records:#?}");
        assert_eq!(begins[0]["name"], begins[1]["name"]);
        assert_eq!(begins[0]["args_mac"], begins[1]["args_mac"]);
        let unknown = of_call(&records, "call.unknown", &call);
        assert_eq!(unknown.len(), 1, "{revision}: {records:#?}");
        let ends = of_call(&records, "call.end", &call);
        assert_eq!((ends.len(), &ends[0]["out"]), (1, &json!("ok")), "{ends:?}");
        assert_eq!(ends[0]["round"], 1, "{ends:?}");
        intact(&gate);
        assert!(!gate.said().concat().contains(FOREIGN));
        let data = gate.stop();
        let all = command("grep")
            .args(["-rl", SECRET])
            .arg(data.path())
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8(all.stdout).unwrap(),
            "",
            "no secret is kept"
        );
        // And what had ended stays as it is.
        let gate = far.setup("allow").start_in(data);
        assert_eq!(look(&gate, &id), task);
        gate.stop();
    }
}

/// A client of 2025-11-25, a polite end, and a second one by a kill.
#[test]
fn it_goes_on_after_every_end_and_for_every_client() {
    let far = far("2025-11-25");
    let gate = far.setup("allow").start();
    let session = Session::open(gate.port);
    let id = begin_2025(&session, "far_work", json!({"n": 1}));
    until("it is waited for", SOON, || {
        (far.heard("tasks/result") > 0).then_some(())
    });
    let gate = far.setup("allow").start_in(gate.stop());
    far.is_looked_at(1);
    assert_eq!(far.heard("tasks/cancel"), 0, "it is left, not ended");
    let looks = far.looks();
    let gate = far.setup("allow").start_in(gate.kill());
    far.is_looked_at(looks + 1);
    let session = Session::open(gate.port);
    let task = of_2025(&session, "tasks/get", json!({"taskId": id}));
    assert_eq!(task["result"]["status"], "working", "{task}");
    far.becomes("completed");
    let result = of_2025(&session, "tasks/result", json!({"taskId": id}));
    let text = result["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("[redacted") && !text.contains(SECRET),
        "{text}"
    );
    assert_eq!(far.heard("tools/call"), 1);
    intact(&gate);
    gate.stop();
}

/// An approval stays valid for the resumed call, but a newer deny rule overrides it.
#[test]
fn the_yes_of_a_person_lasts_and_a_later_no_counts() {
    let far = far("2026-07-28");
    let gate = far.setup("ask").start();
    let id = begin(&gate, "far_work", json!({"n": 1}));
    let approval = gate.pending();
    gate.cli(&["approve", &approval]);
    far.is_looked_at(1);
    let gate = far.setup("ask").start_in(gate.kill());
    let looks = far.looks();
    far.is_looked_at(looks + 1);
    assert_eq!(gate.inbox(), Vec::<String>::new(), "nobody is asked again");
    let gate = far.setup("deny").start_in(gate.kill());
    let why = reason(&gate, &id);
    assert!(why.contains("unknown tool"), "{why}");
    intact(&gate);
    gate.stop();
}

/// Its question comes under a key that was never used, is answered once, and only for who began it.
///
/// Holds: XTASK-14
#[test]
fn its_questions_are_asked_again_under_other_keys_and_answered_once() {
    let far = far("2026-07-28");
    far.becomes("input_required");
    let gate = far.setup("allow").start();
    let knows = |method: &str, params: Value| {
        let mut body = super::body(method, params);
        body["params"]["_meta"][super::CAPABILITIES]["elicitation"] = json!({"form": {}});
        body
    };
    let params = json!({"name": "far_work", "arguments": {}});
    let created = Modern::ask(gate.port, Some("far_work"), &knows("tools/call", params));
    let id = created["result"]["taskId"]
        .as_str()
        .unwrap_or_else(|| panic!("{created}"));
    let key = |gate: &Gate| {
        let task = until_is(gate, id, "input_required");
        let asks = task["inputRequests"].as_object().unwrap();
        asks.keys().next().unwrap().clone()
    };
    let first = key(&gate);
    let gate = far.setup("allow").start_in(gate.kill());
    let second = key(&gate);
    assert_ne!(first, second);
    let answer = |key: &str| {
        let yes = json!({"action": "accept", "content": {"name": "Ada"}});
        let params = json!({"taskId": id, "inputResponses": {key: yes}});
        ask(&gate, "tasks/update", id, params)
    };
    answer(&first);
    assert_eq!(
        look(&gate, id)["status"],
        "input_required",
        "that key is over"
    );
    answer(&second);
    until_is(&gate, id, "completed");
    answer(&second);
    let answers = far.held.0.lock().unwrap().answers.clone();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(answers[0]["theirs"]["content"]["name"], "Ada");
    gate.stop();
}

/// A server that does not know its task any more, and a gateway whose keys are gone, say so.
#[test]
fn what_cannot_be_found_again_has_failed_and_says_why() {
    let far = far("2026-07-28");
    let gate = far.setup("allow").start();
    let id = begun(&far, &gate);
    let data = gate.kill();
    far.becomes("forgotten");
    let gate = far.setup("allow").start_in(data);
    let why = reason(&gate, &id);
    assert!(
        why.contains("the server no longer knows that task"),
        "{why}"
    );
    assert!(why.contains("may have taken effect"), "{why}");
    intact(&gate);
    let data = gate.stop();
    far.becomes("working");
    let gate = far.setup("allow").start_in(data);
    let (id, looks) = (begun(&far, &gate), far.looks());
    far.is_looked_at(looks + 1);
    let data = gate.kill();
    // The keys lie there: what was sealed by others is not believed.
    let keys = data.path().join("state/state");
    std::fs::rename(&keys, data.path().join("gone")).unwrap();
    let looks = far.looks();
    let gate = far.setup("allow").start_in(data);
    let why = reason(&gate, &id);
    assert!(why.contains("this server stopped"), "{why}");
    assert_eq!(far.looks(), looks);
    gate.stop();
}

/// Returns the reason why a task failed.
#[track_caller]
fn reason(gate: &Gate, id: &str) -> String {
    let task = until("it has an end", SOON, || {
        Some(look(gate, id)).filter(|task| task["status"] != "working")
    });
    // The gateway's own errors of a call are those of a tool.
    let error = task["error"]["message"].as_str().map(str::to_owned);
    error.unwrap_or_else(|| {
        task["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned()
    })
}

/// A child that has tasks of its own dies with the gateway, and so do they.
#[test]
fn a_child_that_lost_its_task_makes_it_fail() {
    let data = Arc::new(TempDir::new("inner"));
    let program = env!("CARGO_BIN_EXE_toolgate");
    let inner = data.path().join("inner");
    let config = format!(
        "[server.demo]\ncommand = [{program:?}, \"--stdio\", \"--data\", {inner:?}]\ntrust_annotations = true\n\
         revision = \"newest\"\n[[rule]]\ntools = [\"*.*\"]\naction = \"allow\"\n"
    );
    let gate = Setup::config(config.clone()).start();
    let id = begin(
        &gate,
        "demo_demo_slow_count",
        json!({"to": 10_000, "delay_ms": 1_000}),
    );
    until("the child has a task", SOON, || {
        let kept = gate.data.stored_text("state/tasks");
        kept.contains("\"sealed\"").then_some(())
    });
    let gate = Setup::config(config).start_in(gate.kill());
    let why = reason(&gate, &id);
    assert!(why.contains("no longer knows that task"), "{why}");
    gate.stop();
}

/// Another caller is told of a task that goes on what he is told of none.
#[test]
fn it_is_still_good_for_its_caller_only() {
    const TOKEN: &str = "a-token-of-many-letters";
    let far = far("2026-07-28");
    let gate = far.setup("allow").start();
    let id = begun(&far, &gate);
    let gate = far
        .setup("allow")
        .top("token = { env = \"TOOLGATE_TEST_TOKEN\" }")
        .env("TOOLGATE_TEST_TOKEN", TOKEN)
        .start_in(gate.kill());
    let with_token = |method: &str, id: &str| {
        let body = super::body(method, json!({"taskId": id})).to_string();
        let mut lines = Modern::headers(method, Some(id));
        lines.push(format!("Authorization: Bearer {TOKEN}"));
        let answer = send(gate.port, "POST", "/mcp", &lines, body.as_bytes());
        answer_of(&answer, &json!(7))
    };
    for method in ["tasks/get", "tasks/cancel"] {
        let unknown = with_token(method, "abcdefghijklmnopqrstuvwxyz234567");
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
        assert_eq!(with_token(method, &id), unknown);
    }
    far.becomes("completed");
    let gate = far.setup("allow").start_in(gate.stop());
    until_is(&gate, &id, "completed");
    gate.stop();
}
