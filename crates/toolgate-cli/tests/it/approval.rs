//! A real client asks a real server to write, and a person decides in a real browser.

use crate::help::{
    Client, Gate, Modern, Script, Setup, TempDir, answer_of, browser, output, real, shot, toolgate,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The filesystem server of npm behind the gate: reading is allowed, the rest is asked about.
fn files(real: &Path, folder: &Path) -> Setup {
    let server =
        real.join("node/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
    Setup::config(format!(
        "[server.files]\ncommand = [\"node\", {server:?}, {folder:?}]\n\n\
         [[rule]]\ntools = [\"files.read_*\", \"files.list_*\"]\naction = \"allow\"\n"
    ))
}

struct Scene {
    gate: Gate,
    client: Script,
    file: PathBuf,
    _notes: TempDir,
}

/// The Python client, which declares no elicitation, has asked for `write_file` and waits.
fn asked_to_write(real: &Path) -> Scene {
    let notes = TempDir::new("notes");
    let folder = notes.path().canonicalize().unwrap();
    let file = folder.join("fresh.txt");
    let gate = files(real, &folder).start();
    let arguments = json!({"path": file, "content": "written by the model\n"});
    let job = json!({"http": gate.endpoint, "elicit": null, "steps": [
        {"do": "list"},
        {"do": "call", "name": "files_write_file", "arguments": arguments, "timeout_ms": 120_000},
    ]});
    let mut client = Client::Python.start(real, &job);
    let tools = client.event("tools");
    assert!(
        tools["names"]
            .as_array()
            .unwrap()
            .contains(&json!("files_write_file")),
        "{tools}"
    );
    gate.pending();
    let held = client.event("progress");
    let message = held["message"].as_str().unwrap();
    assert!(message.contains("waiting for a person"), "{held}");
    Scene {
        gate,
        client,
        file,
        _notes: notes,
    }
}

fn decide(scene: &Scene, real: &Path, picture: &str, decision: Value) -> Script {
    let steps = json!([
        {"do": "pending", "holds": "fresh.txt"},
        {"do": "shot", "path": shot(picture)},
        {"do": "reload"},
        {"do": "pending", "holds": "fresh.txt"},
        {"do": "wait"},
        decision,
    ]);
    let mut person = Script::browser(real, &scene.gate.console(), steps);
    let card = person.event("pending");
    let text = card["text"].as_str().unwrap();
    assert!(
        text.contains("written by the model"),
        "the person sees all arguments: {text}"
    );
    person.event("waiting");
    assert!(
        !scene.file.exists(),
        "nothing is written while a person thinks"
    );
    person.go_on();
    person.event("done");
    person
}

/// Holds: TOOL-46
#[test]
fn a_file_is_written_only_after_a_person_approved_in_the_browser() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let mut scene = asked_to_write(&real);
    decide(&scene, &real, "pending.png", json!({"do": "approve"}));
    let result = scene.client.event("result");
    assert_eq!(result["is_error"], false, "{result}");
    assert_eq!(
        std::fs::read_to_string(&scene.file).unwrap(),
        "written by the model\n"
    );

    let records = scene.gate.audit();
    let told: Vec<&str> = records
        .iter()
        .filter(|r| r["name"] == "files_write_file" || r["ev"] == "approval")
        .filter_map(|r| r["ev"].as_str())
        .collect();
    let at = |ev: &str| {
        told.iter()
            .rposition(|e| *e == ev)
            .unwrap_or_else(|| panic!("no {ev} in {told:?}"))
    };
    assert!(
        at("approval") < at("call.end") && at("call.begin") < at("call.end"),
        "{told:?}"
    );
    let begin = records
        .iter()
        .find(|r| r["ev"] == "call.begin" && r["name"] == "files_write_file")
        .unwrap();
    assert!(
        begin["approval"]
            .as_str()
            .is_some_and(|id| id.starts_with("a-")),
        "{begin}"
    );
    assert!(scene.gate.cli(&["audit", "verify"]).contains("intact"));
}

/// Holds: TOOL-45
#[test]
fn a_denied_write_leaves_no_file_and_tells_the_model_why() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let mut scene = asked_to_write(&real);
    decide(
        &scene,
        &real,
        "denied.png",
        json!({"do": "deny", "reason": "use the drafts folder"}),
    );
    let result = scene.client.event("result");
    assert_eq!(result["is_error"], true, "{result}");
    assert!(
        result["text"]
            .as_str()
            .unwrap()
            .contains("use the drafts folder"),
        "{result}"
    );
    assert!(!scene.file.exists());
    let records = scene.gate.audit();
    assert!(
        !records
            .iter()
            .any(|r| r["ev"] == "call.begin" && r["name"] == "files_write_file")
    );
    assert!(
        records
            .iter()
            .any(|r| r["ev"] == "deny" && r["name"] == "files_write_file"),
        "{records:#?}"
    );
}

