//! `toolgate audit verify --fleet`: the logs of all gateways that share a store, against the checkpoints that the gateways
//! copied there.

use super::{
    super::{CommandError, DataLocation, Result, offline, print},
    cannot_read, exit_code, visible_lines,
};
use crate::{
    audit_output::FleetVerifyOutput,
    cli::output::print_json,
    fleet::{CopiedCheckpoint, copied_checkpoints},
    timestamp::format_timestamp,
};
use serde_json::json;
use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};
use toolgate_core::{visible, visible_line};
use toolgate_journal::verify::{AuditCheck, AuditReport, AuditVerdict};

/// Reads the copied checkpoints: of a file, or of the store.
pub(super) fn checkpoints(
    place: &DataLocation<'_>,
    data: &Path,
    file: Option<&Path>,
) -> Result<Vec<CopiedCheckpoint>> {
    let Some(file) = file else {
        let config = place.config()?;
        if config.store.url.is_none() {
            return Err(CommandError::Failure(
                "the config has no shared store: set url in [store], or give the file that `toolgate audit checkpoints` printed as --fleet=FILE".to_owned(),
            ));
        }
        let state = offline::state(&offline::location(place, data)?)?;
        return Ok(copied_checkpoints(state.as_ref()));
    };
    let name = file.display();
    let text = fs::read_to_string(file)
        .map_err(|e| CommandError::Failure(format!("cannot read {name}: {e}")))?;
    let lines = text.lines().enumerate();
    let read = lines.map(|(n, line)| {
        serde_json::from_str(line).map_err(|e| {
            let n = n + 1;
            CommandError::Failure(format!(
                "{name}:{n}: {e}; the file has to be what `toolgate audit checkpoints` printed"
            ))
        })
    });
    read.collect()
}

/// Prints the copied checkpoints.
pub(super) fn list(place: &DataLocation<'_>, data: &Path) -> Result<ExitCode> {
    let copied = checkpoints(place, data, None)?;
    let lines = copied.iter().map(|one| json!(one).to_string() + "\n");
    print(&lines.collect::<String>())
}

/// Log of a gateway, and what its verification found.
struct GatewayLog {
    dir: PathBuf,
    report: AuditReport,
}

/// Verifies the log of this data directory and those of others, and names the chains that are in none of them.
pub(super) fn verify(
    own: &AuditCheck,
    others: &[PathBuf],
    copied: &[CopiedCheckpoint],
    json: bool,
) -> Result<ExitCode> {
    let mut logs = Vec::new();
    let mut missing: Vec<&CopiedCheckpoint> = copied.iter().collect();
    let others = others.iter().map(|data| {
        let mut check = AuditCheck::new(data.join("audit"));
        check.keys.clone_from(&own.keys);
        check.mirrors.clone_from(&own.mirrors);
        check
    });
    for mut check in [own.clone()].into_iter().chain(others) {
        check.witnesses = copied.iter().map(|one| one.line.clone()).collect();
        let report = check
            .run()
            .map_err(|e| CommandError::Failure(cannot_read(&check.dir, &e)))?;
        let has = |chain: &str| report.chains.iter().any(|one| one.chain == chain);
        missing.retain(|one| !has(&one.chain));
        logs.push(GatewayLog {
            dir: check.dir,
            report,
        });
    }
    let verdicts = || logs.iter().map(|log| log.report.verdict());
    let verdict = if verdicts().any(|one| one == AuditVerdict::Broken) {
        AuditVerdict::Broken
    } else if missing.is_empty() && verdicts().all(|one| one == AuditVerdict::Intact) {
        AuditVerdict::Intact
    } else {
        AuditVerdict::CannotTell
    };
    if json {
        let reports = logs.iter().map(|log| (log.dir.as_path(), &log.report));
        let missing = missing.into_iter().cloned().collect();
        print_json(&FleetVerifyOutput::new(verdict, reports, missing))?;
        return Ok(exit_code(verdict));
    }
    for log in &logs {
        print(&format!(
            "{}\n{}\n\n",
            visible(&log.dir.display().to_string()),
            visible_lines(&log.report.to_string())
        ))?;
    }
    for chain in &missing {
        print(&format!(
            "MISSING: no log has the chain {} of the gateway {}, of which {} had copied {} records; give its data directory with --log\n",
            visible_line(&chain.chain),
            visible_line(&chain.gateway),
            format_timestamp(&json!(chain.at)),
            chain.last
        ))?;
    }
    let chains = copied.len() - missing.len();
    print(&format!(
        "{} logs; {chains} of {} chains that gateways copied into the store are in them\n",
        logs.len(),
        copied.len()
    ))?;
    Ok(exit_code(verdict))
}
