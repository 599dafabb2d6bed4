//! `toolgate check`: validation of a config and a search for rules without effect.

use super::{
    CommandError, DataLocation, Result,
    explain::{runtime, source},
    print, usage,
};
use crate::{
    args::CheckOptions,
    cli::output::print_json,
    cli::override_lint,
    cli::server_requirements::UnmetRequirements,
    cli::server_start::{start_and_list, start_guardian},
    cli::unmatched_lint::{self, OfferedNames},
    cli::unreachable_lint,
    config::Config,
    operator::api::note_lines,
    runtime::compose,
    runtime::memory::{self, MemoryOutput},
    runtime::offline::{DefinitionChoice, OfflineView},
    tls::{TlsIdentity, host_mismatches},
};
use schemars::JsonSchema;
use serde::Serialize;
use std::{path::Path, process::ExitCode, time::SystemTime};
use toolgate_core::{DefinitionNote, Item, ItemKind, NoteAction, visible, visible_line};
use toolgate_protocol::plural::count_of;

/// Maximum number of names in one line.
const MAX_LISTED_NAMES: usize = 8;

/// Returns notes about the certificate of the listener.
///
/// # Errors
/// The certificate or its key cannot be used, so the gateway would not start.
fn certificate_notes(config: &Config) -> Result<Vec<String>> {
    let Some(settings) = &config.tls else {
        return Ok(Vec::new());
    };
    let certificate = TlsIdentity::load(settings)
        .map_err(CommandError::Usage)?
        .certificate;
    let dates = certificate.expiry_warning(SystemTime::now());
    let dates = dates.map(|why| format!("{}: {why}", settings.cert.display()));
    Ok(dates
        .into_iter()
        .chain(host_mismatches(config, &certificate))
        .collect())
}