#[test]
fn the_terminal_approves_and_denies_as_the_console_does() {
    let gate = Setup::demo().start();
    let port = gate.port;
    let call = |name: &'static str| {
        let arguments = json!({"name": name, "text": "x"});
        std::thread::spawn(move || Modern::call(port, &json!(name), "demo_note", arguments))
    };
    let yes = call("yes");
    gate.cli(&["approve", &gate.pending()]);
    let answer = answer_of(&yes.join().unwrap(), &json!("yes"));
    assert_ne!(answer["result"]["isError"], true, "{answer}");
    let no = call("no");
    gate.cli(&["deny", &gate.pending(), "-m", "not on a Sunday"]);
    let answer = answer_of(&no.join().unwrap(), &json!("no"));
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert!(answer.to_string().contains("not on a Sunday"), "{answer}");
    assert!(gate.inbox().is_empty());
    assert!(!gate.run(&["approve", "a-no-such"]).status.success());
}

#[test]
fn a_remembered_approval_lets_the_tool_pass_until_it_is_withdrawn() {
    let data = std::sync::Arc::new(TempDir::new("grant"));
    let gate = Setup::demo().start_in(data.clone());
    let ask = |port: u16, text: &'static str| {
        let arguments = json!({"name": "n", "text": text});
        std::thread::spawn(move || Modern::call(port, &json!(1), "demo_note", arguments))
    };
    let first = ask(gate.port, "first");
    gate.cli(&["approve", &gate.pending(), "--remember"]);
    assert!(!first.join().unwrap().body.contains("isError\":true"));
    let other = ask(gate.port, "other arguments").join().unwrap();
    let answer = answer_of(&other, &json!(1));
    assert_ne!(answer["result"]["isError"], true, "{answer}");
    assert!(gate.inbox().is_empty());
    gate.stop();
    let gate = Setup::demo().start_in(data);
    let again = ask(gate.port, "after a restart").join().unwrap();
    assert!(!again.body.contains("isError\":true"), "{}", again.body);
    let list = gate.cli(&["grants", "list"]);
    assert!(list.contains("demo.note for"), "{list}");
    assert!(list.contains("used 2 times, last"), "{list}");
    gate.cli(&["grants", "revoke", "--all"]);
    assert_eq!(gate.cli(&["grants", "list"]), "");
    let again = ask(gate.port, "withdrawn");
    gate.cli(&["deny", &gate.pending(), "-m", "asked anew"]);
    assert!(again.join().unwrap().body.contains("asked anew"));
}

#[test]
fn one_flipped_byte_is_found_and_its_record_named() {
    let gate = Setup::demo().start();
    for id in 1..=3 {
        Modern::call(gate.port, &json!(id), "demo_add", json!({"a": id, "b": 1}));
    }
    assert!(gate.cli(&["audit", "verify"]).contains("intact"));
    let data = gate.stop();
    let state = data.path().join("state");
    let (file, text) = segment_with(&state, "\"ev\":\"call.begin\"");
    let line = text
        .lines()
        .find(|line| line.contains("\"ev\":\"call.begin\""))
        .unwrap();
    let seq = serde_json::from_str::<Value>(line).unwrap()["seq"].to_string();
    let at = text.find(line).unwrap() + line.find("demo_add").or(line.find("demo")).unwrap();
    let mut bytes = text.into_bytes();
    bytes[at] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let out = output(toolgate().args(["audit", "verify", "--data"]).arg(&state));
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    );
    assert_eq!(out.status.code(), Some(1), "{said}");
    let named = said
        .split(|c: char| !c.is_ascii_digit())
        .any(|number| number == seq);
    assert!(named, "record {seq} is named: {said}");
}

/// The file of the audit log that holds this text.
fn segment_with(folder: &Path, text: &str) -> (PathBuf, String) {
    let mut look = vec![folder.to_path_buf()];
    while let Some(folder) = look.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            if entry.file_type().unwrap().is_dir() {
                look.push(path);
            } else if let Ok(found) = std::fs::read_to_string(&path)
                && found.contains(text)
            {
                return (path, found);
            }
        }
    }
    panic!("no file below {folder:?} holds {text}")
}
