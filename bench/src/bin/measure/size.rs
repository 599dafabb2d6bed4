//! Memory of an idle server, and its start time.

use crate::{
    http::Http,
    load::{self, Load},
    peer::Peer,
    wire::Wire,
};
use std::{fs, time::Instant};

/// Sessions, or streams, of which the memory is taken.
const MANY: usize = 400;

/// Bytes that the process takes up in memory.
fn resident(pid: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.expect("its size") * 1024.0
}

/// Bytes of an idle session, and of an idle stream.
pub fn idle(peer: &Peer) -> (f64, f64) {
    let load = load::workload("http");
    let each = |open: &mut dyn FnMut(&mut Http)| {
        let mut http = Http::start(peer.command(load, 1));
        // What the first ones make stays.
        (0..20).for_each(|_| open(&mut http));
        let before = resident(http.pid());
        (0..MANY).for_each(|_| open(&mut http));
        let each = (resident(http.pid()) - before) / MANY as f64;
        http.end();
        each
    };
    let session = each(&mut Http::open);
    let mut streams = Vec::new();
    let stream = each(&mut |http| streams.push(http.listen()));
    (session, stream)
}

/// Milliseconds from the start of a server over stdio to its first list, and to the first call after it.
pub fn cold(peer: &Peer) -> (f64, f64) {
    let load: &Load = load::workload("echo");
    let (mut list, mut call) = (Vec::new(), Vec::new());
    for _ in 0..21 {
        let begin = Instant::now();
        let mut wire = Wire::start(load, peer.command(load, 1));
        let mut line = String::new();
        for (message, took) in [
            (load.message(1, "tools/list", ""), &mut list),
            (load.request(1), &mut call),
        ] {
            wire.say(&message);
            wire.flush();
            wire.hear(&mut line);
            took.push(begin.elapsed().as_secs_f64() * 1e3);
        }
        wire.end();
    }
    let median = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    (median(list), median(call))
}
