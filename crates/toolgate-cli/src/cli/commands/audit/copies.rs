//! `toolgate audit copies`, `restore-copy` and `prune-copies`: the copies of audit logs in the shared store.

use super::{
    super::{CommandError, DataLocation, Result, confirm::confirm, print},
    copy_reader::{CopyReader, cannot_write, make_dir},
    exit_code, fleet, visible_lines,
};
use crate::{
    args::{PruneCopiesOptions, RestoreCopyOptions},
    cli::{
        output::{OutputTable, OutputTime, TableColumn, print_json},
        progress::ProgressLine,
    },
    fleet::CopiedCheckpoint,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::{
    collections::{BTreeSet, HashMap},
    fs, io,
    path::Path,
    process::ExitCode,
};
use toolgate_core::visible_line;
use toolgate_journal::verify::AuditCheck;
use toolgate_protocol::plural::count_of;
use toolgate_store::postgres::CopiedChain;

/// Copy of one chain of an audit log in the shared store.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct AuditCopyOutput {
    /// Gateway that copies the chain.
    gateway: String,
    /// ID of the chain.
    chain: String,
    /// Number of segments in the copy.
    segments: u64,
    /// Number of bytes in the copy.
    bytes: u64,
    /// Sequence number of the last copied record.
    last: u64,
    /// Number of signed records that are not in the copy yet, by the last checkpoint that the gateway copied.
    behind: u64,
    /// Time of the last copied piece.
    copied_at: OutputTime,
    /// Reason why the gateway no longer copies the chain: its log does not continue the copy.
    problem: Option<String>,
}

/// Prints the copies of all chains.
pub(super) fn list(place: &DataLocation<'_>, data: &Path, json: bool) -> Result<ExitCode> {
    let reader = CopyReader::open(place, data)?;
    let checkpoints = by_chain(fleet::checkpoints(place, data, None)?);
    let sizes = reader.sizes()?.into_iter();
    let sizes: HashMap<String, (u64, u64)> = sizes
        .map(|size| (size.chain, (size.segments, size.bytes)))
        .collect();
    let chains = reader.chains()?.into_iter().map(|end| {
        let (segments, bytes) = sizes.get(&end.chain).copied().unwrap_or_default();
        AuditCopyOutput {
            segments,
            bytes,
            last: end.seq,
            behind: records_behind(&end, checkpoints.get(&end.chain)),
            copied_at: OutputTime::from_millis(end.copied_at),
            gateway: end.gateway,
            chain: end.chain,
            problem: end.problem,
        }
    });
    let chains: Vec<AuditCopyOutput> = chains.collect();
    if json {
        return print_json(&chains);
    }
    if chains.is_empty() {
        eprintln!(
            "there are no copies of audit logs; copy_segments = true in [audit] lets a gateway copy its log"
        );
    }
    let mut table = OutputTable::new(&[TableColumn::Whole, TableColumn::Whole, TableColumn::Wrap]);
    for copy in &chains {
        let state = match (&copy.problem, copy.behind) {
            (Some(why), _) => format!("; no longer copied: {}", visible_line(why)),
            (None, 0) => String::new(),
            (None, behind) => format!("; {} behind", count_of(behind, "signed record")),
        };
        table.add([
            visible_line(&copy.gateway),
            visible_line(&copy.chain),
            format!(
                "{} up to record {}, {} bytes, copied {}{state}",
                count_of(copy.segments, "segment"),
                copy.last,
                copy.bytes,
                copy.copied_at
            ),
        ]);
    }
    print(&table.text())
}

