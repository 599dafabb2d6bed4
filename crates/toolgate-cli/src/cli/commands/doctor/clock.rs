//! The clock: approvals, grants, keys and tokens expire by it.

use super::{CheckResult, DoctorContext};
use crate::{cli::commands::offline, config::Config, runtime::store_location::StoreLocation};
use std::{
    fs::{self, OpenOptions},
    path::Path,
    time::{Duration, SystemTime},
};

/// 2026-01-01, before which no build of this program existed, in seconds since the Unix epoch.
const EARLIEST_SECONDS: u64 = 1_767_225_600;
/// Difference between the clock and the file times above which a warning is given.
const MAX_FILE_SKEW: Duration = Duration::from_secs(5);
/// Time by which the stored clock may be ahead of the system clock.
const MAX_STORED_LEAD: Duration = Duration::from_secs(60);

pub(super) fn check(context: &DoctorContext) -> Vec<CheckResult> {
    let now = SystemTime::now();
    let since = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    if since.as_secs() < EARLIEST_SECONDS {
        return vec![CheckResult::problem(
            "",
            "the system clock is before 2026, so tokens and certificates are not valid yet; set it, for example with NTP",
        )];
    }
    let mut results = Vec::new();
    if let Ok(data) = &context.data {
        results.extend(file_skew(data));
        let config = context.config.as_ref();
        results.extend(config.ok().and_then(|config| stored_lead(config, data)));
    }
    if results.is_empty() {
        results.push(CheckResult::ok(
            "",
            "the system clock agrees with the file system and the stored state",
        ));
    }
    results
}

/// Compares the clock with the time that the file system gives to a new file.
fn file_skew(directory: &Path) -> Option<CheckResult> {
    let file = directory.join(format!(".doctor-{}.tmp", std::process::id()));
    let before = SystemTime::now();
    let written = OpenOptions::new().write(true).create_new(true).open(&file);
    // A directory that is missing or not writable is a finding of another check.
    let modified = written.and_then(|file| file.metadata()?.modified()).ok();
    if modified.is_some() {
        // A file that cannot be removed does no harm.
        let _ = fs::remove_file(&file);
    }
    let modified = modified?;
    let skew = modified
        .duration_since(before)
        .unwrap_or_else(|error| error.duration());
    (skew > MAX_FILE_SKEW).then(|| CheckResult::warning("", format!(
        "the file times of {} differ from the system clock by {} s; set both clocks with NTP",
        directory.display(),
        skew.as_secs()
    )))
}

/// Compares the clock with that of the stored approvals and keys, which never goes back.
fn stored_lead(config: &Config, data: &Path) -> Option<CheckResult> {
    let location = StoreLocation::of(config, data).ok()?;
    if !location.exists() {
        return None;
    }
    let ahead = offline::state(&location).ok()?.clock().ahead();
    (ahead > MAX_STORED_LEAD).then(|| {
        let minutes = ahead.as_secs().div_ceil(60);
        CheckResult::warning("", format!("the system clock was set back: approvals, grants and keys expire by a stored clock that is {minutes} min ahead of it; if the stored clock is wrong, stop all gateways on this data directory, and run: toolgate store clear clock"))
    })
}
