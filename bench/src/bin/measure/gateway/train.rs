//! Calls that show an instrumented gateway which code is used often, for profile-guided optimization.

use super::{LOADS, duties, growth, proxy::PROXIES};
use crate::load;

/// Gateways that are trained with each workload.
const TRAINED: [&str; 2] = ["toolgate, tmpfs, end", "toolgate, tmpfs, strict"];
/// Calls of a gateway that has one of the checks.
const CALLS_PER_CHECK: u64 = 500;
/// Calls of a gateway that has grown.
const CALLS_PER_SIZE: u64 = 1_000;
/// Gateways that have grown: what grew, and its size.
const GROWN: [(&str, &str); 4] = [
    ("servers", "10"),
    ("rules", "100"),
    ("sessions", "100"),
    ("grants", "100"),
];

/// Makes calls of all kinds that the benchmarks measure.
pub fn all() {
    for known in &LOADS {
        eprintln!("training: {}", known.load.name);
        for proxy in PROXIES.iter().filter(|proxy| TRAINED.contains(&proxy.name)) {
            let mut running = proxy.start(known, None, || ());
            known.open(&mut running);
            let calls = 1..=known.load.timed;
            load::answered_with(&known.load, calls, &mut running.wire, &mut |_, _| {});
            running.terminate();
        }
    }
    for bytes in duties::BYTES {
        eprintln!("training: checks of calls with {bytes} bytes");
        duties::trials(bytes).for_each(|trial| trial.train(CALLS_PER_CHECK));
    }
    for (axis, size) in GROWN {
        eprintln!("training: {size} {axis}");
        growth::trial(axis, size).train(CALLS_PER_SIZE);
    }
}
