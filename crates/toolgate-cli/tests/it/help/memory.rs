//! Memory of a process, as the kernel reports it.

use std::fs;

/// Resident memory of a process, in bytes.
pub(crate) fn rss_of(pid: u32) -> u64 {
    field(pid, "VmRSS:")
}

/// The most that it was since [`peak_from_now`].
pub(crate) fn peak_of(pid: u32) -> u64 {
    field(pid, "VmHWM:")
}

/// Measures the peak anew, and says where it starts.
pub(crate) fn peak_from_now(pid: u32) -> u64 {
    fs::write(format!("/proc/{pid}/clear_refs"), "5").unwrap();
    rss_of(pid)
}

fn field(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib: u64 = line
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    kib * 1024
}
