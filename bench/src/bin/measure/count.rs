//! Cost of one call besides time: instructions by callgrind, system calls by strace.

use crate::{
    client,
    load::{self, Load},
    peer::Peer,
    wire::Wire,
};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, id},
};

/// Instructions of the server, or of the client, in user space, a call. `None` where valgrind cannot run it: it maps no
/// vDSO, and the clock of the audit log looks for it. Of a script the count would be its interpreter's.
pub fn instructions(load: &Load, peer: &Peer) -> Option<f64> {
    if peer.audit || peer.script.is_some() {
        return None;
    }
    let file = file("callgrind");
    let each = match load.client {
        // It makes its calls by itself: what a run of twice as many takes more.
        true => more(load, |calls| {
            client::run(load, peer, calls, Some(callgrind(&file)), None);
            total(&file)
        }),
        // Callgrind is told when the calls begin and when they have ended.
        false => {
            let mut counted = 0.0;
            served(load, peer, load.counted, callgrind(&file), |pid, calls| {
                counted = between(&file, pid, calls);
            });
            counted / load.counted as f64
        }
    };
    let _ = fs::remove_file(&file);
    // Where starts differ by more than the calls take, it is no figure.
    Some(each).filter(|each| *each > 0.0)
}

/// A command that counts what stands behind it, into a file.
pub fn callgrind(file: &Path) -> Command {
    let mut wrap = Command::new("valgrind");
    wrap.args(["--tool=callgrind", "--quiet"]);
    wrap.arg(format!("--callgrind-out-file={}", file.display()));
    wrap.env("TOOLGATE_BENCH_COUNTED", "1");
    wrap
}

/// Returns the instructions of a process under callgrind while `calls` runs.
pub fn between(file: &Path, pid: u32, mut calls: impl FnMut()) -> f64 {
    tell("--zero", pid);
    calls();
    tell("--dump", pid);
    // Callgrind numbers its dumps.
    let mut dumps =
        (1..=MAX_DUMPS).map(|number| file.with_extension(format!("callgrind.{number}")));
    let dump = dumps.find(|dump| dump.exists()).expect("a dump");
    let counted = total(&dump);
    let _ = fs::remove_file(dump);
    counted
}

/// Most dumps of one process.
const MAX_DUMPS: u32 = 100;

/// Tells callgrind something about the process that it counts, and waits until it has done so.
fn tell(word: &str, pid: u32) {
    let mut control = Command::new("callgrind_control");
    let told = control.args([word, &pid.to_string()]).output();
    let told = told.expect("callgrind_control, of valgrind");
    assert!(told.status.success(), "{told:?}");
}

/// Returns the total that callgrind counted.
fn total(file: &Path) -> f64 {
    let text = fs::read_to_string(file).expect("callgrind wrote its file");
    let line = text.lines().find_map(|line| line.strip_prefix("totals: "));
    let total = line.and_then(|n| n.trim().parse().ok());
    total.expect("a total")
}

/// System calls of the server, a call.
pub fn system_calls(load: &Load, peer: &Peer) -> f64 {
    let file = file("strace");
    let total = |calls: u64| {
        let mut wrap = Command::new("strace");
        wrap.args(["-f", "-c", "-U", "calls,name", "-o"]).arg(&file);
        served(load, peer, calls, wrap, |_, calls| calls());
        let text = fs::read_to_string(&file).expect("strace wrote its file");
        let line = text.lines().find(|line| line.trim_end().ends_with("total"));
        let count = line.and_then(|line| line.split_whitespace().next());
        count.and_then(|n| n.parse::<f64>().ok()).expect("a total")
    };
    let each = more(load, total).max(0.0);
    let _ = fs::remove_file(&file);
    each
}

/// Returns the cost per call: the difference between a run of all calls and one of half of them.
fn more(load: &Load, total: impl Fn(u64) -> f64) -> f64 {
    let half = load.counted / 2;
    (total(half * 2) - total(half)) / half as f64
}

/// Starts the server with the words before its command, and makes the calls while `measure` looks at its process.
fn served(
    load: &Load,
    peer: &Peer,
    calls: u64,
    mut wrap: Command,
    measure: impl FnOnce(u32, &mut dyn FnMut()),
) {
    let command = peer.command(load, calls);
    wrap.arg(command.get_program()).args(command.get_args());
    let mut pipes = Wire::start(load, wrap);
    let pid = pipes.pid();
    load::run(load, peer, calls, &mut pipes, |calls| measure(pid, calls));
    pipes.end();
}

pub fn file(tool: &str) -> PathBuf {
    std::env::temp_dir().join(format!("toolgate-bench-{}.{tool}", id()))
}
