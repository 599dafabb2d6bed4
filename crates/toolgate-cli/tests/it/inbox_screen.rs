//! Decisions in the full-screen view of `toolgate inbox --watch`, in a real terminal.

use crate::help::{Gate, Modern, Response, SOON, Screen, Setup, TempDir, answer_of, until};
use serde_json::{Value, json};
use std::{path::Path, sync::Arc, thread::JoinHandle};

pub(crate) const READY: &str = "? help";

/// The script of a window that runs the view, and then says how it left the terminal.
fn view_script(state: &Path, before: &str) -> String {
    format!(
        "{before}\n{:?} inbox --watch --data {state:?}\necho \"ended $?\"; stty -a | grep -o '.icanon'; exec cat\n",
        env!("CARGO_BIN_EXE_toolgate")
    )
}

pub(crate) fn view_of(gate: &Gate, before: &str) -> Option<Screen> {
    Screen::start(&view_script(&gate.data.file("state"), before), 100, 30)
}

pub(crate) fn call(gate: &Gate, tool: &'static str, arguments: Value) -> JoinHandle<Response> {
    let port = gate.port;
    std::thread::spawn(move || Modern::call(port, &json!(1), tool, arguments))
}

pub(crate) fn note(gate: &Gate, text: &str) -> JoinHandle<Response> {
    call(gate, "demo_note", json!({"name": "n", "text": text}))
}

#[track_caller]
pub(crate) fn result(call: JoinHandle<Response>) -> String {
    answer_of(&call.join().unwrap(), &json!(1)).to_string()
}

#[test]
fn a_call_is_approved_under_the_name_of_the_terminal() {
    let gate = Setup::demo().start();
    let by_command = note(&gate, "by command");
    gate.cli(&["approve", &gate.pending()]);
    by_command.join().unwrap();
    let Some(view) = view_of(&gate, "") else {
        return;
    };
    view.shows("no calls are waiting");
    let waits = note(&gate, "SEEN-ON-SCREEN");
    let shown = view.shows("SEEN-ON-SCREEN");
    assert!(
        shown.contains("demo.note") && shown.contains("anonymous@http"),
        "{shown}"
    );
    assert!(shown.contains("no rule matches"), "{shown}");
    let id = gate.pending();
    view.press_until("a", &format!("Approve {id}: demo.note for anonymous@http?"));
    // Other keys answer nothing.
    view.press(&["a", "x", "q"]);
    assert_eq!(gate.inbox(), [id.as_str()]);
    view.press(&["Enter"]);
    view.shows(&format!("approved: {id}"));
    assert!(result(waits).contains("is written"));
    view.shows("no calls are waiting");
    let approved = gate
        .audit()
        .into_iter()
        .filter(|r| r["state"] == "approved");
    let by: Vec<Value> = approved.map(|r| json!([r["by"], r["who"]])).collect();
    assert_eq!(by.len(), 2);
    assert_eq!(by[0], by[1]);
}

#[test]
fn a_destructive_call_needs_a_y() {
    let gate = Setup::fast_demo("").start();
    let Some(view) = view_of(&gate, "") else {
        return;
    };
    let waits = call(&gate, "demo_delete_note", json!({"name": "n"}));
    let id = gate.pending();
    view.shows("not read-only, destructive");
    view.press_until("a", "DESTRUCTIVE. Approve");
    view.press(&["Enter", "Escape"]);
    view.shows(READY);
    assert_eq!(gate.inbox(), [id.as_str()]);
    view.press_until("a", "DESTRUCTIVE. Approve");
    view.press(&["y"]);
    view.shows("approved: ");
    waits.join().unwrap();
}

#[test]
fn a_denial_carries_its_reason_to_the_caller() {
    let gate = Setup::demo().start();
    let Some(view) = view_of(&gate, "") else {
        return;
    };
    let waits = note(&gate, "first");
    let id = gate.pending();
    view.shows(&id);
    view.press_until("d", "reason: _");
    view.type_text("aq");
    view.shows("reason: aq_");
    view.press(&["Escape"]);
    view.shows(READY);
    assert_eq!(gate.inbox(), [id.as_str()], "Esc cancels");
    view.press_until("d", "reason: _");
    view.type_text("write into a new file");
    view.shows("a new file_");
    view.press(&["Enter"]);
    assert!(result(waits).contains("write into a new file"));
    view.shows(&format!("denied: {id}"));
}

