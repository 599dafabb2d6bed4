//! Recorded calls, judged once more by a config: `toolgate explain --history`.
//!
//! - `recorded`: a call as the record has it, and what was decided then.
//! - `replay`: what a config says to it, as far as that can be said.
//! - `tally`: what is counted, and how it is shown.
//!
//! What stands only for a moment is left out on both sides: rates, freezes, pins that wait, what runs. Nothing is
//! called, and nothing is written.

mod recorded;
mod replay;
mod tally;

use crate::stored::Stored;
use recorded::Recorded;
use std::{collections::HashSet, io, path::Path, time::SystemTime};
pub(crate) use tally::Tally;
use toolgate_journal::read::Follower;

/// Which calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted<'a> {
    /// Not older than this, in microseconds since 1970.
    pub(crate) since: u64,
    /// Only of this full name.
    pub(crate) tool: Option<&'a str>,
    /// Only of this caller.
    pub(crate) caller: Option<&'a str>,
}

/// Judges the recorded calls of a folder of chains.
///
/// # Errors
/// The record cannot be read.
pub(crate) async fn judge(dir: &Path, wanted: &Wanted<'_>, by: &Stored) -> io::Result<Tally> {
    let now = crate::board::millis(SystemTime::now()).saturating_mul(1000);
    let (mut tally, mut seen) = (Tally::default(), HashSet::new());
    let mut follower = Follower::from_start(dir);
    loop {
        let lines = follower.poll()?;
        if lines.is_empty() {
            return Ok(tally);
        }
        // What comes while this runs is left out, so that it ends.
        let meant = |ts: u64| (wanted.since..=now).contains(&ts);
        for line in lines.iter().filter(|line| meant(line.ts)) {
            let Some(call) = Recorded::read(&line.event, line.ts, &line.fields) else {
                continue;
            };
            let is_caller = wanted.caller.is_none_or(|name| call.caller.name() == name);
            // The rounds of a call are one call.
            if !is_caller || !seen.insert((line.chain.clone(), call.id.clone())) {
                continue;
            }
            let judged = replay::judge(&call, by).await;
            if wanted.tool.is_none_or(|tool| judged.tool == tool) {
                tally.add(&call, judged);
            }
        }
    }
}
