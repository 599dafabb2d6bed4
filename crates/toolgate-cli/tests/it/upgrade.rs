//! Upgrade of running gateways: a new process takes over the listener, and no call is lost.

use crate::help::{
    Family, Gate, KeptConnection, LONG, Modern, Response, Session, Setup, TempDir, ends, free_port,
    kill_hard, output, records, request, toolgate, until,
};
use crate::{shared_store, tasks};
use serde_json::{Value, json};
use std::{
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
};

/// Clients that call at the same time. Every other one has a session.
const CLIENTS: usize = 8;
/// Revisions of the sessions.
const REVISIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

/// Calls of several clients on connections that they keep, each with an id of its own.
struct Load {
    total: usize,
    answered: Arc<AtomicUsize>,
    clients: Vec<thread::JoinHandle<Vec<String>>>,
}

impl Load {
    /// Starts the calls, as many in all as the variable says. Each goes to the next gateway.
    fn start(ports: &[u16]) -> Load {
        let calls = std::env::var("TOOLGATE_UPGRADE_CALLS");
        let total = calls.map_or(2000, |calls| calls.parse::<usize>().unwrap());
        let answered = Arc::<AtomicUsize>::default();
        let client = |number: usize| {
            let answered = answered.clone();
            let revision = REVISIONS[number / 2 % REVISIONS.len()];
            let home = ports[number % ports.len()];
            let session = (number % 2 == 1).then(|| Session::of(home, revision));
            let ports = ports.to_vec();
            thread::spawn(move || {
                let mut connections: Vec<KeptConnection> =
                    ports.iter().copied().map(KeptConnection::new).collect();
                let lost = (0..total / CLIENTS).filter_map(|call| {
                    let (id, next) = (format!("{number}-{call}"), call % ports.len());
                    let bytes = add(ports[next], session.as_ref(), &json!(id));
                    let lost = failure(connections[next].send(&bytes));
                    answered.fetch_add(1, SeqCst);
                    Some(format!("{id}: {}", lost?))
                });
                lost.collect()
            })
        };
        Load {
            total,
            clients: (0..CLIENTS).map(client).collect(),
            answered,
        }
    }

    /// Waits until this part of the calls is answered.
    fn reaches(&self, tenths: usize) {
        until("the calls go on", LONG, || {
            (self.answered.load(SeqCst) >= self.total * tenths / 10).then_some(())
        });
    }

    /// Waits for all calls. None is lost, and each is in one of the audit logs.
    #[track_caller]
    fn lost_none(self, logs: &[&Path]) {
        let lost: Vec<String> = self
            .clients
            .into_iter()
            .flat_map(|client| client.join().unwrap())
            .collect();
        assert_eq!(lost.len(), 0, "of {} calls: {lost:#?}", self.total);
        let count = || -> usize {
            let logs = logs.iter().map(|log| ends(&records(log)));
            logs.flatten()
                .filter(|id| id.split_once('-').is_some_and(|(n, _)| n.len() == 1))
                .count()
        };
        until("all calls are in the audit logs", LONG, || {
            (count() == self.total).then_some(())
        });
        println!("0 of {} calls lost, all in the audit logs", self.total);
    }
}

/// The bytes of a call, in a session or without one.
fn add(port: u16, session: Option<&Session>, id: &Value) -> Vec<u8> {
    let arguments = json!({"a": 1, "b": 2});
    match session {
        None => Modern::request(port, id, "demo_add", arguments),
        Some(session) => {
            let params = json!({"name": "demo_add", "arguments": arguments});
            let body =
                json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
            let body = body.to_string();
            request(port, "POST", "/mcp", &session.headers(), body.as_bytes())
        }
    }
}

/// Returns why a call was lost, if it was.
fn failure(answer: std::io::Result<Response>) -> Option<String> {
    match answer {
        Ok(answer) if answer.status == 200 && answer.body.contains("\\\"sum\\\":3") => None,
        Ok(answer) => Some(format!("{} {}", answer.status, answer.body)),
        Err(error) => Some(error.to_string()),
    }
}

