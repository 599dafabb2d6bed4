//! Evaluation of past calls under a config: `toolgate explain --history` and `toolgate replay`.
//!
//! - `recorded`: a call from the audit log, and its decision at the time.
//! - `replay`: the decision under a config, as far as it can be determined.
//! - `tally`: counts and their output.
//! - `transcript`: calls in the sessions of hosts.
//! - `sessions`: the decisions about them.
//! - `rule_proposals`: rules that would have made approvals unnecessary.
//!
//! Transient state is ignored on both sides: rates, freezes, pending pins, running calls. Nothing is called, and
//! nothing is
//! written.

mod recorded;
mod replay;
mod rule_proposals;
mod sessions;
mod tally;
mod transcript;

use crate::{cli::progress::ProgressLine, runtime::offline::OfflineView};
use recorded::RecordedCall;
use replay::ReplayedCall;
pub(crate) use sessions::{ReplayOutput, SessionTally, evaluate_sessions};
use std::{collections::HashSet, io, path::Path, time::SystemTime};
pub(crate) use tally::{HistoryOutput, HistoryTally};
use toolgate_journal::read::AuditFollower;
use toolgate_protocol::plural::count_of;
pub(crate) use transcript::transcript_files;

/// Filter for recorded calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct HistoryFilter<'a> {
    /// Earliest time in microseconds since 1970.
    pub(crate) since: u64,
    /// Full name of the item.
    pub(crate) tool: Option<&'a str>,
    /// Name of the caller.
    pub(crate) caller: Option<&'a str>,
}

/// Evaluates the recorded calls of a directory of chains, and counts the decisions that change.
///
/// # Errors
/// The audit log cannot be read.
pub(crate) async fn evaluate_history(
    dir: &Path,
    wanted: &HistoryFilter<'_>,
    by: &OfflineView,
) -> io::Result<HistoryTally> {
    let mut tally = HistoryTally::default();
    evaluate_records(dir, wanted, by, |call, judged| tally.add(call, judged)).await?;
    Ok(tally)
}

/// Evaluates the recorded calls of a directory of chains, and counts the decisions by tool.
///
/// # Errors
/// The audit log cannot be read.
pub(crate) async fn evaluate_audit_log(
    dir: &Path,
    wanted: &HistoryFilter<'_>,
    by: &OfflineView,
) -> io::Result<SessionTally> {
    let mut tally = SessionTally::default();
    evaluate_records(dir, wanted, by, |call, judged| {
        tally.add_recorded(call, judged)
    })
    .await?;
    Ok(tally)
}

async fn evaluate_records(
    dir: &Path,
    wanted: &HistoryFilter<'_>,
    by: &OfflineView,
    mut add: impl FnMut(&RecordedCall, ReplayedCall),
) -> io::Result<()> {
    let now = crate::timestamp::millis(SystemTime::now()).saturating_mul(1000);
    let (mut count, mut seen) = (0, HashSet::new());
    let progress = ProgressLine::start("Reading the audit log");
    let mut follower = AuditFollower::from_start(dir);
    loop {
        let lines = follower.poll()?;
        if lines.is_empty() {
            return Ok(());
        }
        // Records written meanwhile are ignored, so that this ends.
        let meant = |ts: u64| (wanted.since..=now).contains(&ts);
        progress.set(format!(
            "Reading the audit log: {}",
            count_of(count, "call")
        ));
        for line in lines.iter().filter(|line| meant(line.ts)) {
            let Some(call) = RecordedCall::read(&line.event, line.ts, &line.fields) else {
                continue;
            };
            let is_caller = wanted.caller.is_none_or(|name| call.caller.name() == name);
            // All rounds of a call count as one.
            if !is_caller || !seen.insert((line.chain.clone(), call.id.clone())) {
                continue;
            }
            let judged = replay::evaluate_call(&call, by).await;
            if wanted.tool.is_none_or(|tool| judged.tool == tool) {
                count += 1;
                add(&call, judged);
            }
        }
    }
}
