//! A config that names its own gateway, and gateways behind gateways.

use crate::help::{Family, LONG, Modern, Setup, TempDir, output, toolgate, until};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;

const PROGRAM: &str = env!("CARGO_BIN_EXE_toolgate");

/// A host's file with these servers.
fn host(data: &TempDir, servers: Value) -> PathBuf {
    let file = data.write("host.json", &json!({"mcpServers": servers}).to_string());
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    file
}

fn entry(program: &str, config: &Path) -> Value {
    json!({"command": program, "args": ["--stdio", "--config", config]})
}

fn start(data: &Arc<TempDir>, config: &Path) -> crate::help::Gate {
    let text = fs::read_to_string(config).unwrap();
    Setup::config(text).start_in(data.clone())
}

fn tools(port: u16) -> Vec<String> {
    let answer = Modern::ask(
        port,
        None,
        &Modern::body(&json!(1), "tools/list", json!({})),
    );
    let all = answer["result"]["tools"].as_array().expect("a list").iter();
    all.map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn an_entry_for_the_gateway_itself_is_left_out_with_a_note() {
    let data = Arc::new(TempDir::new("own"));
    let file = data.file("toolgate.toml");
    let link = data.file("gate");
    std::os::unix::fs::symlink(PROGRAM, &link).unwrap();
    let config = host(
        &data,
        json!({
            "demo": {"command": PROGRAM, "args": ["demo-server"]},
            "toolgate": entry(PROGRAM, &file),
            "linked": entry(link.to_str().unwrap(), &file),
            "wrapped": {"command": "env", "args": ["A=b", PROGRAM, "--stdio", "--config", file]},
        }),
    );
    let gate = start(&data, &config);
    until("the demo is listed", LONG, || {
        tools(gate.port)
            .contains(&"demo_add".to_owned())
            .then_some(())
    });
    let servers = gate.state()["servers"].as_array().unwrap().len();
    assert_eq!(servers, 1);
    for id in ["toolgate", "linked", "wrapped"] {
        let noted = gate
            .said()
            .iter()
            .any(|line| line.contains(&format!("\"{id}\" is skipped")));
        assert!(noted, "{id}: {:?}", gate.said());
    }
    assert!(Family::of(gate.pid()).len() <= 4, "no gateway behind it");
    let check = check_config(&file, &data);
    let said = String::from_utf8_lossy(&check.stderr).into_owned();
    assert!(
        check.status.success() && said.contains("\"toolgate\" is skipped"),
        "{said}"
    );
}

fn check_config(file: &Path, data: &TempDir) -> Output {
    output(
        toolgate()
            .arg("check")
            .arg("--config")
            .arg(file)
            .arg("--data")
            .arg(data.file("state")),
    )
}

#[test]
fn a_config_with_nothing_but_itself_is_refused() {
    let data = TempDir::new("alone");
    let file = host(&data, json!({}));
    let file = host(&data, json!({"toolgate": entry(PROGRAM, &file)}));
    let out = check_config(&file, &data);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.contains("toolgate itself"), "{said}");
}

/// The entry is a script, which no look at the config sees through: the gateway that it starts refuses to run.
#[test]
fn a_gateway_that_is_a_server_of_itself_does_not_start() {
    let data = Arc::new(TempDir::new("hidden"));
    let (file, log) = (data.file("toolgate.toml"), data.file("starts"));
    let script = data.write(
        "script",
        &format!("#!/bin/sh\necho x >> {log:?}\nexec {PROGRAM:?} --stdio --config {file:?} --data {:?}\n", data.file("inner")),
    );
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
    let config = format!(
        "[server.demo]\ncommand = [{PROGRAM:?}, \"demo-server\"]\n[server.loop]\ncommand = [{script:?}]\n"
    );
    let gate = Setup::config(config).start_in(data.clone());
    let why = until("it is refused", LONG, || {
        let state = gate.state();
        let server = state["servers"]
            .as_array()?
            .iter()
            .find(|s| s["id"] == "loop")?
            .clone();
        let lines = server["stderr"].as_array()?.iter();
        lines
            .filter_map(|line| line.as_str())
            .find(|line| line.contains("same config"))
            .map(str::to_owned)
    });
    assert!(why.contains("start itself endlessly"), "{why}");
    assert!(Family::of(gate.pid()).len() < 8, "nothing piles up");
    let starts = fs::read_to_string(log).unwrap().lines().count();
    assert!(starts < 20, "{starts} starts");
}

/// A gateway with another config may be a server, and `toolgate run` too.
#[test]
fn a_gateway_behind_a_gateway_with_another_config_runs() {
    let data = Arc::new(TempDir::new("nested"));
    let inner = data.write(
        "inner.toml",
        &format!("[server.demo]\ncommand = [{PROGRAM:?}, \"demo-server\"]\n"),
    );
    let state = |name: &str| data.file(name);
    let config = format!(
        "[server.inner]\ncommand = [{PROGRAM:?}, \"--stdio\", \"--config\", {inner:?}, \"--data\", {:?}]\n[server.single]\ncommand = [{PROGRAM:?}, \"run\", \"--stdio\", \"--data\", {:?}, \"--\", {PROGRAM:?}, \"demo-server\"]\n",
        state("one"),
        state("two")
    );
    let gate = Setup::config(config).start_in(data.clone());
    until("both are listed", LONG, || {
        let all = tools(gate.port);
        let has = |name: &str| all.iter().any(|tool| tool == name);
        (has("inner_demo_add") && has("single_add")).then_some(())
    });
}