/// Writes the copies of a gateway's chains to a new directory, and verifies them.
pub(super) fn restore(
    place: &DataLocation<'_>,
    data: &Path,
    options: &RestoreCopyOptions,
) -> Result<ExitCode> {
    let to = &options.to;
    let reader = CopyReader::open(place, data)?;
    let checkpoints = by_chain(fleet::checkpoints(place, data, None)?);
    let (chains, others): (Vec<_>, Vec<_>) = reader
        .chains()?
        .into_iter()
        .partition(|end| end.gateway == options.gateway);
    if chains.is_empty() {
        return Err(CommandError::Failure(no_such_gateway(
            &options.gateway,
            &others,
        )));
    }
    let entries = fs::read_dir(to).map(|mut entries| entries.next().is_some());
    match entries {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(cannot_write(to)(e)),
        Ok(false) => {}
        Ok(true) => {
            return Err(CommandError::Failure(format!(
                "{} is not empty; choose a new directory, so that nothing is mixed with the copy",
                to.display()
            )));
        }
    }
    make_dir(to).map_err(cannot_write(to))?;
    let mut keys = BTreeSet::new();
    let progress = ProgressLine::start("Restoring the audit log");
    for end in &chains {
        keys.extend(reader.restore(end, checkpoints.get(&end.chain), to)?);
    }
    drop(progress);
    for end in &chains {
        print(&restored_line(end, checkpoints.get(&end.chain)))?;
    }
    let mut check = AuditCheck::new(to.join("audit"));
    check.keys.clone_from(&options.key);
    if check.keys.is_empty() {
        check.keys.extend(keys.iter().cloned());
    }
    check.mirrors = vec![to.join("checkpoints")];
    let report = check
        .run()
        .map_err(|e| CommandError::Failure(super::cannot_read(&check.dir, &e)))?;
    print(&format!("{}\n", visible_lines(&report.to_string())))?;
    if options.key.is_empty() {
        print(
            "verified with the keys that the copy names; pass the key of the gateway with --key, since whoever can write the database could replace those\n",
        )?;
    }
    let keys = check.keys.iter().map(|key| format!(" --key {key}"));
    let keys = visible_line(&keys.collect::<String>());
    print(&format!(
        "to verify again:\n  toolgate audit verify --data {to}{keys}\n  toolgate-verify {to}/audit{keys}\n",
        to = visible_line(&to.display().to_string())
    ))?;
    Ok(exit_code(report.verdict()))
}

/// Removes the copies of old segments that the logs themselves have retired.
pub(super) fn prune(
    place: &DataLocation<'_>,
    data: &Path,
    options: &PruneCopiesOptions,
) -> Result<ExitCode> {
    let reader = CopyReader::open(place, data)?;
    let refusal = "nothing was removed, because there is no terminal to ask on; pass --yes";
    let question = format!(
        "Remove the copies of retired segments that were copied before {}?",
        options.before
    );
    if !options.yes && !confirm(&question, refusal)? {
        return print("nothing was removed\n");
    }
    let audit = place.config().map(|config| config.audit);
    if audit.unwrap_or_default().is_on_hold(data) {
        let why = "nothing was removed, because the audit log is on hold; remove `hold` from [audit] and the file `hold` beside the chains first";
        return Err(CommandError::Failure(why.to_owned()));
    }
    let removed = reader.remove_retired(&options.before)?;
    print(&format!(
        "removed the copies of {} ({} bytes)\n",
        count_of(removed.segments, "segment"),
        removed.bytes
    ))
}

/// Returns the number of signed records that a copy does not have.
pub(super) fn records_behind(end: &CopiedChain, checkpoint: Option<&CopiedCheckpoint>) -> u64 {
    checkpoint.map_or(0, |checkpoint| checkpoint.last.saturating_sub(end.seq))
}

pub(super) fn by_chain(checkpoints: Vec<CopiedCheckpoint>) -> HashMap<String, CopiedCheckpoint> {
    let named = checkpoints.into_iter();
    named.map(|one| (one.chain.clone(), one)).collect()
}

fn restored_line(end: &CopiedChain, checkpoint: Option<&CopiedCheckpoint>) -> String {
    let missing = match records_behind(end, checkpoint) {
        0 => String::new(),
        behind => format!(
            "; the gateway had signed {} more, which are not in the copy",
            count_of(behind, "record")
        ),
    };
    let problem = end.problem.as_ref().map_or(String::new(), |why| {
        format!("; the gateway no longer copied it: {}", visible_line(why))
    });
    format!(
        "restored the chain {} up to record {}, copied {}{missing}{problem}\n",
        visible_line(&end.chain),
        end.seq,
        OutputTime::from_millis(end.copied_at)
    )
}

fn no_such_gateway(wanted: &str, others: &[CopiedChain]) -> String {
    let names: BTreeSet<&str> = others.iter().map(|end| end.gateway.as_str()).collect();
    let names: Vec<String> = names.into_iter().map(visible_line).collect();
    let hint = match names.is_empty() {
        true => "there are no copies at all; copy_segments = true in [audit] lets a gateway copy its log".to_owned(),
        false => format!("the gateways with copies are: {}", names.join(", ")),
    };
    format!(
        "the shared store has no copy of the audit log of a gateway \"{}\"; {hint}",
        visible_line(wanted)
    )
}
