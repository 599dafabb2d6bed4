//! `toolgate audit`: reads the record; it needs no gateway that runs.

mod export;
mod forms;
mod index;
mod lines;
mod search;

use super::{Failed, Result, print};
use crate::cli::Audit;
use std::{
    io,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, SystemTime},
};
use toolgate_journal::{
    Files, public_key,
    read::{self, Follower, Line},
    verify::Check,
};

/// Does one of the things that can be done with the record in a data directory.
pub(super) fn run(data: &Path, audit: &Audit) -> Result<ExitCode> {
    let dir = data.join("audit");
    match audit {
        Audit::Tail {
            count,
            follow,
            json,
        } => tail(&dir, *count, *follow, *json),
        Audit::Search(wanted) => search::run(data, &dir, wanted),
        Audit::Export {
            format,
            since,
            cursor,
        } => export::run(&dir, *format, *since, cursor.as_deref()),
        Audit::Verify { key, checkpoints } => verify(data, &dir, key, checkpoints),
        Audit::Key => {
            let key = public_key(&dir, &Files).map_err(|e| e.to_string())?;
            print(&format!("{key}\n"))
        }
    }
}

/// That long ago, in microseconds since 1970.
pub(super) fn since(back: Duration) -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let then = now.unwrap_or_default().saturating_sub(back);
    u64::try_from(then.as_micros()).unwrap_or(u64::MAX)
}

fn unreadable(dir: &Path) -> impl Fn(io::Error) -> Failed + use<'_> {
    |e| {
        Failed::Work(format!(
            "cannot read the audit log in {}: {e}",
            dir.display()
        ))
    }
}

fn verify(data: &Path, dir: &Path, keys: &[String], places: &[PathBuf]) -> Result<ExitCode> {
    let mut check = Check::new(dir);
    check.keys = keys.to_vec();
    check.places = places.to_vec();
    let usual = data.join("checkpoints");
    if places.is_empty() && usual.is_dir() {
        check.places.push(usual);
    }
    let report = check.run().map_err(unreadable(dir))?;
    print(&format!("{report}\n"))?;
    Ok(if report.is_intact() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn tail(dir: &Path, count: usize, follow: bool, json: bool) -> Result<ExitCode> {
    let lines = |lines: &[Line]| {
        let lines = lines.iter().map(|line| lines::text(line, json));
        lines.collect::<String>()
    };
    if !follow {
        return print(&lines(&read::tail(dir, count).map_err(unreadable(dir))?));
    }
    let (first, mut follower) = Follower::with_tail(dir, count).map_err(unreadable(dir))?;
    print(&lines(&first))?;
    loop {
        std::thread::sleep(Duration::from_millis(200));
        print(&lines(&follower.poll().map_err(unreadable(dir))?))?;
    }
}
