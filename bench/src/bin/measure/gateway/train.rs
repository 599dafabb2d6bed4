//! Training calls for profile-guided optimization, made through an instrumented gateway.

use super::{LOADS, duties, growth, proxy::PROXIES};
use crate::load;

/// Gateways that run each workload.
const TRAINED: [&str; 2] = ["toolgate, tmpfs, end", "toolgate, tmpfs, strict"];
/// Calls for each check.
const CALLS_PER_CHECK: u64 = 500;
/// Calls for each entry of [`GROWN`].
const CALLS_PER_SIZE: u64 = 1_000;
/// Growth axes and sizes.
const GROWN: [(&str, &str); 4] = [
    ("servers", "10"),
    ("rules", "100"),
    ("sessions", "100"),
    ("grants", "100"),
];

/// Runs all workloads, each check alone, and the growth axes in [`GROWN`].
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
