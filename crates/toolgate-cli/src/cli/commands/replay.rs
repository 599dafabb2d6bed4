//! `toolgate replay`: judges the tool calls of past sessions by a config.

use super::{
    CommandError, DataLocation, Result, audit::period_start, connect::host_places, explain, print,
};
use crate::{
    args::ReplayOptions,
    cli::history::{self, HistoryFilter, ReplayOutput},
    cli::output::print_json,
    hosts::HostPath,
    runtime::offline::{DefinitionChoice, OfflineView},
};
use std::{path::PathBuf, process::ExitCode, time::Duration};

/// Judges the transcripts, those of this user by default, or the audit log.
pub(super) fn run(place: &DataLocation<'_>, options: &ReplayOptions) -> Result<ExitCode> {
    let output = match options.audit {
        Some(period) => of_audit_log(place, options, period)?,
        None => of_transcripts(place, options)?,
    };
    match options.json.json {
        true => print_json(&output),
        false => print(&output.text()),
    }
}

fn of_audit_log(
    place: &DataLocation<'_>,
    options: &ReplayOptions,
    period: Duration,
) -> Result<ReplayOutput> {
    let config = place.config()?;
    let source = explain::source(&config);
    let data = place.data_with(&config)?;
    let directory = explain::audit_directory(&data)?;
    let filter = HistoryFilter {
        since: period_start(period),
        tool: None,
        caller: options.caller.as_deref(),
    };
    let tally = explain::runtime()?.block_on(async {
        let view = OfflineView::open(config, &data, DefinitionChoice::Latest).await?;
        let judged = history::evaluate_audit_log(&directory, &filter, &view).await;
        judged.map_err(|error| explain::unreadable_log(&directory, &error))
    })?;
    Ok(tally.output(None, source))
}

fn of_transcripts(place: &DataLocation<'_>, options: &ReplayOptions) -> Result<ReplayOutput> {
    let named = !options.files.is_empty();
    let places = match named {
        true => options.files.clone(),
        false => known_places()?,
    };
    let mut files = Vec::new();
    for place in &places {
        match history::transcript_files(place) {
            Ok(found) => files.extend(found),
            Err(error) if named => {
                return Err(CommandError::Failure(format!(
                    "{} cannot be read: {error}",
                    place.display()
                )));
            }
            Err(_) => {}
        }
    }
    if files.is_empty() {
        let looked: Vec<String> = places
            .iter()
            .map(|place| place.display().to_string())
            .collect();
        return Err(CommandError::Failure(format!(
            "there is no transcript (*.jsonl) in {}; name a file or a directory",
            looked.join(", ")
        )));
    }
    let config = place.config()?;
    if let Some(caller) = &options.caller {
        let known = config.auth.check_caller_name(caller);
        known.map_err(CommandError::Usage)?;
    }
    let from = explain::source(&config);
    let data = place.data_with(&config)?;
    let tally = explain::runtime()?.block_on(async {
        let view = OfflineView::open(config, &data, DefinitionChoice::Latest).await?;
        history::evaluate_sessions(&files, options.caller.as_deref(), &view).await
    })?;
    Ok(tally.output(Some(files.len() as u64), from))
}

/// Returns the directories in which Claude Code and Codex keep their sessions.
fn known_places() -> Result<Vec<PathBuf>> {
    let places = host_places()?;
    let directories = [
        HostPath::Variable {
            name: "CLAUDE_CONFIG_DIR",
            default: ".claude",
            file: "projects",
        },
        HostPath::Variable {
            name: "CODEX_HOME",
            default: ".codex",
            file: "sessions",
        },
    ];
    Ok(directories
        .into_iter()
        .filter_map(|path| path.resolve(&places))
        .collect())
}
