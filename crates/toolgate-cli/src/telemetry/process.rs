//! Processor time, memory and file descriptors of the program, from `/proc`. Other systems have fewer of them.

use std::fs;
use toolgate_telemetry::{
    SampleList,
    definition::{PROCESS_CPU, PROCESS_FILES, PROCESS_MEMORY},
};

/// Adds the metrics of the process.
pub(super) fn collect(samples: &mut SampleList) {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    samples.plain(&PROCESS_CPU, time.tv_sec as f64 + time.tv_nsec as f64 / 1e9);
    if let Some(bytes) = resident_bytes() {
        samples.plain(&PROCESS_MEMORY, bytes as f64);
    }
    if let Ok(files) = fs::read_dir("/proc/self/fd") {
        samples.plain(&PROCESS_FILES, files.count() as f64);
    }
}

fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kilobytes * 1024)
}
