//! The data directory: private, writable and with free space.

use super::{CheckResult, DoctorContext};
use crate::disk_space;
use rustix::fs::{Access, access, statvfs};
use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// Free space below which a warning is given: the audit log grows with each call.
const WARNING_BYTES: u64 = 256 << 20;
/// Free space below which the gateway will soon reject calls.
const PROBLEM_BYTES: u64 = 16 << 20;
/// Mode bits: any access by group or others.
const OTHERS_ACCESS_BITS: u32 = 0o077;

pub(super) fn check(context: &DoctorContext) -> Vec<CheckResult> {
    let data = match &context.data {
        Ok(data) => data,
        Err(why) => return vec![CheckResult::problem("", why)],
    };
    let shown = data.display();
    let existing = existing_ancestor(data);
    if access(&existing, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        let what = match existing == *data {
            true => format!("{shown} is not writable"),
            false => format!(
                "{shown} cannot be created, because {} is not writable",
                existing.display()
            ),
        };
        return vec![CheckResult::problem(
            "",
            format!(
                "{what}; change its owner or mode, or choose another directory with --data or `data` in the config"
            ),
        )];
    }
    let mut results = vec![match existing == *data {
        true => CheckResult::ok("", format!("{shown} is writable")),
        false => CheckResult::ok(
            "",
            format!("{shown} does not exist yet; the gateway creates it"),
        ),
    }];
    if let Ok(meta) = data.metadata() {
        if !meta.is_dir() {
            return vec![CheckResult::problem(
                "",
                format!(
                    "{shown} is not a directory; choose another one with --data or `data` in the config"
                ),
            )];
        }
        let us = rustix::process::geteuid().as_raw();
        if meta.uid() != us {
            results.push(CheckResult::problem("", format!("{shown} belongs to user {}, not to your user {us}; run toolgate as its owner, or chown it", meta.uid())));
        } else if meta.mode() & OTHERS_ACCESS_BITS != 0 {
            results.push(CheckResult::warning(
                "",
                format!(
                    "the mode {:04o} of {shown} lets others enter it; run chmod 700 {shown}",
                    meta.mode() & 0o777
                ),
            ));
        }
    }
    results.extend(space(&existing));
    results
}

/// Checks the free space.
fn space(directory: &Path) -> Option<CheckResult> {
    let free = statvfs(directory).ok()?;
    let bytes = disk_space::free_bytes(directory)?;
    let text = format!("{} MiB are free", bytes >> 20);
    let fix = "the gateway rejects all calls if it cannot write its audit log; free some space, or bound the audit log with keep_days or keep_bytes in [audit]";
    // Some file systems do not count inodes.
    let full = free.f_files > 0 && free.f_favail == 0;
    Some(match bytes {
        _ if full => CheckResult::problem("", format!("no inode is free; {fix}")),
        0..PROBLEM_BYTES => CheckResult::problem("", format!("only {text}; {fix}")),
        PROBLEM_BYTES..WARNING_BYTES => CheckResult::warning("", format!("only {text}; {fix}")),
        _ => CheckResult::ok("", text),
    })
}

/// Returns the path itself, or its nearest parent that exists.
fn existing_ancestor(path: &Path) -> PathBuf {
    let found = path.ancestors().find(|path| path.exists());
    found.unwrap_or(Path::new("/")).to_owned()
}
