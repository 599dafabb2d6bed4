//! Decisions besides approval and denial: edited arguments, a time-limited grant, a second approver, a freeze.

use crate::help::{
    Gate, Modern, Response, SOON, Script, Setup, TempDir, answer_of, browser, real, shot, until,
};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    sync::Arc,
    thread::JoinHandle,
};

fn ask(port: u16, tool: &'static str, arguments: Value) -> JoinHandle<Response> {
    std::thread::spawn(move || Modern::call(port, &json!(1), tool, arguments))
}

fn note(port: u16, text: &str) -> JoinHandle<Response> {
    ask(port, "demo_note", json!({"name": "n", "text": text}))
}

#[track_caller]
fn result(call: JoinHandle<Response>) -> Value {
    answer_of(&call.join().unwrap(), &json!(1))["result"].take()
}

/// Runs a command that fails, and returns its message.
#[track_caller]
fn refused(gate: &Gate, args: &[&str]) -> String {
    let out = gate.run(args);
    assert!(!out.status.success(), "{args:?} passed");
    String::from_utf8(out.stderr).unwrap()
}

/// The terminal's `toolgate call`, which runs what a caller may do at once.
fn begun(gate: &Gate) -> Vec<Value> {
    let mut records = gate.audit();
    records.retain(|r| r["ev"] == "call.begin");
    records
}

#[test]
fn an_approval_outlives_the_gateway_and_is_used_once() {
    let data = Arc::new(TempDir::new("outlives"));
    let gate = Setup::demo().start_in(data.clone());
    let first = note(gate.port, "kept");
    let id = gate.pending();
    // Nobody decides before the gateway stops; the question is still there in the next one.
    gate.stop();
    drop(first.join());
    let gate = Setup::demo().start_in(data.clone());
    assert_eq!(gate.inbox(), [id.as_str()]);
    gate.cli(&["approve", &id]);
    gate.stop();
    let gate = Setup::demo().start_in(data);
    assert_eq!(gate.inbox(), [""; 0]);
    assert_ne!(result(note(gate.port, "kept"))["isError"], true);
    assert_eq!(begun(&gate).last().unwrap()["approval"], id.as_str());
    let again = note(gate.port, "kept");
    let other = gate.pending();
    assert_ne!(other, id, "it was good for one use");
    gate.cli(&["deny", &other, "-m", "once"]);
    assert_eq!(result(again)["isError"], true);
    assert!(refused(&gate, &["approve", &id]).contains("already decided"));
}

