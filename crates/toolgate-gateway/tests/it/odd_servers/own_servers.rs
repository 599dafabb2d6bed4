//! Odd lists and handshakes: each case is a server of its own.

use super::corpus::{good, lines, section};
use super::good_server_works;
use super::raw_client::RawClient;
use crate::help::{SOON, Setup, real, until};
use serde_json::{Value, json};

const REVISION: &str = "2025-11-25";

/// The names of its tools that a client sees, without the prefix of the server.
fn tools_of(tools: &[Value], server: &str) -> Vec<String> {
    let prefix = format!("{server}_");
    let names = tools
        .iter()
        .filter_map(|tool| tool["name"].as_str()?.strip_prefix(&prefix));
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort();
    names
}

#[test]
fn odd_lists_and_handshakes_leave_what_can_be_used() {
    let Some(real) = real() else { return };
    let cases = lines("servers");
    let name = |case: &Value| case["case"].as_str().unwrap().replace('_', "-");
    let sections = cases.iter().map(|case| {
        section(
            &real,
            &name(case),
            "servers",
            REVISION,
            case["case"].as_str(),
        )
    });
    let gate = Setup::config(good() + &sections.collect::<String>()).start();
    let mut client = RawClient::over_http(REVISION, gate.port);
    until("every server runs", SOON, || {
        let servers = gate.state()["servers"].clone();
        let mut servers = servers.as_array().unwrap().iter();
        servers
            .all(|server| server["state"] == "running")
            .then_some(())
    });
    let (tools, mut wrong) = (client.lists().tools, Vec::new());
    good_server_works(&mut client, &mut wrong);
    let shown = gate.cli(&["tools"]) + &gate.cli(&["status"]);
    for case in &cases {
        let server = name(case);
        let found = json!(tools_of(&tools, &server));
        let wanted = case.get("tools").cloned().unwrap_or_else(|| json!([]));
        if found != wanted {
            wrong.push(format!("{server}: its tools are {found}"));
        }
        for tool in wanted.as_array().unwrap() {
            let answer = client.call(&format!("{server}_{}", tool.as_str().unwrap()), &json!({}));
            if !answer["result"].is_object() || answer["result"]["isError"] == json!(true) {
                wrong.push(format!("{server}: a call is answered {answer}"));
            }
        }
        let reason = case["reason"].as_str();
        let is_shown = |reason: &str| {
            shown
                .lines()
                .any(|line| line.contains(&server) && line.contains(reason))
        };
        if !reason.is_none_or(is_shown) {
            wrong.push(format!("{server}: no reason is shown"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} are wrong:\n{}\n{shown}",
        wrong.len(),
        wrong.join("\n")
    );
    gate.stop();
}
