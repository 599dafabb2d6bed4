//! Boot of the machine: its id, and the time since then.

use std::{fs, time::Duration};

/// Time since the boot of the machine, including suspension.
#[derive(Clone, Copy, Debug)]
pub struct BootTime(pub Duration);

/// Returns the time since the boot; `None` on systems without boot ids.
pub fn boot_time() -> Option<BootTime> {
    #[cfg(target_os = "linux")]
    {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let seconds = u64::try_from(now.tv_sec).ok()?;
        let nanos = u32::try_from(now.tv_nsec).ok()?;
        Some(BootTime(Duration::new(seconds, nanos)))
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// Returns the id of the boot that `mono` counts from; `unknown` on systems without boot ids.
pub fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let id: String = text
        .chars()
        .filter(char::is_ascii_hexdigit)
        .take(32)
        .collect();
    if id.is_empty() {
        "unknown".to_owned()
    } else {
        id
    }
}
