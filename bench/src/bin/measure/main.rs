//! Measures our server beside others and beside the bare limit, and checks every answer.
//!
//! `measure [--write PAGE] [--only WORD]` measures all workloads, or those whose name holds the word, and writes the page.
//! `measure count WORKLOAD PEER` counts the instructions of one call; `measure time WORKLOAD PEER` says the calls/s.

mod bad;
mod count;
mod load;
mod page;
mod peer;
mod stdio;

use load::{Load, WORKLOADS};
use page::Row;
use peer::{PEERS, Peer};

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
        _ => all(),
    }
}

fn workload(name: &str) -> &'static Load {
    let known = WORKLOADS.iter().find(|load| load.name == name);
    known.unwrap_or_else(|| panic!("a workload: {:?}", WORKLOADS.map(|load| load.name)))
}

fn named(name: &str) -> &'static Peer {
    let known = PEERS.iter().find(|peer| peer.name == name);
    known.unwrap_or_else(|| panic!("a peer: {:?}", PEERS.map(|peer| peer.name)))
}

fn all() {
    let only = toolgate_bench::word("--only").unwrap_or_default();
    let mut rows = Vec::new();
    for load in WORKLOADS.iter().filter(|load| load.name.contains(&only)) {
        let peers: Vec<&Peer> = PEERS.iter().filter(|peer| peer.takes(load)).collect();
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
                system_calls: count::system_calls(load, peer),
            };
            println!("{}", row.line());
            rows.push(row);
        }
    }
    if let Some(path) = toolgate_bench::word("--write") {
        page::write(&path, &rows).expect("the page");
    }
}
