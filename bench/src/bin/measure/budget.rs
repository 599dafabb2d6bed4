//! Instruction budgets: the committed instructions of a call, and the check that a call does not take more.
//!
//! A build without optimization is counted, because it is there after the tests and takes no minutes of its own. Its figures
//! say nothing about the speed of a release, but work that is added to a call adds to them.

use crate::{
    apart,
    count::{self, callgrind},
    gateway,
    load::{self, Load},
    page,
    peer::Peer,
    wire::Wire,
};
use std::{fs, time::Duration};

/// Share of a budget that a call may take more.
const TOLERANCE: f64 = 0.02;

/// Maximum time for one count.
const MAX_COUNT_TIME: Duration = Duration::from_secs(300);

/// Batches of calls that are counted. The smallest one is compared: threads that wake up add to the others.
const BATCHES: u64 = 4;

/// Calls of a gateway before the counted ones. Its lists of recent calls are full then, so a search through one of them
/// counts.
const WARM_GATEWAY_CALLS: u64 = 600;

/// The measured role and workload, and the calls of a batch. Workloads with lists are absent: what the gateway does for a
/// list depends on its age, and so on the speed of the machine.
const BUDGETS: [(&str, &str, u64); 5] = [
    ("gateway", "http", 50),
    ("gateway", "stdio", 50),
    ("server", "echo", 50),
    ("server", "http", 50),
    ("client", "client-echo", 1),
];

/// Compares each budget of the file with a new count. With `write`, writes the file instead.
///
/// # Errors
/// A call takes more than its budget allows, or cannot be counted.
pub fn check(path: &str, write: bool) -> Result<(), String> {
    let counts = BUDGETS.map(|(role, load, _)| (role, load, counted(role, load)));
    let mut text = format!(
        "# Instructions of a call in a build without optimization, counted by callgrind.\n\
         # `cargo xtask budgets --write` writes this file.\n{}\n",
        occasion()
    );
    let file = match write {
        true => String::new(),
        false => fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?,
    };
    let comparable = file.contains(&occasion());
    if !write && !comparable {
        println!(
            "the budgets were counted with another compiler or processor; nothing is compared"
        );
    }
    let mut wrong = Vec::new();
    for (role, load, count) in counts {
        let count = count.map_err(|why| format!("{role} {load}: {why}"))?;
        text += &format!("{role} {load} {count:.0}\n");
        let budget = budget(&file, role, load);
        let against = budget.map(|budget| format!(" ({:+.1} %)", (count / budget - 1.0) * 100.0));
        println!("{role} {load}: {count:.0}{}", against.unwrap_or_default());
        let within = budget.is_some_and(|budget| count <= budget * (1.0 + TOLERANCE));
        if comparable && !within {
            wrong.push(format!("{role} {load}"));
        }
    }
    if write {
        return fs::write(path, text).map_err(|error| format!("{path}: {error}"));
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "more than {:.0} % above the budget in {path}: {}; make the call cheaper, or accept the cost with `cargo xtask budgets --write` and say why in the commit",
            TOLERANCE * 100.0,
            wrong.join(", ")
        )),
    }
}

/// Returns the instructions of a call, counted in a process of its own.
fn counted(role: &str, load: &str) -> Result<f64, String> {
    let numbers = apart::measure(&["budget-count", role, load], MAX_COUNT_TIME)?;
    let smallest = numbers.into_iter().min_by(f64::total_cmp);
    smallest.ok_or_else(|| "nothing was counted".to_owned())
}

/// Prints the instructions of a call for each batch.
pub fn count(role: &str, load: &str) {
    let known = BUDGETS
        .iter()
        .find(|known| known.0 == role && known.1 == load);
    let calls = known.unwrap_or_else(|| panic!("a budget: {BUDGETS:?}")).2;
    let file = count::file("callgrind");
    let mut wrap = callgrind(&file);
    // A second worker thread takes over work at times that no two runs share.
    wrap.env("TOKIO_WORKER_THREADS", "1");
    let batches = |load: &Load, wire: &mut Wire| {
        let mut next = 1;
        let mut batch = |wire: &mut Wire, calls| {
            load::answered_with(load, next..=next + calls - 1, wire, &mut |_, _| {});
            next += calls;
        };
        let warm = match role {
            "gateway" => WARM_GATEWAY_CALLS,
            _ => calls,
        };
        batch(wire, warm);
        let pid = wire.pid();
        for _ in 0..BATCHES {
            print!(
                "{:.0} ",
                count::between(&file, pid, || batch(wire, calls)) / calls as f64
            );
        }
    };
    match role {
        "gateway" => gateway::with_wire(load, "toolgate, tmpfs, end", wrap, batches),
        "server" => {
            let load = load::workload(load);
            let command = Peer::ours(false).command(load, calls * (BATCHES + 1));
            wrap.arg(command.get_program()).args(command.get_args());
            let mut wire = Wire::start(load, wrap);
            batches(load, &mut wire);
            wire.end();
        }
        _ => {
            let count = count::instructions(load::workload(load), Peer::ours(true));
            print!("{:.0} ", count.expect("callgrind can run the client"));
        }
    }
    println!();
    let _ = fs::remove_file(&file);
}

fn budget(file: &str, role: &str, load: &str) -> Option<f64> {
    let line = |line: &str| line.strip_prefix(&format!("{role} {load} "))?.parse().ok();
    file.lines().find_map(line)
}

/// Returns the compiler, on which the figures depend. They do not depend on the processor: callgrind shows the program the
/// same one everywhere.
fn occasion() -> String {
    format!("# {}", page::compiler())
}
