//! The stderr of servers: stored in files, printed by `toolgate logs`, and part of every message about a failure.

use crate::help::{Gate, LONG, Setup, kill_hard, lines, output, toolgate, until};
use std::{os::unix::fs::PermissionsExt, process::Stdio};

/// A server that writes to stderr and exits.
const CRASHING: &str =
    "[server.bad]\ncommand = [\"sh\", \"-c\", \"echo the folder is missing >&2; exit 3\"]\n";

/// The demo server, which writes these shell words to stderr first.
fn talking(words: &str) -> String {
    let program = env!("CARGO_BIN_EXE_toolgate");
    let script = format!("{words}; exec {program} demo-server");
    format!("[server.talk]\ncommand = [\"sh\", \"-c\", {script:?}]\n")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn is_down(gate: &Gate) {
    until("the server has failed", LONG, || {
        let said = gate.said();
        said.iter()
            .any(|line| line.contains("is not running"))
            .then_some(())
    });
}

#[test]
fn logs_prints_the_stderr_also_after_a_crash_of_the_gateway() {
    let secret = format!("ghp_{}", "a1B2".repeat(9));
    let words = format!("printf 'one\\ntwo \\033[31mred\\n{secret}\\n' >&2");
    let gate = Setup::config(talking(&words)).start();
    let logs = || text(&gate.run(&["logs", "talk"]).stdout);
    until("the lines are stored", LONG, || {
        (logs().lines().count() == 3).then_some(())
    });
    let all = logs();
    assert!(
        all.lines().all(|line| line[..11].ends_with('T')),
        "a time: {all}"
    );
    assert!(
        all.contains("Z one\n") && all.contains("Z two red\n"),
        "{all}"
    );
    assert!(!all.contains(&secret) && !all.contains('\u{1b}'), "{all}");
    assert_eq!(
        text(&gate.run(&["logs", "talk", "-n", "1"]).stdout)
            .lines()
            .count(),
        1
    );
    let data = gate.kill();
    let state = data.path().join("state");
    let mode = state
        .join("logs/talk.log")
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut after = toolgate();
    let after = output(after.args(["logs", "talk", "--data"]).arg(state));
    assert_eq!(text(&after.stdout), all);
}

#[test]
fn logs_follows_a_server() {
    let gate = Setup::config(talking("(sleep 1; echo later >&2) & echo first >&2")).start();
    until("the first line", LONG, || {
        text(&gate.run(&["logs", "talk"]).stdout)
            .contains("first")
            .then_some(())
    });
    let mut follow = toolgate();
    follow
        .args(["logs", "talk", "-f", "--data"])
        .arg(gate.data.path().join("state"));
    let mut child = follow
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = lines(child.stdout.take().unwrap());
    let next = || lines.recv_timeout(LONG).unwrap();
    assert!(next().ends_with(" first"));
    assert!(next().ends_with(" later"));
    kill_hard(&mut child);
}

#[test]
fn logs_of_an_unknown_server_names_the_nearest() {
    let gate = Setup::config(CRASHING).start();
    is_down(&gate);
    let unknown = gate.run(&["logs", "badd"]);
    assert_eq!(unknown.status.code(), Some(1));
    let said = text(&unknown.stderr);
    assert!(
        said.contains("there is no server \"badd\"; did you mean \"bad\"?"),
        "{said}"
    );
}

#[test]
fn the_stored_stderr_is_bounded() {
    let lines = "i=0; while [ $i -lt 400 ]; do echo \"line $i xxxxxxxxxxxxxxxxxxxxxxxxxxx\" >&2; i=$((i+1)); done";
    let config = format!("[limits]\nstderr_bytes = 4096\n{}", talking(lines));
    let gate = Setup::config(config).start();
    let all = until("the last line", LONG, || {
        let all = text(&gate.run(&["logs", "talk", "-n", "1000"]).stdout);
        all.contains("line 399 ").then_some(all)
    });
    assert!(
        !all.contains("line 0 ") && all.contains("line 390 "),
        "{all}"
    );
    let folder = gate.data.path().join("state/logs");
    let bytes: u64 = folder
        .read_dir()
        .unwrap()
        .map(|f| f.unwrap().metadata().unwrap().len())
        .sum();
    assert!(bytes <= 2 * (4096 + 200), "{bytes}");
}

#[test]
fn every_message_about_a_failure_has_the_last_stderr_lines() {
    let gate = Setup::config(CRASHING).start();
    is_down(&gate);
    let status = gate.run(&["status"]);
    let said = text(&status.stdout);
    let lines = said.matches("| the folder is missing").count();
    assert_eq!(lines, 1, "those of the last run: {said}");
    assert_eq!(status.status.code(), Some(1), "a server is down: {said}");
    let tools = text(&gate.run(&["tools"]).stderr);
    assert!(
        tools.contains("the server bad ") && tools.contains("\n  | the folder is missing\n"),
        "{tools}"
    );
    let mut check = toolgate();
    check
        .args(["check", "--servers", "--config"])
        .arg(gate.data.file("toolgate.toml"));
    let check = output(check.arg("--data").arg(gate.data.path().join("check")));
    let said = text(&check.stderr);
    assert_eq!(check.status.code(), Some(1));
    assert!(
        said.contains("the server bad is unavailable: ")
            && said.contains("  | the folder is missing"),
        "{said}"
    );
}

#[test]
fn status_succeeds_while_a_server_only_starts() {
    let gate = Setup::config("[server.slow]\ncommand = [\"sleep\", \"100\"]\n").start();
    let status = gate.run(&["status"]);
    let said = text(&status.stdout);
    assert!(said.contains("slow starting"), "{said}");
    assert_eq!(status.status.code(), Some(0), "{said}");
}
