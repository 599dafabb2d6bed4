//! Where and how `serve` prints its events: JSON, only failures, a log file, and a closed or slow terminal.

use crate::{
    event_lines::with_crashing_server,
    help::{LONG, Modern, SOON, Setup, TempDir, kill_hard, lines, toolgate, until},
};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Child, Stdio},
    sync::mpsc::Receiver,
};

/// A gateway whose standard error the test reads itself.
struct RawGateway {
    process: RunningProcess,
    lines: Receiver<String>,
}

impl RawGateway {
    fn start(folder: &Path, config: &str, options: &[&str]) -> RawGateway {
        let file = folder.join("toolgate.toml");
        std::fs::write(&file, config).unwrap();
        let mut start = toolgate();
        start
            .args(["serve", "--listen", "127.0.0.1:0", "--config"])
            .arg(&file)
            .arg("--data")
            .arg(folder.join("state"))
            .args(options);
        let mut child = start
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = lines(child.stderr.take().unwrap());
        RawGateway {
            process: RunningProcess(child),
            lines,
        }
    }

    /// Returns all lines up to the first that the check accepts.
    fn until_line(&self, is_last: impl Fn(&str) -> bool) -> Vec<String> {
        let mut all = Vec::new();
        loop {
            let line = self.lines.recv_timeout(LONG);
            let line = line.unwrap_or_else(|e| panic!("{e} after {all:#?}"));
            all.push(line.clone());
            if is_last(&line) {
                return all;
            }
        }
    }
}

/// A process that ends with the value, also if the test fails.
struct RunningProcess(Child);

impl Drop for RunningProcess {
    fn drop(&mut self) {
        kill_hard(&mut self.0);
    }
}

#[test]
fn json_lines_are_all_that_standard_error_gets() {
    let folder = TempDir::new("json");
    let options = ["--log-format", "json"];
    let gate = RawGateway::start(folder.path(), &with_crashing_server(), &options);
    let lines = gate.until_line(|line| line.contains("\"server.restarting\""));
    let events: Vec<Value> = lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect();
    for event in &events {
        for key in ["time", "level", "event", "message"] {
            assert!(event[key].is_string(), "{key}: {event}");
        }
    }
    let find = |name: &str| events.iter().find(|event| event["event"] == name).unwrap();
    let started = find("gateway.started");
    assert!(started["endpoint"].as_str().unwrap().ends_with("/mcp"));
    assert!(
        !started.to_string().contains("token="),
        "no sign-in link: {started}"
    );
    let failed = find("server.failed");
    assert_eq!(failed["server"], "bad");
    assert_eq!(failed["stderr"][0], "the folder is missing", "{failed}");
    assert!(failed["retry_milliseconds"].is_u64(), "{failed}");
}

#[test]
fn a_failed_start_is_a_json_line_too() {
    let folder = TempDir::new("json");
    std::fs::write(folder.path().join("state"), "a file").unwrap();
    let options = ["--log-format", "json"];
    let gate = RawGateway::start(folder.path(), &with_crashing_server(), &options);
    let lines = gate.until_line(|line| line.contains("gateway.failed"));
    let all: Vec<Value> = lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let message = all.last().unwrap()["message"].as_str().unwrap().to_owned();
    assert!(
        message.contains("cannot use the data directory"),
        "{message}"
    );
    assert!(gate.lines.recv_timeout(SOON).is_err(), "it is printed once");
}

#[test]
fn an_invalid_config_is_a_json_line_with_exit_code_2() {
    let folder = TempDir::new("json");
    let options = ["--log-format", "json"];
    let mut gate = RawGateway::start(folder.path(), "nonsense = 1\n", &options);
    let lines = gate.until_line(|line| line.contains("gateway.failed"));
    let failed: Value = serde_json::from_str(&lines[0]).unwrap();
    let message = failed["message"].as_str().unwrap();
    assert!(message.contains("toolgate.toml:1:1"), "{message}");
    assert_eq!(gate.process.0.wait().unwrap().code(), Some(2));
}

