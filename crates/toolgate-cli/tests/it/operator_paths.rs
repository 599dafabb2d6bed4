//! Paths on the operator's disk are shown to the operator and to no caller.

use crate::help::{Modern, SOON, Setup, TempDir, answer_of, until};
use serde_json::json;

#[test]
fn an_error_of_the_state_names_its_path_to_the_operator_only() {
    let gate = Setup::demo().start();
    let state = gate.data.path().join("state");
    // Once a call passed, the definitions are pinned.
    let added = Modern::call(gate.port, &json!(0), "demo_add", json!({"a": 1, "b": 2}));
    assert!(added.body.contains('3'), "{}", added.body);
    std::fs::remove_dir_all(&state).unwrap();
    // Its approval cannot be kept.
    let arguments = json!({"name": "n", "text": "x"});
    let answer = Modern::call(gate.port, &json!(1), "demo_note", arguments);
    let answer = answer_of(&answer, &json!(1)).to_string();
    assert!(
        answer.contains("the operator has to repair them"),
        "{answer}"
    );
    let folder = gate.data.path().file_name().unwrap().to_str().unwrap();
    for path in [folder, "state.sqlite", "state.lock"] {
        assert!(!answer.contains(path), "{answer}");
    }
    until("the operator reads which file it is", SOON, || {
        let said = gate.said().join("\n");
        (said.contains(folder) && said.contains("/state/state.")).then_some(())
    });
}

#[test]
fn a_server_that_cannot_be_started_names_its_command_to_the_operator_only() {
    let folder = TempDir::new("no-program");
    let program = folder.path().join("none");
    let gate = Setup::config(format!("[server.s]\ncommand = [{program:?}]\n")).start();
    let status = until("the operator sees why", SOON, || {
        let status = gate.run(&["status"]);
        let text = String::from_utf8(status.stdout).unwrap();
        let shown = text.contains(program.to_str().unwrap());
        assert_eq!(shown, status.status.code() == Some(1), "it is down: {text}");
        shown.then_some(text)
    });
    let answer = Modern::call(gate.port, &json!(1), "s_t", json!({}));
    assert!(!answer.body.contains("none"), "{} {status}", answer.body);
}
