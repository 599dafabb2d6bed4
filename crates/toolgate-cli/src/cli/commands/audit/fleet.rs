//! `toolgate audit verify --fleet`: the logs of all gateways that share a store, against the checkpoints that the gateways
//! copied there, and against the copies of segments. A copy stands in for a log whose directory is not given.

use super::{
    super::{CommandError, DataLocation, Result, offline, print},
    cannot_read,
    copies::records_behind,
    copy_reader::{CopyReader, cannot_write},
    exit_code, visible_lines,
};
use crate::{
    audit_output::{DivergedCopyOutput, FleetVerifyOutput, LateCopyOutput},
    cli::{output::print_json, progress::ProgressLine},
    fleet::{CopiedCheckpoint, copied_checkpoints},
    timestamp::{format_timestamp, millis},
};
use serde_json::json;
use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, SystemTime},
};
use toolgate_core::{visible, visible_line};
use toolgate_journal::verify::{AuditCheck, AuditReport, AuditVerdict};
use toolgate_store::postgres::CopiedChain;

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

/// Time that a copy of segments may be behind the last copied checkpoint, beside two intervals.
const MAX_COPY_DELAY: Duration = Duration::from_secs(60);

/// Copies of segments in the store, which stand in for logs.
pub(super) struct FleetCopies {
    reader: CopyReader,
    chains: Vec<CopiedChain>,
    max_delay: Duration,
}

impl FleetCopies {
    /// Reads how far the copies reach.
    pub(super) fn open(place: &DataLocation<'_>, data: &Path) -> Result<FleetCopies> {
        let reader = CopyReader::open(place, data)?;
        let interval = place.config()?.audit.copies.unwrap_or_default().interval;
        Ok(FleetCopies {
            chains: reader.chains()?,
            reader,
            max_delay: MAX_COPY_DELAY + 2 * interval,
        })
    }
}

/// Log of a gateway, and what its verification found.
struct GatewayLog {
    dir: PathBuf,
    /// Gateway whose copies in the store these are, instead of a log.
    copy_of: Option<String>,
    report: AuditReport,
}

