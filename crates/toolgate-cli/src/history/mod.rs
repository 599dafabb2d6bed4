//! Past calls of the audit log, judged under a config.
//!
//! - `recorded`: a call from the audit log, and its decision at the time.
//! - `replay`: the decision under a config, as far as it can be determined.
//!
//! Transient state is ignored on both sides: rates, freezes, pending pins, running calls. Nothing is called, and nothing
//! is written.

mod recorded;
mod replay;

pub(crate) use recorded::{
    OMITTED_PREFIX, REDACTED_PREFIX, RecordedArguments, RecordedCall, RecordedDecision,
};
pub(crate) use replay::{ReplayResult, ReplayedCall, access_decision, evaluate_call};

use crate::runtime::offline::OfflineView;
use std::{collections::HashSet, io, path::Path, time::SystemTime};
use toolgate_core::PredictedOutcome;
use toolgate_journal::read::AuditFollower;

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

impl RecordedDecision {
    /// Returns `allow`, `ask` or `deny`.
    pub(crate) fn word(&self) -> &'static str {
        match self.outcome {
            PredictedOutcome::Allow => "allow",
            PredictedOutcome::Ask => "ask",
            _ => "deny",
        }
    }

    /// Returns the rule, or only the name of another policy layer: its message could reveal arguments.
    pub(crate) fn reason(&self) -> String {
        match self.by.as_str() {
            "access" | "resolve" => {
                let why = self.why.strip_prefix("refused: ");
                why.unwrap_or(&self.why).to_owned()
            }
            by => by.to_owned(),
        }
    }
}

/// Judges the recorded calls of a directory of chains under a config, and passes each with its result to `add`.
/// `progress` gets the number of calls from time to time.
///
/// # Errors
/// The audit log cannot be read.
pub(crate) async fn evaluate_records(
    dir: &Path,
    wanted: &HistoryFilter<'_>,
    by: &OfflineView,
    progress: impl Fn(u64),
    mut add: impl FnMut(&RecordedCall, ReplayedCall),
) -> io::Result<()> {
    let now = crate::timestamp::millis(SystemTime::now()).saturating_mul(1000);
    let (mut count, mut seen) = (0, HashSet::new());
    let mut follower = AuditFollower::from_start(dir);
    loop {
        let lines = follower.poll()?;
        if lines.is_empty() {
            return Ok(());
        }
        // Records written meanwhile are ignored, so that this ends.
        let meant = |ts: u64| (wanted.since..=now).contains(&ts);
        progress(count);
        for mut line in lines.into_iter().filter(|line| meant(line.ts)) {
            by.contents.reveal(&mut line.fields);
            let Some(call) = RecordedCall::read(&line.event, line.ts, &line.fields) else {
                continue;
            };
            let is_caller = wanted.caller.is_none_or(|name| call.caller.name() == name);
            // All rounds of a call count as one.
            if !is_caller || !seen.insert((line.chain.clone(), call.id.clone())) {
                continue;
            }
            let judged = evaluate_call(&call, by).await;
            if wanted.tool.is_none_or(|tool| judged.tool == tool) {
                count += 1;
                add(&call, judged);
            }
        }
    }
}
