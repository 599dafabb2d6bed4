//! `toolgate audit`: access to the audit log without a running gateway.

mod copies;
mod copy_reader;
mod decryption;
mod erase;
mod export;
mod fleet;
mod readable;
mod search;

use super::{CommandError, DataLocation, Result, offline, print};
use crate::{
    args::AuditCommand,
    audit_output::VerifyOutput,
    cli::{output::print_json, progress::ProgressLine},
};
pub(crate) use copies::AuditCopyOutput;
use decryption::ContentDecryption;
pub(crate) use readable::AuditRecordOutput;
use std::{
    io,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, SystemTime},
};
use toolgate_core::visible;
use toolgate_journal::{
    AuditEntry, AuditEvent, FileDisk, acknowledge as acknowledge_notice, notices, public_key,
    read::{self, AuditFollower, SegmentLine},
    verify::{AuditCheck, AuditVerdict},
};

/// Exit code of a verification that found no damage but lacks evidence.
const EXIT_CANNOT_TELL: u8 = 3;

/// Runs an audit command on a data directory.
pub(super) fn run(place: &DataLocation<'_>, data: &Path, audit: &AuditCommand) -> Result<ExitCode> {
    let dir = data.join("audit");
    match audit {
        AuditCommand::Tail {
            count,
            follow,
            json,
        } => {
            let contents = ContentDecryption::new(place, data);
            tail(&dir, *count, *follow, |line| {
                contents.reveal(line);
                readable::text(line, *json)
            })
        }
        AuditCommand::Search(wanted) => {
            let contents = ContentDecryption::new(place, data);
            search::run(data, &dir, wanted, &contents)
        }
        AuditCommand::Erase(options) => erase::run(place, data, options),
        AuditCommand::Export {
            format,
            since,
            cursor,
        } => export::run(&dir, *format, *since, cursor.as_deref()),
        AuditCommand::Verify {
            key,
            checkpoints,
            fleet: None,
            log: _,
            json,
        } => verify(&dir, key, checkpoints, json.json),
        AuditCommand::Verify {
            key,
            checkpoints,
            fleet: Some(file),
            log,
            json,
        } => {
            let copied = fleet::checkpoints(place, data, file.as_deref())?;
            let mut check = AuditCheck::new(&dir);
            check.keys = key.clone();
            check.mirrors = checkpoints.clone();
            let copies = match file {
                None => Some(fleet::FleetCopies::open(place, data)?),
                Some(_) => None,
            };
            fleet::verify(&check, log, &copied, copies.as_ref(), json.json)
        }
        AuditCommand::Checkpoints => fleet::list(place, data),
        AuditCommand::Copies { json } => copies::list(place, data, json.json),
        AuditCommand::RestoreCopy(options) => copies::restore(place, data, options),
        AuditCommand::PruneCopies(options) => copies::prune(place, data, options),
        AuditCommand::Acknowledge => acknowledge(place, data, &dir),
        AuditCommand::Key => {
            let key = public_key(&dir, &FileDisk).map_err(|e| e.to_string())?;
            print(&format!("{key}\n"))
        }
    }
}

/// Returns the time of a period's start in microseconds since 1970.
pub(super) fn period_start(back: Duration) -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let then = now.unwrap_or_default().saturating_sub(back);
    u64::try_from(then.as_micros()).unwrap_or(u64::MAX)
}

fn unreadable(dir: &Path) -> impl Fn(io::Error) -> CommandError + use<'_> {
    |e| {
        CommandError::Failure(format!(
            "cannot read the audit log in {}: {e}; check the directory and its permissions",
            dir.display()
        ))
    }
}

fn verify(dir: &Path, keys: &[String], places: &[PathBuf], json: bool) -> Result<ExitCode> {
    let mut check = AuditCheck::new(dir);
    check.keys = keys.to_vec();
    check.mirrors = places.to_vec();
    let progress = ProgressLine::start("Verifying the audit log");
    let report = check.run();
    drop(progress);
    let report = match report {
        Ok(report) => report,
        Err(error) => {
            eprintln!("toolgate: {}", cannot_read(dir, &error));
            return Ok(ExitCode::from(EXIT_CANNOT_TELL));
        }
    };
    match json {
        true => print_json(&VerifyOutput::new(&report))?,
        false => print(&format!("{}\n", visible_lines(&report.to_string())))?,
    };
    Ok(exit_code(report.verdict()))
}

fn cannot_read(dir: &Path, error: &io::Error) -> String {
    format!(
        "cannot read the audit log in {} or a checkpoint mirror: {}; check the directories and their permissions",
        dir.display(),
        visible(&error.to_string())
    )
}

fn exit_code(verdict: AuditVerdict) -> ExitCode {
    match verdict {
        AuditVerdict::Intact => ExitCode::SUCCESS,
        AuditVerdict::Broken => ExitCode::FAILURE,
        _ => ExitCode::from(EXIT_CANNOT_TELL),
    }
}

/// Escapes control characters in text of several lines.
fn visible_lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(visible).collect();
    lines.join("\n")
}

/// Acknowledges the reported damage: prints it and writes an audit record for each notice.
fn acknowledge(place: &DataLocation<'_>, data: &Path, dir: &Path) -> Result<ExitCode> {
    let open = notices(dir).map_err(unreadable(dir))?;
    if open.is_empty() {
        return print("no damage to the audit log needs to be acknowledged\n");
    }
    for notice in open {
        let entry = AuditEntry::new(AuditEvent::from("audit.acknowledged"));
        let entry = entry.with("about", notice.subject.as_str());
        let entry = entry.with("why", notice.description.as_str());
        offline::record(place, data, entry.with("by", "terminal"))?;
        acknowledge_notice(dir, &notice).map_err(|e| {
            format!(
                "cannot acknowledge the damage to {}: {e}; check the permissions of {}",
                notice.subject,
                dir.display()
            )
        })?;
        let about = visible(&notice.subject);
        print(&format!(
            "acknowledged {about}: {}\n",
            visible(&notice.description)
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn tail(
    dir: &Path,
    count: usize,
    follow: bool,
    text: impl Fn(&mut SegmentLine) -> String,
) -> Result<ExitCode> {
    let lines = |mut lines: Vec<SegmentLine>| lines.iter_mut().map(&text).collect::<String>();
    if !follow {
        return print(&lines(read::tail(dir, count).map_err(unreadable(dir))?));
    }
    let (first, mut follower) = AuditFollower::with_tail(dir, count).map_err(unreadable(dir))?;
    print(&lines(first))?;
    loop {
        std::thread::sleep(Duration::from_millis(200));
        print(&lines(follower.poll().map_err(unreadable(dir))?))?;
    }
}