/// Verifies the log of this data directory, those of others, and the copies of further logs. Names the chains that are in
/// none of them, and the logs that differ from their copy.
pub(super) fn verify(
    own: &AuditCheck,
    others: &[PathBuf],
    copied: &[CopiedCheckpoint],
    copies: Option<&FleetCopies>,
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
    // On a machine without a gateway, the copies are all there is.
    let has_copies = copies.is_some_and(|copies| !copies.chains.is_empty());
    let own_log = (!has_copies || own.dir.exists()).then(|| own.clone());
    for mut check in own_log.into_iter().chain(others) {
        check.witnesses = copied.iter().map(|one| one.line.clone()).collect();
        let report = check
            .run()
            .map_err(|e| CommandError::Failure(cannot_read(&check.dir, &e)))?;
        missing.retain(|one| !has_chain(&report, &one.chain));
        logs.push(GatewayLog {
            dir: check.dir,
            copy_of: None,
            report,
        });
    }
    let (mut diverged, mut late) = (Vec::new(), Vec::new());
    if let Some(copies) = copies {
        let _progress = ProgressLine::start("Reading the copies of the audit logs");
        diverged = diverged_copies(copies, &logs)?;
        let of_copies = verify_copies(copies, own, copied, &logs)?;
        late = late_copies(copies, copied, &of_copies);
        for log in &of_copies {
            missing.retain(|one| !has_chain(&log.report, &one.chain));
        }
        logs.extend(of_copies);
    }
    let verdicts = || logs.iter().map(|log| log.report.verdict());
    let verdict = if !diverged.is_empty() || verdicts().any(|one| one == AuditVerdict::Broken) {
        AuditVerdict::Broken
    } else if missing.is_empty()
        && late.is_empty()
        && verdicts().all(|one| one == AuditVerdict::Intact)
    {
        AuditVerdict::Intact
    } else {
        AuditVerdict::CannotTell
    };
    if json {
        let reports = logs
            .iter()
            .map(|log| (log.dir.as_path(), log.copy_of.as_deref(), &log.report));
        let missing = missing.into_iter().cloned().collect();
        print_json(&FleetVerifyOutput::new(
            verdict,
            reports,
            (missing, diverged, late),
        ))?;
        return Ok(exit_code(verdict));
    }
    for log in &logs {
        let name = match &log.copy_of {
            None => visible(&log.dir.display().to_string()),
            Some(gateway) => format!("copy of the log of {}", visible_line(gateway)),
        };
        print(&format!(
            "{name}\n{}\n\n",
            visible_lines(&log.report.to_string())
        ))?;
    }
    for copy in &diverged {
        print(&format!(
            "DIVERGED: the log of the chain {} of the gateway {} does not continue its copy in the store: {}; `toolgate audit restore-copy` restores the copy\n",
            visible_line(&copy.chain),
            visible_line(&copy.gateway),
            visible_line(&copy.reason)
        ))?;
    }
    for copy in &late {
        print(&format!(
            "BEHIND: the copy of the chain {} of the gateway {} lacks the last {} signed records; give the data directory of the gateway with --log\n",
            visible_line(&copy.chain),
            visible_line(&copy.gateway),
            copy.records
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

fn has_chain(report: &AuditReport, chain: &str) -> bool {
    report.chains.iter().any(|one| one.chain == chain)
}

/// Returns the chains whose files differ from their copy, or whose gateway found that.
fn diverged_copies(copies: &FleetCopies, logs: &[GatewayLog]) -> Result<Vec<DivergedCopyOutput>> {
    let mut diverged = Vec::new();
    for end in &copies.chains {
        let mut reason = end.problem.clone();
        let of_chain = logs.iter().filter(|log| log.dir.join(&end.chain).is_dir());
        for log in of_chain {
            if reason.is_none() {
                reason = copies.reader.difference(end, &log.dir)?;
            }
        }
        diverged.extend(reason.map(|reason| DivergedCopyOutput {
            chain: end.chain.clone(),
            gateway: end.gateway.clone(),
            reason,
        }));
    }
    Ok(diverged)
}

/// Verifies the copies of chains that are in no log, one gateway at a time.
fn verify_copies(
    copies: &FleetCopies,
    own: &AuditCheck,
    copied: &[CopiedCheckpoint],
    logs: &[GatewayLog],
) -> Result<Vec<GatewayLog>> {
    let mut gateways = BTreeMap::<&str, Vec<&CopiedChain>>::new();
    for end in &copies.chains {
        if !logs.iter().any(|log| log.dir.join(&end.chain).is_dir()) {
            gateways.entry(&end.gateway).or_default().push(end);
        }
    }
    let mut verified = Vec::new();
    for (gateway, chains) in gateways {
        let dir = TemporaryDir::create()?;
        let mut check = AuditCheck::new(dir.path.join("audit"));
        check.mirrors = vec![dir.path.join("checkpoints")];
        check.keys.clone_from(&own.keys);
        for end in chains {
            let witness = copied.iter().find(|one| one.chain == end.chain);
            let keys = copies.reader.restore(end, witness, &dir.path)?;
            if own.keys.is_empty() {
                check.keys.extend(keys);
            }
        }
        let report = check
            .run()
            .map_err(|e| CommandError::Failure(cannot_read(&check.dir, &e)))?;
        verified.push(GatewayLog {
            dir: check.dir,
            copy_of: Some(gateway.to_owned()),
            report,
        });
    }
    Ok(verified)
}

/// Returns the copies that lack signed records for longer than a copy takes.
fn late_copies(
    copies: &FleetCopies,
    copied: &[CopiedCheckpoint],
    verified: &[GatewayLog],
) -> Vec<LateCopyOutput> {
    let now = millis(SystemTime::now());
    let max_delay = u64::try_from(copies.max_delay.as_millis()).unwrap_or(u64::MAX);
    let is_old = |one: &&CopiedCheckpoint| now.saturating_sub(one.at) > max_delay;
    let stands_in = |end: &&CopiedChain| {
        let mut reports = verified.iter().map(|log| &log.report);
        reports.any(|report| has_chain(report, &end.chain))
    };
    let ends = copies.chains.iter().filter(stands_in);
    let late = ends.filter_map(|end| {
        let checkpoint = copied.iter().find(|one| one.chain == end.chain);
        let records = records_behind(end, checkpoint.filter(is_old));
        (records > 0).then(|| LateCopyOutput {
            chain: end.chain.clone(),
            gateway: end.gateway.clone(),
            records,
        })
    });
    late.collect()
}

/// Directory that only this user can read, and that is removed at the end.
struct TemporaryDir {
    path: PathBuf,
}

impl TemporaryDir {
    fn create() -> Result<TemporaryDir> {
        let name = format!("toolgate-copies-{}", toolgate::ids::secret_id());
        let path = std::env::temp_dir().join(name);
        let created = DirBuilder::new().mode(0o700).create(&path);
        created.map_err(cannot_write(&path))?;
        Ok(TemporaryDir { path })
    }
}

impl Drop for TemporaryDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}