/// Checks a config. Exit code: 0 the config is valid, 1 a server cannot start, could not be contacted or, with `--strict`, there is
/// something to report, 2 the config is invalid.
pub(super) fn run(place: &DataLocation<'_>, wanted: &CheckOptions) -> Result<ExitCode> {
    let config = place.config()?;
    config.check_listen().map_err(usage)?;
    config.check_tokens().map_err(usage)?;
    config.overrides().map_err(usage)?;
    let mut found = CheckFindings {
        notes: certificate_notes(&config)?
            .into_iter()
            .chain(unreachable_lint::notes(&config.rules))
            .collect(),
        unchecked: config.notes.clone(),
        ..CheckFindings::default()
    };
    let disabled = config.disabled_servers.iter();
    let reasons = disabled.filter_map(|server| config.disabled_reason(&server.id));
    found.unchecked.extend(reasons);
    let stored = stored(&config, place);
    let offered = match wanted.servers {
        true => {
            let data = place.data_with(&config)?;
            listed_items(&config, &data, &mut found)?
        }
        false => {
            check_requirements(&config, &mut found);
            stored_items(&config, &stored, &mut found)
        }
    };
    found.notes.extend(override_lint::notes(&config, &offered));
    let shown = override_lint::apply_overrides(&config, &offered);
    found
        .notes
        .extend(unmatched_lint::notes(&config.rules, &shown));
    if let Ok(stored) = &stored {
        found
            .notes
            .extend(stale_notes(stored, &config, &offered, &shown));
    }
    for text in found
        .notes
        .iter()
        .chain(&found.unchecked)
        .chain(&found.failed)
    {
        eprintln!("toolgate: {}", visible(text));
    }
    let output = CheckOutput {
        config: source(&config),
        servers: config.servers.len() as u64,
        rules: config.rules.len() as u64,
        notes: found.notes,
        unchecked: found.unchecked,
        failed: found.failed,
        memory: wanted.explain_memory.then(|| memory::output(&config)),
    };
    match wanted.json.json {
        true => print_json(&output)?,
        false => print(&output.text())?,
    };
    let bad = !output.failed.is_empty() || (wanted.strict && !output.notes.is_empty());
    Ok(if bad {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Valid config, and what the check found.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct CheckOutput {
    /// File of the config, or `the built-in config`.
    config: String,
    /// Number of enabled servers.
    servers: u64,
    /// Number of rules.
    rules: u64,
    /// Settings without effect; with `--strict`, they make the check fail.
    notes: Vec<String>,
    /// Parts that were not checked, and why.
    unchecked: Vec<String>,
    /// Servers that cannot start or are unavailable; they make the check fail.
    failed: Vec<String>,
    /// Memory that the limits allow; only with `--explain-memory`.
    memory: Option<MemoryOutput>,
}

impl CheckOutput {
    /// Returns the text for stdout; the findings are on stderr.
    fn text(&self) -> String {
        let memory = self.memory.as_ref().map(MemoryOutput::text);
        format!(
            "{}valid: {}, {} in {}\n",
            memory.unwrap_or_default(),
            count_of(self.servers, "server"),
            count_of(self.rules, "rule"),
            visible_line(&self.config)
        )
    }
}

/// Findings of the check.
#[derive(Default)]
struct CheckFindings {
    /// Settings without effect.
    notes: Vec<String>,
    /// Parts that were not checked.
    unchecked: Vec<String>,
    /// Parts that could not be checked.
    failed: Vec<String>,
}

/// Opens the stored definitions, or returns why they cannot be read.
fn stored(config: &Config, place: &DataLocation<'_>) -> std::result::Result<OfflineView, String> {
    let said = |failed: CommandError| match failed {
        CommandError::Usage(text) | CommandError::Failure(text) => text,
    };
    let data = place.data_with(config).map_err(said)?;
    let runtime = runtime().map_err(said)?;
    runtime.block_on(OfflineView::open(
        config.clone(),
        &data,
        DefinitionChoice::Latest,
    ))
}

/// Returns the items of the servers from the stored definitions.
fn stored_items(
    config: &Config,
    stored: &std::result::Result<OfflineView, String>,
    found: &mut CheckFindings,
) -> OfferedNames {
    let mut offered = OfferedNames::default();
    if let Ok(stored) = stored {
        let known = |id: &str| Some((id.to_owned(), stored.stored_names(id)?));
        offered.by_server = config.servers.iter().filter_map(|s| known(&s.id)).collect();
    }
    let servers = config.servers.iter().map(|server| server.id.as_str());
    let unknown = unmatched_lint::unknown_servers(&config.rules, servers, &offered);
    if !unknown.is_empty() {
        let why = match stored {
            Ok(_) => "no gateway has listed their items yet".to_owned(),
            Err(why) => why.clone(),
        };
        found.unchecked.push(format!(
            "not checked: whether the rules match any items of {}: {why}; pass --servers to start the servers and list their items",
            join_names(&unknown)
        ));
    }
    offered
}

/// Starts the servers, lists their items once, and stops them.
fn listed_items(config: &Config, data: &Path, found: &mut CheckFindings) -> Result<OfferedNames> {
    let guardian = start_guardian()?;
    let runtime = runtime()?;
    let started = start_and_list(guardian, config, data, &ItemKind::ALL, |servers| {
        compose::definition_pipeline(config, servers)
    });
    let started = runtime.block_on(started);
    runtime.shutdown_background();
    let started = started?;
    let mut offered = OfferedNames {
        just_asked: true,
        ..OfferedNames::default()
    };
    let failed_lists = started
        .status
        .iter()
        .flat_map(|s| s.failed_lists.iter().cloned());
    let mut notes: Vec<_> = failed_lists.collect();
    for list in &started.lists {
        notes.extend(list.all_notes());
        for item in list.items() {
            let names = offered.by_server.entry(item.origin.server.to_string());
            let name = format!("{}.{}", item.origin.server, item.upstream_key());
            names.or_default().push(name);
        }
    }
    // Removed or changed definitions are findings for `--strict`; repairs are not.
    let less = |note: &&DefinitionNote| {
        !matches!(
            note.note.action,
            NoteAction::Repaired | NoteAction::PartlyChecked
        )
    };
    found.notes.extend(note_lines(notes.iter().filter(less)));
    found
        .unchecked
        .extend(note_lines(notes.iter().filter(|note| !less(note))));
    for server in &started.status {
        if config.has_caller_connections(&server.id) {
            offered.by_server.remove(&server.id);
            found.unchecked.push(format!(
                "not checked: the items of the server {}, because each caller has a separate connection to it, and a check has no caller",
                server.id
            ));
        } else if let Some(why) = started.failure(server) {
            offered.by_server.remove(&server.id);
            let stderr = server.failure_stderr.iter();
            let stderr: String = stderr.map(|line| format!("\n  | {line}")).collect();
            found.failed.push(format!(
                "the server {} is unavailable: {why}{stderr}",
                server.id
            ));
        } else {
            offered.by_server.entry(server.id.clone()).or_default();
        }
    }
    Ok(offered)
}

/// Reports what the servers need to start and do not have. Nothing is started.
fn check_requirements(config: &Config, found: &mut CheckFindings) {
    for server in &config.servers {
        let unmet = UnmetRequirements::of(server);
        let id = &server.id;
        let reasons = unmet.reasons();
        found
            .failed
            .extend(reasons.map(|why| format!("the server {id} cannot be used: {why}")));
        found.notes.extend(unmet.unset.iter().map(|name| format!(
            "the server {id} does not get {name} of its env_pass, because that variable is not set in this environment; set it, or remove it from the list"
        )));
    }
}

/// Reports grants for missing servers or tools, and pins of items that no longer exist.
fn stale_notes(
    stored: &OfflineView,
    config: &Config,
    offered: &OfferedNames,
    shown: &OfferedNames,
) -> Vec<String> {
    let mut notes = Vec::new();
    for grant in stored.valid_grants() {
        let (id, server, tool) = (&grant.id, &*grant.server, &grant.tool);
        if config.disabled_reason(server).is_some() {
            continue;
        }
        if !config.servers.iter().any(|s| s.id == server) {
            notes.push(format!(
                "grant {id} has no effect: it is for {server}.{tool}, but the config has no server {server:?}; revoke it with `toolgate grants revoke {id}`"
            ));
            continue;
        }
        let Some(names) = shown.by_server.get(server) else {
            continue;
        };
        let is = |before: &str| names.contains(&format!("{server}.{before}{tool}"));
        if !["", Item::PROMPT_PREFIX, Item::RESOURCE_PREFIX]
            .into_iter()
            .any(is)
        {
            let of = offered.source(server);
            notes.push(format!(
                "grant {id} has no effect: it is for {server}.{tool}, which is not among the items that {of}; revoke it with `toolgate grants revoke {id}`"
            ));
        }
    }
    for (server, names) in offered.by_server.iter().filter(|_| offered.just_asked) {
        let pinned = stored.stored_names(server).unwrap_or_default();
        let gone: Vec<&str> = pinned
            .iter()
            .filter(|name| !names.contains(name))
            .map(String::as_str)
            .collect();
        if !gone.is_empty() {
            notes.push(format!(
                "the server {server} no longer offers some pinned items: {}; if they are gone for good, delete their pins with `toolgate pins forget SERVER.ITEM` (an item that returns then counts as new)",
                join_names(&gone)
            ));
        }
    }
    notes
}

/// Joins the first names, and counts the others.
pub(super) fn join_names(names: &[&str]) -> String {
    let first = names
        .iter()
        .take(MAX_LISTED_NAMES)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    match names.len() {
        0..=MAX_LISTED_NAMES => first,
        n => format!("{first} and {} more", n - MAX_LISTED_NAMES),
    }
}
