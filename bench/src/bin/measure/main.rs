//! Measures our server beside others and beside the bare limit, and checks every answer.
//!
//! `measure [--write PAGE] [--only WORD] [--count]` measures all workloads, or those whose name holds the word, and writes the
//! page; with `--count` without the clock, which says little where others work on the same machine.
//! `measure count WORKLOAD PEER` counts the instructions of one call; `measure time WORKLOAD PEER` says the calls/s;
//! `measure cold PEER` how long a start takes, and `measure idle PEER` what a session and a stream take up.

mod bad;
mod count;
mod http;
mod load;
mod page;
mod peer;
mod size;
mod stdio;
mod wire;
mod workloads;

use load::workload;
use page::{Row, Size};
use peer::{PEERS, Peer};
use workloads::WORKLOADS;

/// Rounds of a timing; each has all peers, forwards and then backwards.
const ROUNDS: usize = 5;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["count", load, peer] => {
            let (load, peer) = (workload(load), named(peer));
            println!(
                "{:.0?} instructions a call",
                count::instructions(load, peer)
            );
        }
        ["time", load, peer] => {
            let (load, peer) = (workload(load), named(peer));
            println!("{:.0} calls/s", load::rate(load, peer));
        }
        ["cold", peer] => {
            let (list, call) = size::cold(named(peer));
            println!("{list:.2} ms to the first list, {call:.2} ms to the first call");
        }
        ["idle", peer] => {
            let (session, stream) = size::idle(named(peer));
            println!("{session:.0} bytes a session, {stream:.0} bytes a stream");
        }
        _ => all(),
    }
}

fn named(name: &str) -> &'static Peer {
    let known = PEERS.iter().find(|peer| peer.name == name);
    known.unwrap_or_else(|| panic!("a peer: {:?}", PEERS.map(|peer| peer.name)))
}

fn all() {
    let only = toolgate_bench::word("--only").unwrap_or_default();
    let clock = !std::env::args().any(|word| word == "--count");
    let mut rows = Vec::new();
    for load in WORKLOADS.iter().filter(|load| load.name.contains(&only)) {
        let peers: Vec<&Peer> = PEERS
            .iter()
            .filter(|peer| peer.takes(load) && (clock || !peer.audit))
            .collect();
        let timed = match clock {
            true => timed(load, &peers),
            false => vec![Vec::new(); peers.len()],
        };
        for (peer, rates) in peers.iter().zip(&timed) {
            let row = Row {
                load,
                peer: peer.name,
                rates: rates.clone(),
                // Within a round, so that a busy neighbour slows both.
                ratios: rates
                    .iter()
                    .zip(&timed[0])
                    .map(|(own, bare)| own / bare)
                    .collect(),
                instructions: count::instructions(load, peer),
                system_calls: (clock && peer.script.is_none())
                    .then(|| count::system_calls(load, peer)),
            };
            println!("{}", row.line());
            rows.push(row);
        }
    }
    let sizes = match only.is_empty() {
        true => sizes(clock),
        false => Vec::new(),
    };
    if let Some(path) = toolgate_bench::word("--write") {
        page::write(&path, &rows, &sizes).expect("the page");
    }
}

/// The calls/s of each round, by peer.
fn timed(load: &load::Load, peers: &[&Peer]) -> Vec<Vec<f64>> {
    let mut timed = vec![Vec::new(); peers.len()];
    for round in 0..ROUNDS {
        for step in 0..peers.len() {
            let at = if round % 2 == 0 {
                step
            } else {
                peers.len() - 1 - step
            };
            timed[at].push(load::rate(load, peers[at]));
        }
    }
    timed
}

/// Starts, and what stands idle.
fn sizes(clock: bool) -> Vec<Size> {
    let sizes = PEERS
        .iter()
        .filter(|p| !p.audit && p.script.is_none())
        .map(|peer| Size {
            peer: peer.name,
            cold: clock.then(|| size::cold(peer)),
            idle: peer.ours.then(|| size::idle(peer)),
        });
    let sizes: Vec<Size> = sizes.collect();
    sizes.iter().for_each(|size| println!("{}", size.line()));
    sizes
}
