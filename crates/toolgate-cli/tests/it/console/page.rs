//! Login, requests and calls at the console, in a real browser.

use super::{config, note};
use crate::help::{Gate, Modern, SOON, Script, Setup, TempDir, browser, real, send, shot, until};
use serde_json::{Value, json};
use std::{collections::BTreeSet, sync::Arc};

#[test]
fn a_request_whose_caller_has_gone_is_marked_and_ranks_below_one_that_waits() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let gate = Setup::demo().start();
    let old = gate.abandoned("the caller leaves");
    let waits = note(gate.port, "the caller waits");
    until("both are asked", SOON, || {
        (gate.inbox().len() == 2).then_some(())
    });
    assert_eq!(gate.inbox()[1], old, "in the terminal, too");
    let steps = json!([
        {"do": "pending", "holds": "the caller waits"},
        {"do": "see", "at": "#callers-gone summary", "holds": "1 request whose caller has gone"},
        {"do": "rows", "at": "[data-pending]", "names": ["data-pending", "data-caller"]},
        {"do": "shot", "path": shot("caller-gone.png")},
        {"do": "keys", "keys": ["k"]},
        {"do": "deny", "reason": "no"},
    ]);
    let mut page = Script::browser(&real, &gate.console(), steps);
    let rows = page.event("rows")["rows"].take();
    assert_eq!(rows[0]["data-caller"], "waits", "{rows}");
    assert_eq!(rows[1]["data-caller"], "gone", "{rows}");
    assert_eq!(rows[1]["data-pending"], json!(old));
    page.event("done");
    waits.join().unwrap();
}

/// A notification is tapped on a phone, whose page has lost the gateway and does not list the request yet.
#[test]
fn a_linked_request_opens_once_the_page_lists_it() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let data = Arc::new(TempDir::new("linked"));
    let gate = Setup::demo().start_in(data.clone());
    let (port, link) = (gate.port, gate.console());
    let steps = json!([
        {"do": "size", "width": 390},
        {"do": "see", "at": "#link[data-link=live]"},
        {"do": "wait"},
        {"do": "see", "at": "#link[data-link=lost]"},
        {"do": "open_request"},
        {"do": "wait"},
        {"do": "see", "at": "#link[data-link=live]"},
        {"do": "opened"},
    ]);
    let mut page = Script::browser(&real, &link, steps);
    page.event("waiting");
    gate.stop();
    let other = Setup::demo().start_in(data.clone());
    let waits = note(other.port, "x");
    let id = other.pending();
    page.go_on();
    page.event("waiting");
    page.send_line(&id);
    page.event("waiting");
    let gate = Setup::demo().at(port).start_in(data);
    page.go_on();
    page.event("done");
    gate.cli(&["deny", &id, "-m", "no"]);
    waits.join().unwrap();
}

#[test]
fn a_login_outlives_a_restart_and_ends_by_logout_and_by_revocation() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let data = Arc::new(TempDir::new("logins"));
    let gate = Setup::demo().start_in(data.clone());
    let (port, link) = (gate.port, gate.console());
    let again = gate.console();
    let steps = json!([
        {"do": "see", "at": "#link[data-link=live]"},
        {"do": "wait"},
        {"do": "see", "at": "#link[data-link=live]"},
        {"do": "reload"},
        {"do": "see", "at": "#link[data-link=live]"},
        {"do": "hidden", "at": "#login"},
        {"do": "click", "at": "#logout"},
        {"do": "see", "at": "#login", "holds": "This page needs a link"},
        {"do": "reload"},
        {"do": "see", "at": "#login", "holds": "This page needs a link"},
    ]);
    let mut page = Script::browser(&real, &link, steps);
    page.event("waiting");
    gate.stop();
    let gate = Setup::demo().at(port).start_in(data);
    page.go_on();
    page.event("done");
    let steps = json!([
        {"do": "see", "at": "#link[data-link=live]"},
        {"do": "wait"},
        {"do": "see", "at": "#login", "holds": "This page needs a link"},
    ]);
    let mut page = Script::browser(&real, &gate.console(), steps);
    page.event("waiting");
    assert!(
        gate.cli(&["console", "--revoke"])
            .contains("ended 1 console session")
    );
    page.go_on();
    page.event("done");
    // The link of before the restart was never opened, and is not kept.
    let token = again.split_once("#token=").unwrap().1.to_owned();
    let lines = ["Content-Type: application/json", "X-Toolgate-Console: 1"].map(str::to_owned);
    let body = json!({"token": token}).to_string();
    let entered = send(gate.port, "POST", "/console/login", &lines, body.as_bytes());
    assert_eq!(entered.status, 401);
}

/// A call that is refused, each in its own way.
fn refusals(gate: &Gate) {
    let call = |name: &str, tool: &str, arguments: Value| {
        Modern::call(gate.port, &json!(name), tool, arguments)
    };
    call("invalid", "demo_fail", json!({"x": 1}));
    call("rule", "demo_add", json!({"a": 13, "b": 1}));
    let waits = note(gate.port, "no");
    let id = gate.pending();
    gate.cli(&["deny", &id, "-m", "no"]);
    waits.join().unwrap();
    note(gate.port, "too late").join().unwrap();
    gate.cli(&["freeze", "all"]);
    call("frozen", "demo_add", json!({"a": 1, "b": 1}));
    gate.cli(&["thaw", "all"]);
    for n in 0..4 {
        call(&format!("rate-{n}"), "demo_picture", json!({}));
    }
}

