//! Measures our server and our client beside others and beside the bare limit, and checks every answer.
//!
//! `measure [--write PAGE] [--only WORD] [--count]` measures all workloads, or those whose name holds the word, and writes the
//! page; with `--count` without the clock, which says little where others work on the same machine; `--rounds N` times fewer
//! or more than five rounds.
//! `measure count WORKLOAD PEER` counts the instructions of one call and `measure system WORKLOAD PEER` its system calls;
//! `measure gateway` measures the gateway, with the same options; `measure gateway-time WORKLOAD GATEWAY` and
//! `measure gateway-count WORKLOAD GATEWAY` measure one row of it;
//! `measure gateway-overload [--write PAGE] [--only WORD]` measures the gateway under more load than it can serve.
//! `measure gateway-growth [--only WORD] [--write PAGE]` measures the gateway with more servers, tools, rules, sessions, audit
//! records or grants; `measure gateway-growth-count AXIS SIZE` and `measure gateway-growth-size AXIS SIZE` measure one row.
//! `measure gateway-train` makes calls of all kinds, so that an instrumented gateway counts what it executes.
//! `measure gateway-duties` measures what each check of a call costs; `measure gateway-duties-count CHECK BYTES` one row.
//! `measure budgets FILE` compares the instructions of a call with the budgets of the file; with `--write`, it writes them.
//! `measure time WORKLOAD PEER` says the calls/s; `measure cold PEER` how long a start takes, and `measure idle PEER` what a
//! session and a stream take up.

mod apart;
mod bad;
mod budget;
mod client;
mod count;
mod gateway;
mod http;
mod load;
mod page;
mod peer;
mod size;
mod stdio;
mod wanted;
mod whole;
mod wire;
mod workloads;

use gateway::{duties, growth};
use load::{Load, workload};
use peer::{PEERS, Peer};
use whole::Whole;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [what @ ("count" | "system" | "time"), load, peer] => {
            apart::tell();
            let load = workload(load);
            one(what, load, named(peer, load.client));
        }
        ["gateway-time", load, proxy] => {
            apart::tell();
            gateway::time(load, proxy);
        }
        ["gateway-count", load, proxy] => {
            apart::tell();
            gateway::instructions(load, proxy);
        }
        ["budgets", path, ref more @ ..] => {
            if let Err(why) = budget::check(path, more == ["--write"]) {
                eprintln!("{why}");
                std::process::exit(1);
            }
        }
        ["budget-count", role, load] => {
            apart::tell();
            budget::count(role, load);
        }
        ["gateway", ..] => {
            let whole = Whole::read();
            let rows = gateway::rows(&whole.only, whole.rounds, whole.clock);
            if let Some(path) = toolgate_bench::word("--write") {
                gateway::write(&path, &rows).expect("the page");
            }
        }
        ["gateway-train"] => gateway::train::all(),
        ["gateway-overload", ..] => {
            let only = toolgate_bench::word("--only").unwrap_or_default();
            let figures = gateway::overload::figures(&only);
            if let Some(path) = toolgate_bench::word("--write") {
                gateway::overload::write(&path, &figures).expect("the page");
            }
        }
        ["gateway-growth-count", axis, size] => {
            apart::tell();
            growth::count(axis, size);
        }
        ["gateway-growth-size", axis, size] => {
            apart::tell();
            growth::size(axis, size);
        }
        ["gateway-growth", ..] => {
            let rows = growth::rows(&Whole::read().only);
            if let Some(path) = toolgate_bench::word("--write") {
                growth::write(&path, &rows).expect("the page");
            }
        }
        ["gateway-duties-count", duty, bytes] => {
            apart::tell();
            duties::count(duty, bytes);
        }
        ["gateway-duties", ..] => {
            let rows = duties::rows(&Whole::read().only);
            if let Some(path) = toolgate_bench::word("--write") {
                duties::write(&path, &rows).expect("the page");
            }
        }
        ["cold", peer] => {
            apart::tell();
            let (list, call) = size::cold(named(peer, false));
            println!("{list:.2} ms to the first list, {call:.2} ms to the first call");
        }
        ["idle", peer] => {
            apart::tell();
            let (session, stream) = size::idle(named(peer, false));
            println!("{session:.0} bytes a session, {stream:.0} bytes a stream");
        }
        _ => all(),
    }
}

fn one(what: &str, load: &Load, peer: &Peer) {
    match what {
        "count" => match count::instructions(load, peer) {
            Some(count) => println!("{count:.0} instructions a call"),
            None => println!("valgrind cannot count them"),
        },
        "system" => println!("{:.2} system calls a call", count::system_calls(load, peer)),
        _ => println!("{:.1} calls/s", load::rate(load, peer)),
    }
}

fn named(name: &str, client: bool) -> &'static Peer {
    let mut those = PEERS.iter().filter(|peer| peer.client == client);
    let known = those.find(|peer| peer.name == name);
    known.unwrap_or_else(|| panic!("a peer: {:?}", PEERS.map(|peer| peer.name)))
}

fn all() {
    let whole = Whole::read();
    let rows = whole.rows();
    let sizes = match whole.only.is_empty() {
        true => whole.sizes(),
        false => Vec::new(),
    };
    wanted::lines(&rows, &sizes)
        .iter()
        .for_each(|line| println!("{line}"));
    if let Some(path) = toolgate_bench::word("--write") {
        page::write(&path, &rows, &sizes).expect("the page");
    }
}
