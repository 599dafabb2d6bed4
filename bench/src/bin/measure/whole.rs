//! The whole run: all workloads and all who take part, in turn.

use crate::{
    apart,
    load::Load,
    page::{Row, Size},
    peer::PEERS,
    workloads::WORKLOADS,
};
use std::time::{Duration, Instant};

/// The longest that one timing may take, or one start.
const TIMED: Duration = Duration::from_secs(60);
/// The longest that two counts may take.
const COUNTED: Duration = Duration::from_secs(240);

/// Selection of the measurements to run.
pub struct Whole {
    /// A part of the names of its workloads.
    pub only: String,
    /// True if time is measured.
    pub clock: bool,
    /// Rounds of a timing; each has all peers, forwards or backwards in turn.
    pub rounds: u32,
    begin: Instant,
}

impl Whole {
    /// As the command line has it.
    pub fn read() -> Whole {
        Whole {
            only: toolgate_bench::word("--only").unwrap_or_default(),
            clock: !toolgate_bench::has("--count"),
            rounds: toolgate_bench::number("--rounds").unwrap_or(5).max(1),
            begin: Instant::now(),
        }
    }

    /// Says how far it is.
    fn says(&self, what: &str) {
        let seconds = self.begin.elapsed().as_secs();
        eprintln!("{:>3}:{:02} {what}", seconds / 60, seconds % 60);
    }

    /// All rows, the bare limit of each workload first.
    pub fn rows(&self) -> Vec<Row> {
        let named = |load: &&Load| load.name.contains(&self.only);
        let loads: Vec<&'static Load> = WORKLOADS.iter().filter(named).collect();
        let mut rows = Vec::new();
        for (at, load) in loads.iter().enumerate() {
            self.says(&format!("{} of {}: {}", at + 1, loads.len(), load.name));
            let taking = PEERS.iter().filter(|peer| peer.takes(load));
            let peers = taking.filter(|peer| self.clock || (!peer.audit && peer.script.is_none()));
            let mut of_load: Vec<Row> = peers.map(|peer| Row::new(load, peer)).collect();
            if self.clock {
                self.time(load, &mut of_load);
            }
            for row in &mut of_load {
                self.count(row);
                println!("{}", row.line(true));
            }
            rows.extend(of_load);
        }
        rows
    }

    /// The calls/s of each round. Ratios are taken within one, so that a busy neighbour slows both.
    fn time(&self, load: &Load, rows: &mut [Row]) {
        for round in 0..self.rounds {
            self.says(&format!("  round {} of {}", round + 1, self.rounds));
            let mut order: Vec<usize> = (0..rows.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            let mut rates = vec![None; rows.len()];
            for at in order {
                rates[at] = of(&mut rows[at], &["time", load.name], TIMED);
            }
            for (row, rate) in rows.iter_mut().zip(&rates) {
                row.rates.extend(*rate);
                row.ratios
                    .extend(rate.zip(rates[0]).map(|(own, bare)| own / bare));
            }
        }
    }

    /// Counts the cost of a call besides time.
    fn count(&self, row: &mut Row) {
        // Of a script they would be those of its interpreter.
        if row.peer.script.is_some() {
            return;
        }
        if !row.peer.audit {
            row.instructions = of(row, &["count", row.load.name], COUNTED);
        }
        if self.clock && !row.peer.client {
            row.system_calls = of(row, &["system", row.load.name], COUNTED);
        }
    }

    /// Starts, and what stands idle.
    pub fn sizes(&self) -> Vec<Size> {
        let servers = PEERS
            .iter()
            .filter(|p| !p.client && !p.audit && p.script.is_none());
        let sizes = servers.map(|peer| {
            self.says(&format!("starts and what stands idle: {}", peer.name));
            let two = |what: &str| match apart::measure(&[what, peer.name], TIMED).as_deref() {
                Ok([one, other]) => Some((*one, *other)),
                _ => None,
            };
            let size = Size {
                peer,
                cold: self.clock.then(|| two("cold")).flatten(),
                idle: (peer.ours || peer.is_bare()).then(|| two("idle")).flatten(),
            };
            println!("{}", size.line());
            size
        });
        sizes.collect()
    }
}

/// One number of a row, unless it has failed before.
fn of(row: &mut Row, words: &[&str], bound: Duration) -> Option<f64> {
    if row.failed.is_some() {
        return None;
    }
    let words = [words, &[row.peer.name]].concat();
    match apart::measure(&words, bound) {
        Ok(numbers) => numbers.first().copied(),
        Err(why) => {
            eprintln!("       {}: {}: {why}", words[0], row.peer.name);
            row.failed = Some(why);
            None
        }
    }
}
