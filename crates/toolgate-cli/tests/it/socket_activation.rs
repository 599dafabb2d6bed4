//! Socket activation and notifications of systemd, with its own tool.

use crate::help::{LONG, Modern, TempDir, command, kill_hard};
use serde_json::json;
use std::{net::TcpListener, os::unix::net::UnixDatagram, process::Stdio};

/// The program of systemd that opens a socket and starts another program on it.
const ACTIVATOR: &str = "systemd-socket-activate";

#[test]
fn serves_on_a_socket_that_systemd_opened() {
    if command(ACTIVATOR).arg("--version").output().is_err() {
        println!("skipped: {ACTIVATOR} is missing");
        return;
    }
    let data = TempDir::new("activated");
    let notified = UnixDatagram::bind(data.file("notify")).unwrap();
    notified.set_read_timeout(Some(LONG)).unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let mut start = command(ACTIVATOR);
    start
        .args(["--listen", &format!("127.0.0.1:{port}"), "--setenv"])
        .arg(format!("NOTIFY_SOCKET={}", data.file("notify").display()))
        .args([
            env!("CARGO_BIN_EXE_toolgate"),
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--data",
        ])
        .arg(data.file("state"))
        .stderr(Stdio::piped())
        .stdout(Stdio::null());
    let mut child = start.spawn().unwrap();
    // It says when it listens; the first connection starts the gateway.
    let mut said = String::new();
    let stderr = child.stderr.take().unwrap();
    let mut lines = std::io::BufReader::new(stderr);
    std::io::BufRead::read_line(&mut lines, &mut said).unwrap();
    let drained = std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
    let answer = Modern::call(port, &json!(1), "demo_add", json!({"a": 1, "b": 2}));
    let mut state = [0; 256];
    let read = notified.recv(&mut state).unwrap();
    let ready = String::from_utf8_lossy(&state[..read]).into_owned();
    kill_hard(&mut child);
    let _ = drained.join();
    assert_eq!(answer.status, 200, "{said}: {answer:?}");
    assert!(ready.contains("READY=1"), "{ready}");
}
