//! What one call costs, apart from the clock: instructions by callgrind, system calls by strace.

use crate::{
    client,
    load::{self, Load},
    peer::Peer,
    wire::Wire,
};
use std::{
    fs,
    path::PathBuf,
    process::{Command, id},
};

/// Instructions of the server, or of the client, in user space, a call: what a run of twice as many takes more. `None` where valgrind cannot
/// run it: it maps no vDSO, and the clock of the audit log looks for it. Of a script the count would be its interpreter's.
pub fn instructions(load: &Load, peer: &Peer) -> Option<f64> {
    if peer.audit || peer.script.is_some() {
        return None;
    }
    let file = file("callgrind");
    let total = |calls: u64| {
        let mut wrap = Command::new("valgrind");
        wrap.args(["--tool=callgrind", "--quiet"]);
        wrap.arg(format!("--callgrind-out-file={}", file.display()));
        run(load, peer, calls, wrap);
        let text = fs::read_to_string(&file).expect("callgrind wrote its file");
        let line = text.lines().find_map(|line| line.strip_prefix("totals: "));
        line.and_then(|n| n.trim().parse::<f64>().ok())
            .expect("a total")
    };
    // Where starts differ by more than the calls take, it is no figure.
    Some(more(load, total, &file)).filter(|each| *each > 0.0)
}

/// System calls of the server, a call.
pub fn system_calls(load: &Load, peer: &Peer) -> f64 {
    let file = file("strace");
    let total = |calls: u64| {
        let mut wrap = Command::new("strace");
        wrap.args(["-f", "-c", "-U", "calls,name", "-o"]).arg(&file);
        run(load, peer, calls, wrap);
        let text = fs::read_to_string(&file).expect("strace wrote its file");
        let line = text.lines().find(|line| line.trim_end().ends_with("total"));
        let count = line.and_then(|line| line.split_whitespace().next());
        count.and_then(|n| n.parse::<f64>().ok()).expect("a total")
    };
    more(load, total, &file).max(0.0)
}

fn more(load: &Load, total: impl Fn(u64) -> f64, file: &PathBuf) -> f64 {
    let half = load.counted / 2;
    let each = (total(half * 2) - total(half)) / half as f64;
    let _ = fs::remove_file(file);
    each
}

/// Puts the words before the command of the peer.
fn run(load: &Load, peer: &Peer, calls: u64, mut wrap: Command) {
    if load.client {
        client::run(load, peer, calls, Some(wrap), None);
        return;
    }
    let command = peer.command(load, calls);
    wrap.arg(command.get_program()).args(command.get_args());
    let mut pipes = Wire::start(load, wrap);
    load::run(load, peer, calls, &mut pipes);
    pipes.end();
}

fn file(tool: &str) -> PathBuf {
    std::env::temp_dir().join(format!("toolgate-bench-{}.{tool}", id()))
}
