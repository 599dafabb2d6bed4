//! Helpers of the tests.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::unix::pipe;
use toolgate_guardian::{ChildProcess, Guardian, ShutdownSteps, SpawnCommand};

/// Generous: a machine under load is slow, and nothing waits so long when all is well.
pub(crate) const BOUND: Duration = Duration::from_secs(20);

/// Long enough that a step which should not be reached is seen to be taken.
pub(crate) const FOREVER: ShutdownSteps = ShutdownSteps {
    stdin_grace: Duration::from_secs(600),
    term_grace: Duration::from_secs(600),
};

/// So short that the last step is reached soon.
pub(crate) const SHORT: ShutdownSteps = ShutdownSteps {
    stdin_grace: Duration::from_millis(50),
    term_grace: Duration::from_millis(50),
};

/// Once its input ended the child is not in time, and SIGTERM shall be enough.
pub(crate) const TERM: ShutdownSteps = ShutdownSteps {
    stdin_grace: Duration::from_millis(50),
    term_grace: Duration::from_secs(600),
};

pub(crate) fn guardian() -> Guardian {
    let args = ["__guardian", "--exact", "--nocapture", "--test-threads=1"].map(OsStr::new);
    Guardian::start_with(&std::env::current_exe().unwrap(), &args).unwrap()
}

pub(crate) fn program(name: &str, args: &[&str]) -> SpawnCommand {
    SpawnCommand {
        program: name.into(),
        args: args.iter().map(OsString::from).collect(),
        env: toolgate_guardian::environment(&["PATH"], &[]),
        cwd: None,
    }
}

pub(crate) fn shell(script: &str) -> SpawnCommand {
    program("sh", &["-c", script])
}

pub(crate) async fn all(from: &mut Option<pipe::Receiver>) -> String {
    let mut text = String::new();
    let read = from.as_mut().unwrap().read_to_string(&mut text);
    tokio::time::timeout(BOUND, read).await.unwrap().unwrap();
    text
}

/// Reads lines from the child's output, so many, each a process number.
pub(crate) async fn numbers(child: &mut ChildProcess, count: usize) -> Vec<i32> {
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    let mut found = Vec::new();
    while found.len() < count {
        let line = tokio::time::timeout(BOUND, lines.next_line())
            .await
            .unwrap()
            .unwrap();
        found.push(line.expect("the child says more").trim().parse().unwrap());
    }
    found
}

/// Resolves a future of the guardian within the bound.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(BOUND, future)
        .await
        .expect("this should not take so long")
}

/// Looks again and again until it holds.
pub(crate) async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + BOUND;
    while !holds() {
        assert!(Instant::now() < end, "never came true: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Runs and is no zombie: whoever adopts the dead here may never reap them.
pub(crate) fn alive(pid: i32) -> bool {
    if Path::new("/proc/self/stat").exists() {
        return stat(pid).is_some_and(|(state, _)| state != "Z" && state != "X");
    }
    rustix::process::Pid::from_raw(pid)
        .is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

/// The state and the parent of a process, from `/proc`.
pub(crate) fn stat(pid: i32) -> Option<(String, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}

pub(crate) fn send(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}
