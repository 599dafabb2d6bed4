//! Odd but real definitions, results and replies of servers (`interop/odd`), each beside a good server.
//!
//! Everything is read in each revision, over stdio and HTTP, by clients that validate each message against the official
//! schema of their revision, and by the clients of the official SDKs.

mod corpus;
mod own_servers;
mod raw_client;
mod sdk_clients;

use crate::help::{Gate, SOON, Setup, TempDir, real, until};
use corpus::{Case, cases, config, text_of};
use raw_client::RawClient;
use serde_json::{Value, json};
use std::path::Path;

/// How many clients of the raw kind run at once.
const CLIENTS_AT_ONCE: usize = 2;

/// A gateway before the corpus, once every server is up.
fn gate(real: &Path) -> Gate {
    let gate = Setup::config(config(real)).start();
    until("every server runs", SOON, || {
        let servers = gate.state()["servers"].clone();
        let up = |server: &Value| server["state"] == "running";
        servers.as_array().unwrap().iter().all(up).then_some(())
    });
    gate
}

/// Checks that the good server beside the odd ones works.
fn good_server_works(client: &mut RawClient, wrong: &mut Vec<String>) {
    let answer = client.call("good_add", &json!({"a": 1, "b": 2}));
    if !text_of(&answer).contains('3') {
        wrong.push(format!("{client}: the good server answered {answer}"));
    }
}

/// Lists everything and uses each case as it says; what is wrong is added.
fn read_all(client: &mut RawClient, cases: &[Case], wrong: &mut Vec<String>) {
    let listed = client.lists();
    good_server_works(client, wrong);
    for case in cases {
        if let Err(why) = case.check(client, &listed) {
            wrong.push(format!("{client}: {}: {}: {why}", case.file, case.name));
        }
    }
    good_server_works(client, wrong);
}

#[test]
fn odd_servers_leave_good_ones_usable_in_every_revision() {
    let Some(real) = real() else { return };
    let cases = cases();
    assert!(cases.len() >= 250, "the corpus has {} cases", cases.len());
    let gate = gate(&real);
    let folder = TempDir::new("odd");
    let config = folder.write("toolgate.toml", &config(&real));
    let mut clients = raw_client::every(&gate, &config);
    let mut wrong = Vec::new();
    while !clients.is_empty() {
        let few = clients.split_off(clients.len().saturating_sub(CLIENTS_AT_ONCE));
        std::thread::scope(|scope| {
            let running: Vec<_> = few
                .into_iter()
                .map(|open| {
                    let cases = &cases;
                    scope.spawn(move || {
                        let mut wrong = Vec::new();
                        read_all(&mut open(), cases, &mut wrong);
                        wrong
                    })
                })
                .collect();
            for one in running {
                wrong.extend(one.join().expect("a client that reads every message"));
            }
        });
    }
    assert!(
        wrong.is_empty(),
        "{} are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    reasons_are_shown(&gate, &cases);
    gate.stop();
}

/// What is withheld or repaired has a reason that the operator sees.
#[track_caller]
fn reasons_are_shown(gate: &Gate, cases: &[Case]) {
    let shown = gate.cli(&["tools"]) + &gate.cli(&["status"]);
    let missing: Vec<&str> = cases
        .iter()
        .filter(|case| !case.reason_is_in(&shown))
        .map(|case| case.name.as_str())
        .collect();
    assert!(
        missing.is_empty(),
        "no reason is shown for {missing:?} in:\n{shown}"
    );
}
