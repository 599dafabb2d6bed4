//! What `serve` prints: a line for each event that matters.

use crate::help::{Gate, LONG, Modern, Setup, answer_of, until};
use serde_json::json;

/// A server that writes to stderr and exits with 3, after the demo server.
pub(crate) fn with_crashing_server() -> String {
    let program = env!("CARGO_BIN_EXE_toolgate");
    format!(
        "[server.demo]\ncommand = [{program:?}, \"demo-server\"]\ntrust_annotations = true\n\
         [server.bad]\ncommand = [\"sh\", \"-c\", \"echo the folder is missing >&2; exit 3\"]\n"
    )
}

/// Waits for a line of the gateway that contains the text.
#[track_caller]
pub(crate) fn heard(gate: &Gate, text: &str) -> String {
    until(&format!("a line with {text:?}"), LONG, || {
        gate.said().into_iter().find(|line| line.contains(text))
    })
}

/// Returns whether a line begins with a time of day.
fn is_stamped(line: &str) -> bool {
    let time: Vec<u8> = line.bytes().take(9).collect();
    let digit = |at: usize| time[at].is_ascii_digit();
    time.len() == 9
        && [0, 1, 3, 4, 6, 7].into_iter().all(digit)
        && (time[2], time[5], time[8]) == (b':', b':', b' ')
}

/// Calls a tool that asks for an approval, on a thread of its own.
fn ask(gate: &Gate) -> std::thread::JoinHandle<String> {
    let port = gate.port;
    std::thread::spawn(move || {
        let id = json!(1);
        let note = json!({"name": "n", "text": "PAYLOAD-IN-ARGUMENTS"});
        answer_of(&Modern::call(port, &id, "demo_note", note), &id).to_string()
    })
}

#[test]
fn a_crash_is_printed_with_its_exit_and_stderr_and_recorded() {
    let gate = Setup::config(with_crashing_server()).start();
    heard(&gate, "the server demo is running, revision ");
    let failed = heard(&gate, "the server bad is not running: ");
    assert!(is_stamped(&failed), "{failed}");
    assert!(failed.contains("it exited with status 3"), "{failed}");
    assert!(failed.contains("; it is started again in "), "{failed}");
    heard(&gate, "         | the folder is missing");
    heard(&gate, "the server bad is starting again (restart 1)");
    let data = gate.stop();
    let records = crate::help::records(&data.path().join("state"));
    let find = |event: &str, server: &str| {
        let mut all = records.iter();
        let found = all.find(|r| r["ev"] == event && r["server"] == server);
        found
            .unwrap_or_else(|| panic!("no {event} of {server}"))
            .clone()
    };
    assert!(find("server.started", "demo")["revision"].is_string());
    let why = find("server.failed", "bad")["why"].to_string();
    assert!(why.contains("status 3") && !why.contains("folder"), "{why}");
    find("server.stopped", "demo");
}

#[test]
fn a_server_that_a_reload_removes_is_stopped_and_named() {
    let gate = Setup::config(with_crashing_server()).start();
    heard(&gate, "the server demo is running");
    gate.configure(
        "[server.other]\ncommand = [\"cat\"]\n[[rule]]\ntools = [\"other.*\"]\naction = \"ask\"\n",
    );
    let line = heard(&gate, "the config was reloaded: ");
    let wanted = "1 server, 1 rule; added server other; removed servers demo, bad; added 1 rule";
    assert!(line.ends_with(wanted), "{line}");
    heard(&gate, "the server demo was stopped");
    gate.configure("nonsense = 1\n");
    let line = heard(
        &gate,
        "the config was rejected; the previous config stays active: ",
    );
    assert!(line.contains("toolgate.toml:1:1"), "{line}");
}

#[test]
fn approvals_are_printed_with_their_commands_and_their_ends() {
    let setup = Setup::demo().start();
    let first = ask(&setup);
    let id = setup.pending();
    let line = heard(
        &setup,
        &format!("approval {id}: anonymous@http calls demo.note and waits "),
    );
    let run = format!("toolgate approve {id} --data ");
    assert!(line.contains(&run) && line.contains("-m REASON"), "{line}");
    setup.cli(&["approve", &id]);
    heard(&setup, &format!("approval {id}: approved by "));
    first.join().unwrap();
    let second = ask(&setup);
    let id = setup.pending();
    heard(&setup, &format!("approval {id}: anonymous@http calls "));
    setup.cli(&["deny", &id, "-m", "not today"]);
    let line = heard(&setup, &format!("approval {id}: denied by "));
    assert!(
        line.ends_with("demo.note for anonymous@http: not today"),
        "{line}"
    );
    second.join().unwrap();
    let said = setup.said().join("\n");
    assert!(!said.contains("PAYLOAD"), "{said}");
    setup.stop();
}

#[test]
fn an_approval_that_nobody_decides_expires_in_a_line() {
    let config = format!("[limits]\napproval_seconds = 1\n{}", with_crashing_server());
    let gate = Setup::config(config).start();
    let call = ask(&gate);
    let line = heard(&gate, ": expired: demo.note for anonymous@http");
    assert!(is_stamped(&line), "{line}");
    call.join().unwrap();
}

#[test]
fn verbose_prints_calls_without_their_contents() {
    let gate = Setup::demo().options(&["-v"]).start();
    let numbers = json!({"a": 47_110_000, "b": 815});
    Modern::call(gate.port, &json!(1), "demo_add", numbers);
    Modern::call(
        gate.port,
        &json!(2),
        "demo_no_such",
        json!({"x": "PAYLOAD"}),
    );
    let line = heard(&gate, "call demo.add by anonymous@http: ");
    assert!(line.contains("allow, ") && line.ends_with(" ms"), "{line}");
    heard(&gate, "call demo_no_such by anonymous@http: ");
    let said = gate.said().join("\n");
    assert!(
        !said.contains("PAYLOAD") && !said.contains("4711"),
        "{said}"
    );
    let quieter = Setup::demo().start();
    Modern::call(quieter.port, &json!(1), "demo_add", json!({"a": 1, "b": 2}));
    heard(&quieter, "the server demo is running");
    assert!(!quieter.said().join("\n").contains("call demo.add by"));
}