#[test]
fn six_kinds_of_refusal_read_differently() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let gate = Setup::config(config(
        "[limits]\napproval_seconds = 10\n[[rule]]\ntools = [\"demo.add\"]\nwhen = \"args.a == 13\"\naction = \"deny\"\n[[rule]]\ntools = [\"demo.picture\"]\naction = \"allow\"\nrate = \"2/h\"\n",
    ))
    .start();
    refusals(&gate);
    let steps = json!([
        {"do": "click", "at": "[data-tab=calls]"},
        {"do": "see", "at": "[data-call][data-refusal=rate]"},
        {"do": "rows", "at": "[data-call][data-refusal] .state", "names": ["class"]},
        {"do": "shot", "path": shot("refusals.png")},
        {"do": "rows", "at": "[data-call][data-refusal]", "names": ["data-refusal"]},
    ]);
    let mut page = Script::browser(&real, &gate.console(), steps);
    let words = page.event("rows")["rows"].take();
    let rows = page.event("rows")["rows"].take();
    page.event("done");
    let all = |rows: &Value, name: &str| -> BTreeSet<String> {
        let rows = rows.as_array().unwrap().iter();
        rows.map(|row| row[name].as_str().unwrap().to_owned())
            .collect()
    };
    let kinds = ["expired", "frozen", "invalid", "person", "rate", "rule"];
    assert_eq!(all(&rows, "data-refusal"), kinds.map(str::to_owned).into());
    let expected = [
        "approval expired",
        "denied by a person",
        "denied by a rule",
        "frozen",
        "invalid arguments",
        "rate limited",
    ];
    assert_eq!(all(&words, "text"), expected.map(str::to_owned).into());
}

#[test]
fn a_notification_that_cannot_be_made_does_not_end_the_event_stream() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let gate = Setup::demo().start();
    let steps = json!([
        {"do": "see", "at": "#link[data-link=live]"},
        {"do": "no_notifications"},
        {"do": "see", "at": "#notify"},
        {"do": "wait"},
        {"do": "pending", "holds": "the first"},
        {"do": "hidden", "at": "#notify"},
        {"do": "wait"},
        {"do": "pending", "holds": "the second"},
        {"do": "links"},
    ]);
    let mut page = Script::browser(&real, &gate.console(), steps);
    page.event("waiting");
    let first = note(gate.port, "the first");
    page.go_on();
    page.event("waiting");
    let second = note(gate.port, "the second");
    page.go_on();
    let links = page.event("links");
    page.event("done");
    assert_eq!(links["tried"], 1, "it is tried once: {links}");
    let seen = links["links"].as_array().unwrap();
    let live = seen.iter().position(|link| link == "live").unwrap();
    assert!(!seen[live..].contains(&json!("lost")), "{links}");
    page.assert_no_page_error();
    drop(gate);
    drop((first.join(), second.join()));
}

#[test]
fn every_page_and_answer_of_the_console_is_isolated_from_other_origins() {
    let gate = Setup::demo().start();
    let login = gate.log_in("");
    let isolated = |method: &str, path: &str, lines: &[String]| {
        let answer = send(gate.port, method, path, lines, b"");
        for name in ["cross-origin-opener-policy", "cross-origin-resource-policy"] {
            assert_eq!(answer.header(name), Some("same-origin"), "{method} {path}");
        }
        answer.status
    };
    assert_eq!(isolated("GET", "/", &[]), 200);
    assert_eq!(isolated("GET", "/console/app.js", &[]), 200);
    assert_eq!(isolated("GET", "/console/style.css", &[]), 200);
    assert_eq!(isolated("GET", "/console/signed-in", &[]), 200);
    assert_eq!(isolated("GET", "/console/nothing", &[]), 404);
    assert_eq!(isolated("GET", "/nothing", &[]), 404);
    assert_eq!(isolated("GET", "/console/api/state", &[]), 401);
    assert_eq!(isolated("GET", "/console/api/state", login.lines()), 200);
    assert_eq!(isolated("POST", "/console/login", &[]), 403);
    assert_eq!(isolated("POST", "/console/logout", &[]), 401);
    let foreign = ["Origin: http://evil.example".to_owned()];
    assert_eq!(isolated("GET", "/", &foreign), 403);
    let Some((real, _)) = real().zip(browser()) else {
        return;
    };
    let steps = json!([
        {"do": "fetch", "url": "/console/api/state", "read": "cross-origin-resource-policy"},
        {"do": "fetch", "url": "/", "read": "cross-origin-opener-policy"},
    ]);
    let mut page = Script::browser(&real, &gate.console(), steps);
    for _ in 0..2 {
        assert_eq!(page.event("fetch")["read"], "same-origin");
    }
    page.event("done");
}
