//! Evaluation of past calls under a config: `toolgate explain --history` and `toolgate replay`.
//!
//! - `tally`: counts and their output.
//! - `transcript`: calls in the sessions of hosts.
//! - `sessions`: the decisions about them.
//! - `rule_proposals`: rules that would have made approvals unnecessary.
//!
//! `crate::history` judges the calls. Nothing is called, and nothing is written.

mod rule_proposals;
mod sessions;
mod tally;
mod transcript;

pub(crate) use crate::history::HistoryFilter;
use crate::{
    cli::progress::ProgressLine,
    history::{self, RecordedCall, ReplayedCall},
    runtime::offline::OfflineView,
};
pub(crate) use sessions::{ReplayOutput, SessionTally, evaluate_sessions};
use std::{io, path::Path};
pub(crate) use tally::{HistoryOutput, HistoryTally};
use toolgate_protocol::plural::count_of;
pub(crate) use transcript::transcript_files;

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

/// Judges the calls of the audit log, with a line about the progress.
async fn evaluate_records(
    dir: &Path,
    wanted: &HistoryFilter<'_>,
    by: &OfflineView,
    add: impl FnMut(&RecordedCall, ReplayedCall),
) -> io::Result<()> {
    let progress = ProgressLine::start("Reading the audit log");
    let tell = |count| {
        let calls = count_of(count, "call");
        progress.set(format!("Reading the audit log: {calls}"));
    };
    history::evaluate_records(dir, wanted, by, tell, add).await
}
