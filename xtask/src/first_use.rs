//! The first thing a newcomer does, in an environment that has nothing else in it.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::run::{command, target};

/// Runs `cargo run` with nothing but `PATH`, `RUSTUP_HOME`, `CARGO_HOME` and an empty `HOME`, and waits until the
/// demo server is offered. In the profile of the tests, so that nothing is built twice.
pub(crate) fn starts_with_an_empty_home() -> Result<(), String> {
    let home = target().join("interop/empty-home");
    let _ = fs::remove_dir_all(&home);
    fs::create_dir_all(&home)
        .map_err(|error| format!("cannot make {}: {error}", home.display()))?;
    let mut run = command("cargo");
    run.args(["run", "--locked", "--", "serve", "--listen", "127.0.0.1:0"]);
    run.env_clear()
        .env("HOME", &home)
        .env("CARGO_TARGET_DIR", target());
    run.env("PATH", env::var_os("PATH").unwrap_or_default());
    run.env("RUSTUP_HOME", tool_home("RUSTUP_HOME", ".rustup"))
        .env("CARGO_HOME", tool_home("CARGO_HOME", ".cargo"));
    let mut child = run
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cargo did not start: {error}"))?;
    let outcome = wait_for_endpoint(&mut child);
    let _ = child.kill();
    let _ = child.wait();
    outcome
}

/// Directory of rustup or cargo: that of an environment variable, or the default in the home directory.
pub(crate) fn tool_home(name: &str, folder: &str) -> PathBuf {
    let home = PathBuf::from(env::var_os("HOME").unwrap_or_default());
    env::var_os(name).map_or_else(|| home.join(folder), PathBuf::from)
}

fn wait_for_endpoint(child: &mut Child) -> Result<(), String> {
    let Some(stderr) = child.stderr.take() else {
        return Err("no standard error".to_owned());
    };
    let (send, lines) = mpsc::sync_channel(1000);
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    // Long enough for a build that shares nothing with the one before.
    while let Ok(line) = lines.recv_timeout(Duration::from_secs(1200)) {
        println!("   {line}");
        if line.starts_with("MCP endpoint") {
            return Ok(());
        }
    }
    Err(
        "the gateway ended, or said nothing for 20 minutes, before it named its endpoint"
            .to_owned(),
    )
}
