//! T79: servers that crash, hang, talk nonsense or stop half way, behind the real gateway, beside one that is good.

mod http;
mod script;

use crate::help::{Gate, LONG, Modern, SOON, Setup, message_of, until};
use serde_json::{Value, json};
use std::thread;
use std::time::{Duration, Instant};

/// The deadline of a call in these tests.
const DEADLINE: Duration = Duration::from_secs(3);
/// Tolerance for a busy machine.
const SLACK: Duration = Duration::from_secs(10);
/// Calls of each bad server, one after the other.
const CALLS: u32 = 3;

/// Checks the outcome of a call of a bad server: an error of the tool or of the protocol, or a result if the misdeed
/// leaves one.
fn is_answered(answer: &Value) -> bool {
    answer["error"].is_object() || answer["result"].is_object()
}

/// Calls the bad servers, all at the same time, while the good one is called as well. How long the longest call of a bad
/// one took, and how many calls of the good one were answered.
fn call_all(gate: &Gate, servers: &[&str]) -> (Duration, u32) {
    let port = gate.port;
    let bad: Vec<_> = servers
        .iter()
        .map(|id| {
            let tool = format!("{id}_do");
            thread::spawn(move || {
                let mut longest = Duration::ZERO;
                for n in 0..CALLS {
                    let began = Instant::now();
                    let response = Modern::call(port, &json!(n), &tool, json!({}));
                    longest = longest.max(began.elapsed());
                    let answer = message_of(&response, &json!(n));
                    assert!(
                        answer.as_ref().is_some_and(is_answered),
                        "{tool}: {response:?}"
                    );
                }
                longest
            })
        })
        .collect();
    let mut good = 0;
    while !bad.iter().all(thread::JoinHandle::is_finished) {
        let id = json!(format!("good-{good}"));
        let response = Modern::call(port, &id, "good_add", json!({"a": good, "b": 1}));
        let answer = message_of(&response, &id).unwrap();
        assert_eq!(
            answer["result"]["structuredContent"]["sum"],
            good + 1,
            "{answer}"
        );
        good += 1;
    }
    let mut longest = Duration::ZERO;
    for (id, call) in servers.iter().zip(bad) {
        let took = call.join().unwrap();
        if took > DEADLINE {
            println!("T79: {id}: {} ms", took.as_millis());
        }
        longest = longest.max(took);
    }
    (longest, good)
}

fn config(servers: &str) -> String {
    let program = env!("CARGO_BIN_EXE_toolgate");
    let limits = format!(
        "[limits]\nrate = \"1000000/s\"\ncall_seconds = {}\ncall_max_seconds = {}\nstart_seconds = 2\nline_bytes = 1048576\n",
        DEADLINE.as_secs(),
        DEADLINE.as_secs(),
    );
    format!(
        "{limits}[server.good]\ncommand = [{program:?}, \"demo-server\"]\ntrust_annotations = true\n{servers}"
    )
}

fn server<'a>(state: &'a Value, id: &str) -> &'a Value {
    let all = state["servers"].as_array().unwrap();
    all.iter().find(|server| server["id"] == id).unwrap()
}

/// Checks that good servers still work and that no call hangs.
fn judge(kind: &str, gate: &Gate, servers: &[&str]) {
    until("the good server runs", LONG, || {
        (server(&gate.state(), "good")["state"] == "running").then_some(())
    });
    let (longest, good) = call_all(gate, servers);
    println!(
        "T79: {} misdeeds over {kind}, {} calls each: the longest took {} ms (deadline {} ms); the good server answered {good} of {good} calls meanwhile",
        servers.len(),
        CALLS,
        longest.as_millis(),
        DEADLINE.as_millis(),
    );
    assert!(longest < DEADLINE + SLACK, "{longest:?}");
    let state = gate.state();
    assert_eq!(server(&state, "good")["restarts"], 0, "{state}");
    let stuck = state["calls"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|c| c["state"] == "running");
    assert_eq!(stuck.count(), 0, "no call is left behind");
}

#[test]
fn t79_a_bad_server_over_stdio_hurts_nobody_else() {
    let sections: String = script::ALL.iter().map(script::section).collect();
    let ids: Vec<&str> = script::ALL.iter().map(|(id, ..)| *id).collect();
    let gate = Setup::config(config(&sections)).start();
    judge("stdio", &gate, &ids);
    // Those that ended are started again, ever later; those that never come up are not waited for.
    let state = gate.state();
    for (id, dies) in script::ALL.iter().map(|(id, _, dies)| (id, dies)) {
        let shown = server(&state, id);
        let restarts = shown["restarts"].as_u64().unwrap();
        assert!(
            !dies || restarts > 0 || shown["state"] == "backoff",
            "{shown}"
        );
        assert!(restarts < 60, "{id} is started again and again: {shown}");
    }
    let began = Instant::now();
    Modern::call(gate.port, &json!(1), "never-starts_do", json!({}));
    let opened = began.elapsed();
    println!(
        "T79: a call of a server that does not start is refused after {} ms",
        opened.as_millis()
    );
    assert!(opened < SOON);
    gate.stop();
}

#[test]
fn t79_a_bad_server_over_http_hurts_nobody_else() {
    let bad: Vec<_> = http::ALL
        .iter()
        .map(|(id, deed)| (*id, http::serve(*deed)))
        .collect();
    let section = |(id, port): &(&str, u16)| {
        format!("[server.{id}]\nurl = \"http://127.0.0.1:{port}/mcp\"\ntrust_annotations = true\n")
    };
    let sections: String = bad.iter().map(section).collect();
    let ids: Vec<&str> = bad.iter().map(|(id, _)| *id).collect();
    let gate = Setup::config(config(&sections)).start();
    judge("http", &gate, &ids);
    gate.stop();
}
