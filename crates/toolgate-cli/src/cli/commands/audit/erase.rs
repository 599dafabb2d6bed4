//! `toolgate audit erase`: makes the encrypted contents of a caller or of a period unreadable, by destroying their keys.
//! No record of the audit log changes.

use super::{
    super::{
        CommandError, DataLocation, Result, confirm::confirm, explain::runtime, offline, print,
    },
    unreadable,
};
use crate::{args::AuditEraseOptions, cli::progress::ProgressLine, operator::control::person};
use std::{collections::HashSet, path::Path, process::ExitCode};
use toolgate_core::visible_line;
use toolgate_journal::{
    AuditEntry,
    read::{AuditFollower, SegmentLine},
};
use toolgate_policy::{ApprovalChannel, ContentKeyEntry, ContentKeys, ContentReader, ErasureScope};
use toolgate_protocol::plural::count_of;

/// Destroys the keys of the scope, after a question and a record.
pub(super) fn run(
    place: &DataLocation<'_>,
    data: &Path,
    options: &AuditEraseOptions,
) -> Result<ExitCode> {
    let scope = scope(options)?;
    let location = offline::location(place, data)?;
    if !location.exists() {
        let text = format!(
            "there is no store in {}, so it has no keys of contents; name the data directory with --data",
            data.display()
        );
        return Err(CommandError::Failure(text));
    }
    let state = offline::state(&location)?;
    let keys = ContentKeys::new(state.clone());
    let entries = keys.entries(&scope);
    if entries.is_empty() {
        // An erasure that destroyed the keys may have failed here.
        if !options.dry_run {
            location.purge()?;
        }
        return Err(CommandError::Failure(nothing_to_erase(&scope)));
    }
    let dir = data.join("audit");
    let records = count_records(&dir, &ContentReader::new(state.clone()), &entries)?;
    let summary = format!(
        "{} of {}: {} in the audit log of {} would become unreadable\n",
        count_of(entries.len() as u64, "key"),
        describe(&scope),
        count_of(records, "record"),
        data.display()
    );
    print(&summary)?;
    if options.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    let refusal = "nothing was erased, because there is no terminal to ask on; pass --yes";
    if !options.yes && !confirm("Erase these contents for good?", refusal)? {
        return print("nothing was erased\n");
    }
    let audit = place
        .config()
        .map(|config| config.audit)
        .unwrap_or_default();
    if audit.is_on_hold(data) {
        let why = "nothing was erased, because the audit log is on hold; remove `hold` from [audit] and the file `hold` beside the chains first";
        return Err(CommandError::Failure(why.to_owned()));
    }
    // Recorded first, so that no erasure is without a record.
    offline::record(place, data, record(&scope, entries.len(), records))?;
    runtime()?
        .block_on(keys.destroy(&entries))
        .map_err(|error| format!("the contents are not erased: {}", error.public_message()))?;
    location.purge().map_err(|why| {
        format!("the keys are destroyed, but the files of the store may still have their bytes: {why}; run the command again")
    })?;
    print(&format!(
        "erased: the keys of {} are destroyed. Running gateways follow within a second. Delete the backups and exports of the store that still have the keys\n",
        describe(&scope)
    ))
}

fn scope(options: &AuditEraseOptions) -> Result<ErasureScope> {
    match (&options.caller, &options.before) {
        (Some(name), None) => Ok(ErasureScope::Caller(name.clone())),
        (None, Some(day)) => Ok(ErasureScope::Before(day.clone())),
        _ => {
            let why = "pass either --caller NAME or --before DATE";
            Err(CommandError::Usage(why.to_owned()))
        }
    }
}

fn describe(scope: &ErasureScope) -> String {
    match scope {
        ErasureScope::Caller(name) => format!("the caller {}", visible_line(name)),
        ErasureScope::Before(day) => format!("the days before {day}"),
    }
}

fn nothing_to_erase(scope: &ErasureScope) -> String {
    let hint = match scope {
        ErasureScope::Caller(_) => {
            "write the name as in the records, such as key:ci; `toolgate audit search --json` shows it"
        }
        ErasureScope::Before(_) => "days are those of UTC",
    };
    format!(
        "nothing was erased: the store has no key for contents of {}; {hint}. Contents that were recorded without encrypt_contents = true in [audit] cannot be erased",
        describe(scope)
    )
}

/// Counts the records whose contents are readable and need one of the keys.
fn count_records(dir: &Path, reader: &ContentReader, keys: &[ContentKeyEntry]) -> Result<u64> {
    let ids: HashSet<&str> = keys.iter().map(|key| key.id.as_str()).collect();
    let _progress = ProgressLine::start("Reading the audit log");
    let mut follower = AuditFollower::from_start(dir);
    let mut count = 0;
    loop {
        let lines = follower.poll().map_err(unreadable(dir))?;
        if lines.is_empty() {
            return Ok(count);
        }
        let protected = |line: &&SegmentLine| reader.is_protected_by(&line.fields, &ids);
        count += lines.iter().filter(protected).count() as u64;
    }
}

/// Returns the record of an erasure, which has no contents.
fn record(scope: &ErasureScope, keys: usize, records: u64) -> AuditEntry {
    let entry = scope.record(keys).with("records", records);
    person::owner(ApprovalChannel::Terminal).add_to(entry)
}
