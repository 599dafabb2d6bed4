//! `toolgate replay`: judges the tool calls of past sessions by a config.

use super::{CommandError, DataLocation, Result, connect::host_places, explain, print};
use crate::{
    args::ReplayOptions,
    cli::history,
    cli::output::print_json,
    hosts::HostPath,
    runtime::offline::{DefinitionChoice, OfflineView},
};
use std::{path::PathBuf, process::ExitCode};

/// Judges the transcripts, those of this user by default.
pub(super) fn run(place: &DataLocation<'_>, options: &ReplayOptions) -> Result<ExitCode> {
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
    let output = tally.output(files.len() as u64, from);
    match options.json.json {
        true => print_json(&output),
        false => print(&output.text()),
    }
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