#[test]
fn edited_arguments_reach_the_server() {
    let gate = Setup::demo().start();
    let dir = TempDir::new("editor");
    // The first run writes something that is no JSON, the second one a JSON that does not fit the tool.
    let editor = dir.write(
        "editor",
        "cd \"$(dirname \"$0\")\"; echo \"$1\" >> files; stat -c %a \"$1\" \"$(dirname \"$1\")\" >> modes; cp \"$1\" \"given$(wc -l < modes)\"\n\
         case $(wc -l < modes) in 2) echo '{broken' > \"$1\";; 4) echo '{\"name\": 5, \"text\": \"x\"}' > \"$1\";;\n\
         *) echo '{\"name\": \"other\", \"text\": \"edited\"}' > \"$1\";; esac\n",
    );
    let before = format!("export VISUAL= EDITOR='sh {}'", editor.display());
    let Some(view) = view_of(&gate, &before) else {
        return;
    };
    let waits = note(&gate, "first\u{202e}");
    let id = gate.pending();
    view.shows(&id);
    view.press_until("e", "Not sent: the arguments are not valid JSON");
    view.press(&["e"]);
    view.shows("with these arguments?");
    view.press(&["y"]);
    view.shows("do not fit the tool");
    assert_eq!(gate.inbox(), [id.as_str()]);
    view.press(&["e"]);
    let shown = view.shows("with these arguments?");
    assert!(
        shown.contains("-    \"name\": \"n\"") || shown.contains("-  \"name\": \"n\""),
        "{shown}"
    );
    assert!(
        shown.contains("+{\"name\": \"other\", \"text\": \"edited\"}"),
        "{shown}"
    );
    view.press(&["y"]);
    let said = result(waits);
    assert!(
        said.contains("other") && said.contains("a person changed"),
        "{said}"
    );
    let given = std::fs::read_to_string(dir.file("given2")).unwrap();
    assert!(given.contains("\"first\\u202e\""), "{given}");
    let modes = std::fs::read_to_string(dir.file("modes")).unwrap();
    assert_eq!(modes, "600\n700\n".repeat(3));
    let files = std::fs::read_to_string(dir.file("files")).unwrap();
    assert_eq!(files.lines().count(), 3, "{files}");
    for file in files.lines() {
        assert!(
            !std::path::Path::new(file).exists(),
            "the file {file} of the editor stays"
        );
    }
}

#[test]
fn a_remembered_approval_covers_the_next_call() {
    let gate = Setup::demo().start();
    let Some(view) = view_of(&gate, "") else {
        return;
    };
    let waits = note(&gate, "first");
    view.shows(&gate.pending());
    view.press_until("r", "> for or until");
    view.type_text("1x");
    view.press(&["Enter"]);
    view.shows("is not a valid duration");
    view.press(&["C-u"]);
    view.type_text("1h");
    view.press(&["Tab"]);
    view.type_text("1");
    view.shows("> maximum calls: 1_");
    view.press(&["Enter"]);
    view.shows("--remember --for=1h --uses=1");
    view.press(&["y"]);
    view.shows("approved: ");
    assert!(result(waits).contains("is written"));
    assert!(result(note(&gate, "second")).contains("is written"));
    let list = gate.cli(&["grants", "list"]);
    assert!(list.contains("used 1 of 1 time"), "{list}");
}

#[test]
fn a_server_is_frozen_and_thawed() {
    let gate = Setup::demo().start();
    let Some(view) = view_of(&gate, "") else {
        return;
    };
    let waits = note(&gate, "first");
    view.shows(&gate.pending());
    view.press_until(
        "f",
        "Freeze: c the caller anonymous@http, s the server demo",
    );
    view.press(&["s"]);
    view.type_text("we look into it");
    view.shows("reason: we look into it_");
    view.press(&["Enter"]);
    view.shows("FROZEN: server demo");
    assert!(result(waits).contains("froze the server demo: we look into it"));
    view.press_until("t", "Thaw 1: server demo?");
    view.press(&["1"]);
    view.shows("thawed: server demo");
    view.comes("nothing is frozen", |shown| !shown.contains("FROZEN"));
    assert!(gate.run(&["freeze", "list"]).stdout.is_empty());
}

#[test]
fn the_view_waits_for_a_gateway_that_stops() {
    let data = Arc::new(TempDir::new("lost"));
    let gate = Setup::demo().start_in(data.clone());
    let Some(view) = view_of(&gate, "") else {
        return;
    };
    let first = note(&gate, "first");
    let id = gate.pending();
    view.shows(&id);
    gate.stop();
    drop(first.join());
    view.shows("waiting for one");
    view.press_until("a", "so nothing can be decided");
    let gate = Setup::demo().start_in(data);
    view.shows("1 pending, 1 gateway");
    let other = Setup::demo().start_in(gate.data.clone());
    view.shows("1 pending, 2 gateways");
    view.press_until("d", "reason: _");
    view.type_text("no");
    view.press(&["Enter"]);
    view.shows("denied: ");
    until("both gateways know of the denial", SOON, || {
        gate.inbox().is_empty().then_some(())
    });
    drop(other);
}
