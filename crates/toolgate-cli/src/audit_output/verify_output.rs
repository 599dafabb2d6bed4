//! Result of a verification, as `toolgate audit verify --json` prints it.

use crate::fleet::CopiedCheckpoint;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};
use toolgate_journal::verify::{AuditReport, AuditVerdict, ChainReport};

/// Verification of an audit log.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct VerifyOutput {
    /// `intact`, `broken` or `cannot_tell`; the exit code is 0, 1 or 3.
    verdict: &'static str,
    /// True if a checkpoint mirror was compared with the log.
    has_mirror: bool,
    /// Number of unreadable lines in the checkpoint mirrors, as a crash leaves them.
    unreadable_lines: u64,
    /// Number of lines in the checkpoint mirrors that are not signed with the key of the log.
    foreign_lines: u64,
    /// True if `mac.key` was replaced; `null` if there is none to compare.
    mac_key_exchanged: Option<bool>,
    /// Chains, the oldest first.
    chains: Vec<ChainOutput>,
}

/// Verification of the audit logs of all gateways that share a store.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct FleetVerifyOutput {
    /// `intact`, `broken` or `cannot_tell`; the exit code is 0, 1 or 3.
    verdict: &'static str,
    /// Audit logs, that of this data directory first.
    logs: Vec<LogOutput>,
    /// Chains that are in none of the logs.
    missing: Vec<CopiedCheckpoint>,
    /// Chains whose log does not continue its copy in the store, or differs from it.
    diverged: Vec<DivergedCopyOutput>,
    /// Copies that stand in for a log and lack its last signed records.
    behind: Vec<LateCopyOutput>,
}

/// Chain whose log does not continue its copy.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct DivergedCopyOutput {
    /// ID of the chain.
    pub(crate) chain: String,
    /// Gateway that copied the chain.
    pub(crate) gateway: String,
    /// Difference between the log and its copy.
    pub(crate) reason: String,
}

/// Copy without the last records of its log.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct LateCopyOutput {
    /// ID of the chain.
    pub(crate) chain: String,
    /// Gateway that copied the chain.
    pub(crate) gateway: String,
    /// Number of signed records that are not in the copy.
    pub(crate) records: u64,
}

/// Verification of one of several audit logs.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct LogOutput {
    /// Audit log directory; `null` for a copy in the store.
    dir: Option<PathBuf>,
    /// Gateway whose copies in the store stand in for its log; `null` for a log.
    copy_of: Option<String>,
    #[serde(flatten)]
    report: VerifyOutput,
}

impl FleetVerifyOutput {
    pub(crate) fn new<'a>(
        verdict: AuditVerdict,
        logs: impl Iterator<Item = (&'a Path, Option<&'a str>, &'a AuditReport)>,
        (missing, diverged, behind): (
            Vec<CopiedCheckpoint>,
            Vec<DivergedCopyOutput>,
            Vec<LateCopyOutput>,
        ),
    ) -> FleetVerifyOutput {
        let logs = logs.map(|(dir, copy_of, report)| LogOutput {
            dir: copy_of.is_none().then(|| dir.to_owned()),
            copy_of: copy_of.map(str::to_owned),
            report: VerifyOutput::new(report),
        });
        FleetVerifyOutput {
            verdict: verdict_word(verdict),
            logs: logs.collect(),
            missing,
            diverged,
            behind,
        }
    }
}

fn verdict_word(verdict: AuditVerdict) -> &'static str {
    match verdict {
        AuditVerdict::Intact => "intact",
        AuditVerdict::Broken => "broken",
        _ => "cannot_tell",
    }
}

/// Verification of a chain.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct ChainOutput {
    /// ID of the chain.
    chain: String,
    /// True if a running gateway writes the chain.
    live: bool,
    /// Number of the last segment that was read.
    segments: u64,
    /// Sequence number of the last record before the first fault.
    records: u64,
    /// Sequence number of the first record that exists.
    first_record: u64,
    /// Number of the last segment that retention removed; 0 if there is none.
    last_retired_segment: u64,
    /// Number of valid checkpoints.
    checkpoints: u64,
    /// Sequence number of the last record that a valid checkpoint covers.
    signed: u64,
    /// Number of records after the last checkpoint.
    unsigned: u64,
    /// Sequence number of the last record that a mirrored checkpoint covers.
    mirrored: Option<u64>,
    /// Hash of the last good record.
    head: Option<String>,
    first_fault: Option<FaultOutput>,
    /// IDs of the calls without an outcome, in the order of their beginning.
    open_calls: Vec<String>,
    /// Number of calls that were closed as unknown after a crash.
    unknown_calls: u64,
    /// Size of the partial writes after crashes, which later starts set aside.
    torn_bytes: u64,
    /// Evidence that is missing, if no damage was found.
    missing_evidence: Vec<String>,
}

/// First fault of a chain.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct FaultOutput {
    file: PathBuf,
    /// Line in the file, from 1; 0 for the file as a whole.
    line: u64,
    /// Sequence number that the record should have.
    seq: u64,
    reason: String,
}

impl VerifyOutput {
    pub(crate) fn new(report: &AuditReport) -> VerifyOutput {
        VerifyOutput {
            verdict: verdict_word(report.verdict()),
            has_mirror: report.has_mirror,
            unreadable_lines: report.unreadable_lines,
            foreign_lines: report.foreign_lines,
            mac_key_exchanged: report.mac_key_exchanged,
            chains: report.chains.iter().map(ChainOutput::new).collect(),
        }
    }
}

impl ChainOutput {
    fn new(chain: &ChainReport) -> ChainOutput {
        let fault = chain.first_fault.as_ref().map(|fault| FaultOutput {
            file: fault.file.clone(),
            line: fault.line,
            seq: fault.seq,
            reason: fault.fault.to_string(),
        });
        ChainOutput {
            chain: chain.chain.clone(),
            live: chain.live,
            segments: chain.segments,
            records: chain.records,
            first_record: chain.first_record,
            last_retired_segment: chain.last_retired_segment,
            checkpoints: chain.checkpoints,
            signed: chain.signed,
            unsigned: chain.unsigned,
            mirrored: chain.mirrored,
            head: chain.head.clone(),
            first_fault: fault,
            open_calls: chain
                .open_calls
                .iter()
                .map(|open| open.call.clone())
                .collect(),
            unknown_calls: chain.unknown_calls,
            torn_bytes: chain.torn_bytes,
            missing_evidence: chain
                .missing_evidence
                .iter()
                .map(ToString::to_string)
                .collect(),
        }
    }
}
