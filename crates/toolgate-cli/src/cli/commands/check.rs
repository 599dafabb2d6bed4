//! `toolgate check`: validation of a config and a search for rules without effect.

use super::{
    CommandError, DataLocation, Result,
    explain::{runtime, source},
    print, usage,
};
use crate::{
    args::CheckOptions,
    cli::override_lint,
    cli::unmatched_lint::{self, OfferedNames},
    cli::unreachable_lint,
    config::Config,
    oauth::{self, SignInInstructions},
    operator::api::note_lines,
    runtime::compose,
    runtime::memory,
    runtime::offline::{DefinitionChoice, OfflineView},
    servers::{ServerSpec, ServerSupervisor},
};
use futures_util::future::join_all;
use std::{path::Path, process::ExitCode, sync::Arc};
use toolgate_core::{
    Caller, DefinitionNote, Item, ItemKind, ListRequest, NoteAction, Service, visible, visible_line,
};
use toolgate_guardian::Guardian;
use toolgate_protocol::{memory_budget::MemoryBudget, plural::count_of};

/// Maximum number of names in one line.
const MAX_LISTED_NAMES: usize = 8;

/// Checks a config. Exit code: 0 the config is valid, 1 a server could not be contacted or, with `--strict`, there is
/// something to report, 2 the config is invalid.
pub(super) fn run(place: &DataLocation<'_>, wanted: &CheckOptions) -> Result<ExitCode> {
    let config = place.config()?;
    config.check_listen().map_err(usage)?;
    config.check_tokens().map_err(usage)?;
    config.overrides().map_err(usage)?;
    let mut found = CheckFindings {
        notes: unreachable_lint::notes(&config.rules),
        unchecked: config.notes.clone(),
        ..CheckFindings::default()
    };
    let disabled = config.disabled_servers.iter();
    found
        .unchecked
        .extend(disabled.filter_map(|server| config.disabled_reason(&server.id)));
    let stored = stored(&config, place);
    let offered = match wanted.servers {
        true => {
            let data = place.data_with(&config)?;
            listed_items(&config, &data, &mut found)?
        }
        false => stored_items(&config, &stored, &mut found),
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
    if wanted.explain_memory {
        print(&memory::breakdown(&config))?;
    }
    print(&format!(
        "valid: {}, {} in {}\n",
        count_of(config.servers.len() as u64, "server"),
        count_of(config.rules.len() as u64, "rule"),
        visible_line(&source(&config))
    ))?;
    let bad = !found.failed.is_empty() || (wanted.strict && !found.notes.is_empty());
    Ok(if bad {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
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
    let guardian = Guardian::start()
        .map_err(|e| format!("cannot start the guardian process, which runs the servers: {e}; raise the limits on processes and open files of this user"))?;
    let runtime = runtime()?;
    let offered = runtime.block_on(async {
        let supervisor = ServerSupervisor::new(Arc::new(guardian));
        let room = MemoryBudget::new(config.limits.memory_bytes);
        let specs = compose::server_specs(config, &room, &oauth::credentials_dir(data), (&SignInInstructions::default(), None));
        // Each server may use its full start timeout.
        let specs = specs.into_iter().map(|spec| ServerSpec { list_start_wait: spec.start_timeout, ..spec });
        let leases = supervisor.lease(specs.collect());
        let servers = compose::aggregate(config, &leases)?;
        let servers = servers.list_timeout(compose::longest_start(config));
        let servers = compose::definition_pipeline(config, Arc::new(servers));
        supervisor.replace_servers(leases);
        // Each list has its own timeout, and so has the shutdown.
        let list = |kind| servers.list(ListRequest::all(Caller::new("toolgate"), kind));
        let lists = join_all(ItemKind::ALL.map(list)).await;
        let status = supervisor.status();
        supervisor.stop().await;
        let (mut offered, mut missing) = (OfferedNames::default(), Vec::new());
        offered.just_asked = true;
        let mut notes: Vec<_> = status.iter().flat_map(|s| s.failed_lists.iter().cloned()).collect();
        for list in lists {
            let list = list.map_err(|e| e.public_message().to_owned())?;
            notes.extend(list.all_notes());
            missing.extend(list.missing_servers().iter().cloned());
            for item in list.items() {
                let names = offered.by_server.entry(item.origin.server.to_string());
                let name = format!("{}.{}", item.origin.server, item.upstream_key());
                names.or_default().push(name);
            }
        }
        // Removed or changed definitions are findings for `--strict`; repairs are not.
        let less = |note: &&DefinitionNote| {
            !matches!(note.note.action, NoteAction::Repaired | NoteAction::PartlyChecked)
        };
        found.notes.extend(note_lines(notes.iter().filter(less)));
        found.unchecked.extend(note_lines(notes.iter().filter(|note| !less(note))));
        for server in status {
            let own = config.servers.iter().any(|one| {
                let address = one.address.as_ref().filter(|_| one.id == server.id);
                address.is_some_and(|address| address.has_caller_connections())
            });
            if own {
                offered.by_server.remove(&server.id);
                found.unchecked.push(format!(
                    "not checked: the items of the server {}, because each caller has a separate connection to it, and a check has no caller",
                    server.id
                ));
            } else if missing.contains(&server.id) {
                offered.by_server.remove(&server.id);
                let why = server
                    .error
                    .unwrap_or_else(|| "it did not respond in time".to_owned());
                let stderr = server.failure_stderr.iter();
                let stderr: String = stderr.map(|line| format!("\n  | {line}")).collect();
                found.failed.push(format!(
                    "the server {} is unavailable: {why}{stderr}",
                    server.id
                ));
            } else {
                offered.by_server.entry(server.id).or_default();
            }
        }
        Ok::<_, String>(offered)
    });
    runtime.shutdown_background();
    Ok(offered?)
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

fn join_names(names: &[&str]) -> String {
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