/// More calls than the socket has connections: the excess is rejected, and every pending call can still be decided.
#[test]
fn pending_calls_of_the_command_line_leave_connections_for_decisions() {
    const CALLS: usize = 70;
    const MAX_CALLS: usize = 48;
    let data = Arc::new(TempDir::short());
    let config = format!(
        "[limits]\napprovals_per_caller = 100\n[server.demo]\ncommand = [{:?}, \"demo-server\"]\n",
        env!("CARGO_BIN_EXE_toolgate"),
    );
    let gate = Setup::config(config).start_in(data.clone());
    let socket = data.path().join(format!("state/run/{}.sock", gate.pid()));
    let with = json!({"tool": "demo.note", "text": r#"{"name":"n","text":"t"}"#});
    let mut calls: Vec<_> = (0..CALLS)
        .map(|_| {
            let mut stream = UnixStream::connect(&socket).unwrap();
            stream.set_read_timeout(Some(SOON)).unwrap();
            writeln!(stream, "{}", json!({"do": "call", "with": with})).unwrap();
            let mut lines = BufReader::new(stream).lines();
            assert_eq!(lines.next().unwrap().unwrap(), r#"{"heard":true}"#);
            lines
        })
        .collect();
    let lines = calls.iter_mut().map(|call| call.next().unwrap().unwrap());
    let is_rejected = |line: &String| line.contains("48 calls from the command line");
    assert_eq!(lines.filter(is_rejected).count(), CALLS - MAX_CALLS);
    let id = gate.pending();
    gate.cli(&["deny", &id, "-m", "once"]);
    assert!(!gate.inbox().contains(&id));
}

#[test]
fn one_process_decides_what_another_asked() {
    let data = Arc::new(TempDir::new("two"));
    let asks = Setup::demo().start_in(data.clone());
    let mut decides = Setup::demo().start_in(data);
    let call = note(asks.port, "x");
    let id = asks.pending();
    // Its own link: the command asks whichever process it finds first.
    let link = decides.announced("console");
    let person = decides.open_link(&link);
    let yes = until("the other process knows of it", SOON, || {
        let done = person.post("approve", &json!({"id": id}));
        (done == json!({"ok": true})).then_some(done)
    });
    assert_eq!(yes["ok"], true);
    assert_ne!(result(call)["isError"], true);
}

#[test]
fn the_list_of_all_processes_has_each_question_once() {
    let data = Arc::new(TempDir::new("once"));
    let (one, _other) = (
        Setup::demo().start_in(data.clone()),
        Setup::demo().start_in(data),
    );
    let call = note(one.port, "x");
    let id = one.pending();
    assert_eq!(one.inbox(), [id.as_str()]);
    one.cli(&["deny", &id, "-m", "no"]);
    result(call);
}

#[test]
fn edited_arguments_are_judged_anew_and_marked() {
    let gate = Setup::demo().start();
    let call = note(gate.port, "first");
    let id = gate.pending();
    let edit = |json: &'static str| {
        [
            "approve",
            &*Box::leak(id.clone().into_boxed_str()),
            "--edit",
            json,
        ]
    };
    assert!(refused(&gate, &edit("[]")).contains("not a JSON object"));
    let unfit = refused(&gate, &edit(r#"{"name": 5, "text": "x"}"#));
    assert!(unfit.contains("name"), "{unfit}");
    assert_eq!(gate.inbox(), [id.as_str()], "a bad edit decides nothing");
    gate.cli(&edit(r#"{"name": "other", "text": "second"}"#));
    let said = result(call).to_string();
    assert!(
        said.contains("other") && said.contains("is written"),
        "{said}"
    );
    assert!(
        said.contains("a person changed the arguments of this call"),
        "{said}"
    );
    let records = gate.audit();
    let approved = records.iter().find(|r| r["state"] == "approved").unwrap();
    assert_eq!(approved["edited"], true, "{approved}");
    let trail = begun(&gate)[0]["trail"].to_string();
    assert!(trail.contains("edited by"), "{trail}");
    let asked = records.iter().find(|r| r["state"] == "asked").unwrap();
    assert_ne!(asked["args_mac"], approved["args_mac"]);
    assert_eq!(begun(&gate)[0]["args_mac"], approved["args_mac"]);
}

#[test]
fn a_grant_ends_after_so_many_uses() {
    let gate = Setup::demo().start();
    let first = note(gate.port, "0");
    gate.cli(&[
        "approve",
        &gate.pending(),
        "--remember",
        "--uses",
        "2",
        "--for",
        "1h",
    ]);
    result(first);
    for text in ["1", "2"] {
        assert_ne!(result(note(gate.port, text))["isError"], true);
    }
    let list = gate.cli(&["grants", "list"]);
    assert!(list.contains("used up; used 2 of 2 times"), "{list}");
    let more = note(gate.port, "3");
    gate.cli(&["deny", &gate.pending(), "-m", "enough"]);
    assert!(result(more).to_string().contains("enough"));
    let wipe = ask(gate.port, "demo_delete_note", json!({"name": "n"}));
    let id = gate.pending();
    let why = refused(&gate, &["approve", &id, "--remember"]);
    assert!(why.contains("add a condition"), "{why}");
    let when = |cel| ["approve", &*id.clone().leak(), "--remember", "--when", cel];
    let why = refused(&gate, &when("true"));
    assert!(why.contains("does not read args"), "{why}");
    gate.cli(&when("args.name == \"n\""));
    assert_ne!(result(wipe)["isError"], true);
    let begun_before = begun(&gate).len();
    result(ask(gate.port, "demo_delete_note", json!({"name": "n"})));
    assert_eq!(begun(&gate).len(), begun_before + 1);
    let other = ask(gate.port, "demo_delete_note", json!({"name": "m"}));
    gate.cli(&["deny", &gate.pending(), "-m", "no"]);
    assert_eq!(result(other)["isError"], true);
}

#[test]
fn two_persons_are_two() {
    let gate =
        Setup::fast_demo("[[rule]]\ntools = [\"demo.note\"]\naction = \"ask\"\napprovals = 2\n")
            .start();
    let call = note(gate.port, "x");
    let id = gate.pending();
    gate.cli(&["approve", &id]);
    assert_eq!(gate.inbox(), [id.as_str()], "one yes is not enough");
    assert!(refused(&gate, &["approve", &id]).contains("you already approved this call"));
    let (owner, ann) = (gate.log_in(""), gate.log_in("ann"));
    let yes = json!({"id": id});
    let same = owner.post("approve", &yes);
    assert!(
        same["error"]
            .as_str()
            .unwrap()
            .contains("you already approved this call"),
        "{same}"
    );
    assert_eq!(begun(&gate).len(), 0);
    assert_eq!(ann.post("approve", &yes), json!({"ok": true}));
    assert_ne!(result(call)["isError"], true);
    let trail = begun(&gate)[0]["trail"].to_string();
    assert!(trail.contains("(terminal) and ann (console)"), "{trail}");
    // Whoever calls is nobody's second person.
    let mine = std::thread::spawn({
        let ann = gate.log_in("ann");
        move || {
            ann.post(
                "call",
                &json!({"tool": "demo.note", "arguments": {"name": "a", "text": "b"}}),
            )
        }
    });
    let id = gate.pending();
    let own = ann.post("approve", &json!({"id": id}));
    assert!(
        own["error"]
            .as_str()
            .unwrap()
            .contains("you made this call"),
        "{own}"
    );
    gate.cli(&["deny", &id, "-m", "no"]);
    mine.join().unwrap();
}

#[test]
fn what_is_frozen_stands_still_in_all_processes() {
    let data = Arc::new(TempDir::new("frozen"));
    let gate = Setup::demo().start_in(data.clone());
    let other = Setup::demo().start_in(data.clone());
    let running = ask(gate.port, "demo_slow_count", json!({"to": 600}));
    until("it runs", SOON, || (!begun(&gate).is_empty()).then_some(()));
    let waits = note(other.port, "x");
    gate.pending();
    gate.cli(&["freeze", "server", "demo", "--reason", "we look into it"]);
    for stopped in [running, waits] {
        let told = answer_of(&stopped.join().unwrap(), &json!(1)).to_string();
        assert!(
            told.contains("the operator froze the server demo: we look into it"),
            "{told}"
        );
    }
    assert!(gate.cli(&["tools"]).contains("demo.add"), "lists stay");
    gate.stop();
    other.stop();
    let gate = Setup::demo().start_in(data);
    let add = || result(ask(gate.port, "demo_add", json!({"a": 1, "b": 2})));
    assert!(add().to_string().contains("we look into it"));
    assert!(gate.cli(&["freeze", "list"]).contains("server demo  since"));
    gate.cli(&["thaw", "server", "demo"]);
    assert_ne!(add()["isError"], true);
    assert!(refused(&gate, &["thaw", "all"]).contains("not frozen"));
    gate.cli(&["freeze", "caller", "anonymous@http"]);
    assert_eq!(add()["isError"], true);
    gate.cli(&["thaw", "caller", "anonymous@http"]);
    gate.cli(&["freeze", "all"]);
    assert_eq!(add()["isError"], true);
    assert_eq!(
        gate.audit().iter().filter(|r| r["ev"] == "freeze").count(),
        5
    );
}

#[test]
fn what_was_decided_is_said() {
    let gate = Setup::demo().start();
    let said = |args: &[&str]| {
        let out = gate.run(args);
        assert!(out.status.success(), "{args:?} {out:?}");
        assert!(out.stdout.is_empty(), "{args:?} {out:?}");
        String::from_utf8(out.stderr).unwrap()
    };
    for (how, word) in [("approve", "approved"), ("deny", "denied")] {
        let waits = note(gate.port, how);
        let id = gate.pending();
        let args = ["deny", &id, "-m", "no"];
        let args = if how == "deny" {
            &args[..]
        } else {
            &["approve", &id]
        };
        assert_eq!(said(args), format!("{word}: {id}\n"));
        waits.join().unwrap();
    }
    let who = ["caller", "key:nosuch"];
    let frozen = said(&["freeze", who[0], who[1]]);
    let note = "note: there is no API key \"nosuch\" yet";
    assert_eq!(frozen, format!("frozen: caller key:nosuch\n{note}\n"));
    let thawed = said(&["thaw", who[0], who[1]]);
    assert_eq!(thawed, "thawed: caller key:nosuch\n");
    let unknown = refused(&gate, &["grants", "revoke", "x"]);
    assert!(unknown.contains("toolgate grants list"), "{unknown}");
    let wrong = gate.run(&["audit", "search", "--decision", "bad"]);
    assert_eq!(wrong.status.code(), Some(2));
    let words = String::from_utf8(wrong.stderr).unwrap();
    assert!(words.contains("allow, deny, accept, reject"), "{words}");
}

#[test]
fn a_person_edits_remembers_and_freezes_in_the_browser() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let gate = Setup::demo().start();
    let first = note(gate.port, "to be edited");
    gate.pending();
    let mut person = Script::browser(
        &real,
        &gate.console(),
        json!([
            {"do": "pending", "holds": "to be edited"},
            {"do": "edit", "text": "{\"name\": \"edited\", \"text\": \"by a person\"}"},
            {"do": "pending", "holds": "again and again"},
            {"do": "shot", "path": shot("question.png")},
            {"do": "remember", "uses": 3},
            {"do": "grants"},
            {"do": "freeze", "reason": "stop it all"},
            {"do": "shot", "path": shot("grants.png")},
            {"do": "wait"},
            {"do": "thaw", "what": "all"},
        ]),
    );
    person.event("edit");
    assert!(result(first).to_string().contains("edited"));
    let second = note(gate.port, "again and again");
    let grants = person.event("grants");
    assert_ne!(result(second)["isError"], true);
    let text = grants["text"].as_str().unwrap();
    assert!(
        text.contains("demo.note") && text.contains("0 of 3 times"),
        "{text}"
    );
    person.event("waiting");
    let stopped = result(note(gate.port, "not now")).to_string();
    assert!(
        stopped.contains("the operator froze everything: stop it all"),
        "{stopped}"
    );
    person.go_on();
    person.event("done");
    assert_ne!(result(note(gate.port, "now"))["isError"], true);
    assert!(begun(&gate)[0]["trail"].to_string().contains("edited by"));
}