/// Config of the gateways. An idle connection lives longer than any test.
fn config() -> String {
    let program = env!("CARGO_BIN_EXE_toolgate");
    format!(
        "[limits]\nrate = \"1000000/s\"\nheader_seconds = 300\ndrain_seconds = 600\n\n[server.demo]\ncommand = [{program:?}, \"demo-server\"]\ntrust_annotations = true\n"
    )
}

fn state(data: &TempDir) -> std::path::PathBuf {
    data.path().join("state")
}

/// Starts a successor of a gateway. It serves when this returns.
fn successor(gate: &Gate, config: String) -> Gate {
    let setup = Setup::config(config).at(gate.port);
    setup.options(&["--take-over"]).start_in(gate.data.clone())
}

/// A successor with another config, not started yet.
fn successor_with(gate: &Gate, config: &str) -> Command {
    let mut start = toolgate();
    let listen = format!("127.0.0.1:{}", gate.port);
    start
        .args(["serve", "--take-over", "--listen", &listen, "--data"])
        .arg(state(&gate.data))
        .arg("--config")
        .arg(gate.data.write("other.toml", config));
    start
}

#[test]
fn an_upgrade_loses_no_call() {
    let data = Arc::new(TempDir::short());
    let mut gate = Setup::config(config()).start_in(data.clone());
    let port = gate.port;
    // A call that takes longer than the first handover.
    let slow = thread::spawn(move || {
        let arguments = json!({"to": 2, "delay_ms": 1500});
        Modern::call(port, &json!("slow"), "demo_slow_count", arguments)
    });
    until("the slow call is running", LONG, || {
        let records = records(&state(&data));
        let begun = |record: &Value| record["ev"] == "call.begin" && record["rid"] == "\"slow\"";
        records.iter().any(begun).then_some(())
    });
    let load = Load::start(&[port]);
    for tenths in [2, 4, 6] {
        load.reaches(tenths);
        let mut idle = KeptConnection::new(port);
        assert_eq!(failure(idle.send(&add(port, None, &json!("idle")))), None);
        let next = successor(&gate, config());
        assert_eq!(next.port, port);
        // The old process has the connection until its next response.
        assert_eq!(failure(idle.send(&add(port, None, &json!("idle")))), None);
        let old = std::mem::replace(&mut gate, next);
        old.ended();
    }
    let slow = slow.join().unwrap();
    assert!(slow.body.contains("counted to 2"), "{slow:?}");
    load.lost_none(&[&state(&data)]);
    let verified = gate.cli(&["audit", "verify"]);
    assert!(!verified.is_empty());
    gate.stop();
}

#[test]
fn a_failed_upgrade_loses_no_call_and_leaves_the_gateway() {
    let data = Arc::new(TempDir::short());
    let gate = Setup::config(config()).start_in(data.clone());
    let load = Load::start(&[gate.port]);
    load.reaches(1);
    // Its server does not start, though it runs at the gateway.
    let broken = "[server.demo]\ncommand = [\"/nonexistent\"]\n";
    let failed = output(&mut successor_with(&gate, broken));
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert_eq!(failed.status.code(), Some(1), "{said}");
    assert!(
        said.contains("did not take over") && said.contains("demo"),
        "{said}"
    );
    load.reaches(3);
    // It has the listener, and ends while its server starts.
    let slow = "[server.demo]\ncommand = [\"/bin/sleep\", \"1000\"]\n";
    let mut hangs = successor_with(&gate, slow);
    let mut hangs = hangs.stderr(Stdio::null()).spawn().unwrap();
    let family = until("its server starts", LONG, || {
        let family = Family::of(hangs.id());
        family.names().contains(&"sleep").then_some(family)
    });
    let second = output(&mut successor_with(&gate, slow));
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(
        said.contains("another process takes over this gateway already"),
        "{said}"
    );
    kill_hard(&mut hangs);
    family.is_gone();
    until("the gateway reports it", LONG, || {
        let said = gate.said();
        said.iter()
            .any(|line| line.contains("ended before it could take over"))
            .then_some(())
    });
    load.reaches(6);
    let next = successor(&gate, config());
    gate.ended();
    load.lost_none(&[&state(&data)]);
    next.stop();
}

