//! `toolgate audit search`: the records that fit, oldest first.

use super::{Result, print, since, unreadable};
use crate::cli::Wanted;
use serde_json::Value;
use std::{path::Path, process::ExitCode};
use toolgate_journal::read::{Follower, Line};

/// Prints the records that fit everything that was asked for.
pub(super) fn run(dir: &Path, wanted: &Wanted) -> Result<ExitCode> {
    let from = wanted.since.map_or(0, since);
    let mut follower = Follower::from_start(dir);
    loop {
        let lines = follower.poll().map_err(unreadable(dir))?;
        if lines.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        let found = lines.iter().filter(|line| fits(line, wanted, from));
        print(
            &found
                .map(|line| format!("{}\n", line.raw))
                .collect::<String>(),
        )?;
    }
}

fn fits(line: &Line, wanted: &Wanted, from: u64) -> bool {
    let is = |names: &[&str], value: &Option<String>| {
        let Some(value) = value else { return true };
        let texts = names.iter().filter_map(|name| line.fields.get(*name));
        texts.filter_map(Value::as_str).any(|text| text == value)
    };
    let text = wanted.text.as_ref();
    line.ts >= from
        && is(&["tool", "name"], &wanted.tool)
        && is(&["caller"], &wanted.caller)
        && is(&["srv"], &wanted.server)
        && is(&["dec"], &wanted.decision)
        && text.is_none_or(|text| line.raw.contains(text.as_str()))
}
