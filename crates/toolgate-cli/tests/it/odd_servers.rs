//! Odd but real definitions, results and replies of servers (`interop/odd`), each beside a good server.
//!
//! Everything is read in each revision, over stdio and HTTP, by clients that validate each message against the official
//! schema of their revision, and by the clients of the official SDKs.

mod corpus;
mod event_stream;
mod expectation;
mod raw_client;
mod reasons;
mod sdk_clients;

use crate::help::{Gate, Setup, real, within};
use corpus::{Case, cases, config};
use expectation::text_of;
use raw_client::{Open, RawClient};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

/// Start timeout of the corpus servers on a busy machine.
const START: Duration = Duration::from_secs(300);
/// Cases between two calls to the good server.
const CASES_A_CHECK: usize = 10;

/// A gateway before the corpus, once each server runs, or is down where its case says so.
fn gate(real: &Path, cases: &[Case]) -> Gate {
    let gate = Setup::config(config(real)).start();
    let down: HashSet<&str> = cases
        .iter()
        .filter(|case| case.line["state"] == "down")
        .map(|case| &*case.server)
        .collect();
    let is_settled = |server: &Value| match down.contains(server["id"].as_str().unwrap()) {
        true => server["state"] != "running" && server["error"].is_string(),
        false => server["state"] == "running",
    };
    let mut late = Vec::new();
    let ready = within(START, || {
        let servers = gate.state()["servers"].clone();
        late = servers.as_array().unwrap().clone();
        late.retain(|server| !is_settled(server));
        late.is_empty().then_some(())
    });
    assert!(ready.is_some(), "not as they must be: {late:#?}");
    gate
}

/// Checks that the good server beside the odd ones works.
fn good_server_works(client: &mut RawClient) -> Result<(), String> {
    let answer = client.call("good_add", &json!({"a": 1, "b": 2}))?;
    let fine = answer["result"]["isError"] != json!(true) && text_of(&answer).contains('3');
    expectation::expect(fine, || format!("the good server answered {answer}"))
}

/// Lists everything and uses each case as it says; returns what is wrong.
fn read_all(client: &mut RawClient, cases: &[Case]) -> Vec<String> {
    let (listed, mut wrong) = client.lists();
    for (number, case) in cases.iter().enumerate() {
        if let Err(why) = case.check(client, &listed) {
            wrong.push(format!("{client}: {}: {}: {why}", case.file, case.name));
        }
        if number % CASES_A_CHECK == 0
            && let Err(why) = good_server_works(client)
        {
            wrong.push(format!("{client}: after {}: {why}", case.name));
        }
    }
    wrong.extend(good_server_works(client).err());
    wrong
}

#[track_caller]
fn nothing_is(wrong: &[String]) {
    let lines = wrong.join("\n");
    assert!(wrong.is_empty(), "{} are wrong:\n{lines}", wrong.len());
}

#[test]
fn the_corpus_has_many_cases_and_each_has_its_own_name() {
    let cases = cases();
    assert!(cases.len() >= 250, "the corpus has {} cases", cases.len());
    let names: HashSet<(&str, &str)> = cases.iter().map(|case| (case.file, &*case.name)).collect();
    assert_eq!(names.len(), cases.len(), "two cases have the same name");
}

#[test]
fn odd_servers_leave_good_ones_usable_in_every_revision() {
    let Some(real) = real() else { return };
    let cases = cases();
    let gate = gate(&real, &cases);
    let config = config(&real);
    let mut wrong = reasons::missing(&gate, &cases);
    let over_http = || each_client(raw_client::over_http(gate.port), &cases);
    wrong.extend(both(over_http, || {
        each_client(raw_client::over_stdio(&config), &cases)
    }));
    nothing_is(&wrong);
    gate.stop();
}

/// Reads the corpus with one client after the other.
fn each_client(clients: Vec<Open<'_>>, cases: &[Case]) -> Vec<String> {
    let read = |open: Open<'_>| read_all(&mut open(), cases);
    clients.into_iter().flat_map(read).collect()
}

/// Runs both at once. Of the clients of one gateway only one reads at a time: an answer with the id `null` can be told to
/// belong to a call only while no other waits for the same server.
fn both(
    one: impl FnOnce() -> Vec<String> + Send,
    other: impl FnOnce() -> Vec<String>,
) -> Vec<String> {
    std::thread::scope(|scope| {
        let one = scope.spawn(one);
        let mut wrong = other();
        wrong.extend(one.join().expect("a client that reads to the end"));
        wrong
    })
}