#[test]
fn a_successor_names_the_address_of_the_gateway_that_it_does_not_find() {
    let gate = Setup::config(config()).start_in(Arc::new(TempDir::short()));
    let mut start = toolgate();
    let listen = format!("127.0.0.1:{}", free_port());
    start
        .args(["serve", "--take-over", "--listen", &listen, "--data"])
        .arg(state(&gate.data));
    let refused = output(&mut start);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    let own = format!("it listens on 127.0.0.1:{}", gate.port);
    assert!(said.contains(&own), "{said}");
    assert_eq!(
        Modern::call(gate.port, &json!(1), "demo_add", json!({"a": 1, "b": 2})).status,
        200
    );
}

/// A gateway of another build, before its upgrade. `TOOLGATE_OLDER_PROGRAM` names its program.
fn older(setup: Setup) -> Setup {
    match std::env::var("TOOLGATE_OLDER_PROGRAM") {
        Ok(older) => setup.wrapped(&["sh", "-c", &format!("exec '{older}' \"$@\"")]),
        Err(_) => setup,
    }
}

/// Each call goes to the next of three gateways, while each of them is upgraded. Until the last upgrade, gateways of two
/// builds share the store, the sessions and the database schema.
#[test]
fn a_rolling_upgrade_loses_no_call() {
    let Some(url) = shared_store::database() else {
        return;
    };
    let pki = TempDir::new("pki");
    shared_store::certificates(pki.path());
    let config = |port: u16| {
        shared_store::peer_config(&url, pki.path(), port).replace(
            "[limits]\n",
            "[limits]\nheader_seconds = 300\ndrain_seconds = 600\n",
        )
    };
    let gateway = |peer: u16| {
        let gate = older(Setup::config(config(peer))).start_in(Arc::new(TempDir::short()));
        (gate, peer)
    };
    let mut gates: Vec<(Gate, u16)> = (0..3).map(|_| gateway(free_port())).collect();
    let ports: Vec<u16> = gates.iter().map(|(gate, _)| gate.port).collect();
    let load = Load::start(&ports);
    for (number, tenths) in [1, 3, 5].into_iter().enumerate() {
        load.reaches(tenths);
        let (gate, peer) = &mut gates[number];
        let next = successor(gate, config(*peer));
        std::mem::replace(gate, next).ended();
    }
    let logs: Vec<_> = gates.iter().map(|(gate, _)| state(&gate.data)).collect();
    let logs: Vec<&Path> = logs.iter().map(AsRef::as_ref).collect();
    load.lost_none(&logs);
    for (gate, _) in gates {
        gate.stop();
    }
}

#[test]
fn tasks_outlive_an_upgrade() {
    let gate = Setup::config(config()).start_in(Arc::new(TempDir::short()));
    let done = tasks::begin(&gate, "demo_slow_count", json!({"to": 1, "delay_ms": 900}));
    let before = tasks::until_is(&gate, &done, "completed");
    let running = json!({"to": 2, "delay_ms": 1500});
    let running = tasks::begin(&gate, "demo_slow_count", running);
    let next = successor(&gate, config());
    // The old process has them while it runs.
    assert_eq!(tasks::look(&next, &done), before);
    let status = tasks::look(&next, &running)["status"].clone();
    assert!(status == "working" || status == "completed", "{status}");
    gate.ended();
    let ended = tasks::until_is(&next, &running, "completed");
    assert!(ended.to_string().contains("counted to 2"), "{ended}");
    assert_eq!(tasks::look(&next, &done), before);
    next.stop();
}