/// Only Linux has pipes of a chosen size.
#[cfg(target_os = "linux")]
#[test]
fn a_terminal_that_nobody_reads_delays_no_call() {
    let folder = TempDir::new("slow");
    let config = folder.write(
        "toolgate.toml",
        &format!("[limits]\nrate = \"1000000/s\"\n{}", with_crashing_server()),
    );
    let (read, write) = std::io::pipe().unwrap();
    // The smallest pipe: a few lines fill it.
    rustix::pipe::fcntl_setpipe_size(&write, 4096).unwrap();
    let mut start = toolgate();
    start.args(["serve", "-v", "--listen", "127.0.0.1:0", "--config"]);
    start
        .arg(config)
        .arg("--data")
        .arg(folder.path().join("state"));
    let child = start.stdout(Stdio::null()).stderr(write).spawn().unwrap();
    let _process = RunningProcess(child);
    drop(start);
    let mut stderr = BufReader::new(read);
    let mut line = String::new();
    while !line.starts_with("MCP endpoint") {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0);
    }
    let port = line.split(':').nth(2).unwrap().split('/').next().unwrap();
    let port: u16 = port.parse().unwrap();
    let since = std::time::Instant::now();
    for _ in 0..1300 {
        let answer = Modern::call(port, &json!(1), "demo_no_such", json!({}));
        assert!(answer.body.contains("nknown tool"), "{}", answer.body);
    }
    assert!(since.elapsed() < LONG, "{:?}", since.elapsed());
    // Once somebody reads again, the gateway says how much was lost.
    let text = "not written, because the terminal or the log file was too slow";
    let mut lines = stderr.lines().map_while(Result::ok);
    let dropped = lines.any(|line| line.contains(text));
    assert!(dropped);
}

#[test]
fn quiet_prints_failures_only() {
    let folder = TempDir::new("quiet");
    let gate = RawGateway::start(folder.path(), &with_crashing_server(), &["--quiet"]);
    let mut failures = 0;
    for line in gate.until_line(|line| line.contains("| the folder is missing")) {
        assert!(
            line.contains("is not running") || line.contains("  | "),
            "{line}"
        );
        failures += 1;
    }
    assert_eq!(failures, 2);
}

#[test]
fn the_log_file_is_private_and_opened_again_when_rotated() {
    let folder = TempDir::new("file");
    let file = folder.path().join("toolgate.log");
    let options = ["--log-format", "json", "--log-file", file.to_str().unwrap()];
    let gate = Setup::config(with_crashing_server())
        .options(&options)
        .start();
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    until("the start is logged", SOON, || {
        read(&file).contains("gateway.started").then_some(())
    });
    let mode = file.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let old = folder.path().join("toolgate.log.old");
    std::fs::rename(&file, &old).unwrap();
    until("a line in the new file", LONG, || {
        read(&file).contains("\"event\"").then_some(())
    });
    let both = read(&old) + &read(&file);
    both.lines()
        .for_each(|line| drop(serde_json::from_str::<Value>(line).expect(line)));
    let said = gate.said().join("\n");
    assert!(
        said.contains("MCP endpoint") && !said.contains("is not running"),
        "{said}"
    );
    gate.stop();
}

#[test]
fn a_log_file_that_cannot_be_opened_stops_the_start() {
    let out = crate::help::output(toolgate().args(["serve", "--log-file", "/nowhere/x.log"]));
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(
        said.contains("cannot open the log file /nowhere/x.log"),
        "{said}"
    );
}

#[test]
fn a_gateway_goes_on_when_its_terminal_is_gone() {
    let folder = TempDir::new("closed");
    let config = folder.write("toolgate.toml", &with_crashing_server());
    let mut start = toolgate();
    start.args(["serve", "-v", "--listen", "127.0.0.1:0", "--config"]);
    start
        .arg(config)
        .arg("--data")
        .arg(folder.path().join("state"));
    let mut child = start
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut process = RunningProcess(child);
    let mut line = String::new();
    while !line.starts_with("MCP endpoint") {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0);
    }
    let port = line.split(':').nth(2).unwrap().split('/').next().unwrap();
    let port: u16 = port.parse().unwrap();
    drop(stderr);
    for id in 0..20 {
        let answer = Modern::call(port, &json!(id), "demo_add", json!({"a": id, "b": 1}));
        assert!(answer.body.contains("sum"), "{}", answer.body);
    }
    assert!(process.0.try_wait().unwrap().is_none(), "it still runs");
}
