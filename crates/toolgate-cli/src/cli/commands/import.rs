//! `toolgate import`: servers of hosts into the config.

mod first_start;
mod output;

use super::{CommandError, DataLocation, Result, absolute, confirm::confirm, print, usage};
use crate::{
    args::ImportOptions,
    atomic_write::{create_directory, write_atomically},
    cli::{output::print_json, server_start::start_guardian},
    config::{Config, keyring, paths},
    config_edit::{ConfigDocument, joined},
    file_diff::unified_diff,
    hosts::{Host, HostPlaces},
    import::{
        host_files::{FoundEntries, find_entries, read_given_file, shown_path},
        import_plan::{ConfigBefore, ImportPlan, ImportedEntry},
        secret_places::SecretPlaces,
    },
};
pub(crate) use output::ImportOutput;
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};
use toolgate_core::visible;
use toolgate_protocol::plural::count_of;

/// Time limit of one write to the keyring, which may ask for its password.
const KEYRING_WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// Error if nobody can be asked.
const NO_TERMINAL: &str = "nothing was written, because there is no terminal to ask on; pass --yes to write the changes, or --dry-run to show them";
/// Section that makes a config without servers valid, to read its other settings.
const PLACEHOLDER_SECTION: &str = "[server.placeholder]\ncommand = [\"placeholder\"]\n";

/// Imports servers. Exit code: 0 done, or nothing to add; 1 no server found or the write failed; 2 the config is
/// invalid, or there is no terminal to ask on.
pub(super) fn run(place: &DataLocation<'_>, wanted: &ImportOptions) -> Result<ExitCode> {
    let written = import(place, wanted)?;
    match written.files {
        Some(files) => print(&next_steps(&files)),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Result of an import.
pub(super) struct ImportResult {
    /// Entries that the config has now, or with `--dry-run` would have.
    pub(super) entries: Vec<ImportedEntry>,
    /// Files of the servers that were added; `None` if nothing was written.
    files: Option<Vec<(String, Option<&'static Host>)>>,
}

/// Imports servers, and prints what it does.
///
/// # Errors
/// Those of [`run`].
pub(super) fn import(place: &DataLocation<'_>, wanted: &ImportOptions) -> Result<ImportResult> {
    let target = target(place.config)?;
    let project = std::env::current_dir().map_err(|error| {
        format!("the current directory is unknown: {error}; change to an existing directory")
    })?;
    let places = HostPlaces::of_this_user(project);
    let before = config_before(&target)?;
    let found = found_entries(wanted, &places);
    let files = found.files.clone();
    let found_count = found.entries.len();
    let directory = target.parent().unwrap_or(Path::new("/"));
    let shown_directory = shown_path(directory, &places);
    let secrets = SecretPlaces {
        directory,
        shown: &shown_directory,
        keyring: wanted.keyring,
    };
    let plan =
        ImportPlan::new(found, before.as_ref(), &target, &secrets).map_err(CommandError::Usage)?;
    for note in &plan.notes {
        eprintln!("toolgate: {}", visible(note));
    }
    if wanted.json {
        print_json(&ImportOutput::new(
            &plan,
            &files,
            found_count,
            before.as_ref(),
            &target,
        ))?;
        return Ok(ImportResult {
            entries: plan.imported,
            files: None,
        });
    }
    print(&found_text(&files, found_count))?;
    let entries = plan.imported.clone();
    let unwritten = |entries| ImportResult {
        entries,
        files: None,
    };
    if plan.servers.is_empty() {
        nothing_to_add(&plan, &shown_path(&target, &places))?;
        return Ok(unwritten(entries));
    }
    let shown = shown_path(&target, &places);
    let before = before.map(|before| before.text);
    print(&changes_text(&plan, before.as_deref(), &shown))?;
    if wanted.dry_run {
        print("\nnothing was written, because of --dry-run\n")?;
        return Ok(unwritten(entries));
    }
    if !wanted.yes && !confirm("Write these changes?", NO_TERMINAL)? {
        print("nothing was written\n")?;
        return Ok(unwritten(Vec::new()));
    }
    // Its process has to start before any thread does.
    let guardian = (wanted.keyring || !wanted.no_start)
        .then(start_guardian)
        .transpose()?;
    store_secrets(&plan, wanted, directory, guardian.as_ref())?;
    let mut config = write_config(&plan, before.as_deref(), &target)?;
    print(&format!(
        "\nwrote {shown}: {} added\n",
        count_of(plan.servers.len() as u64, "server")
    ))?;
    if let Some(guardian) = guardian.filter(|_| !wanted.no_start) {
        config
            .servers
            .retain(|server| plan.servers.iter().any(|new| new.id == server.id));
        let started = first_start::run(place, config, guardian)?;
        print(&format!("\n{started}"))?;
    }
    Ok(ImportResult {
        entries,
        files: Some(files),
    })
}

/// Returns the absolute path of the config to write.
fn target(given: Option<&Path>) -> Result<PathBuf> {
    match given {
        Some(path) => Ok(PathBuf::from(absolute(path))),
        None => paths::default_config_location().ok_or_else(|| {
            CommandError::Usage(
                "cannot determine the config: HOME is not set to an absolute path; set it, or pass --config FILE".to_owned(),
            )
        }),
    }
}

/// Reads the config as it is; `None` if there is none yet.
fn config_before(target: &Path) -> Result<Option<ConfigBefore>> {
    if target.symlink_metadata().is_err() {
        return Ok(None);
    }
    let text = Config::read_text(target).map_err(usage)?;
    if text
        .trim_start_matches('\u{feff}')
        .trim_start()
        .starts_with('{')
    {
        return Err(CommandError::Usage(format!(
            "{}: the config is the JSON of a host, which an import cannot extend; import it into a toolgate.toml: toolgate import {0} --config toolgate.toml",
            target.display()
        )));
    }
    let config = Config::check_text(target, &text).or_else(|error| {
        let filled = Config::check_text(target, &joined(&text, PLACEHOLDER_SECTION));
        filled.map_err(|_| error).map(|mut config| {
            config.servers.clear();
            config
        })
    });
    let config = config.map_err(usage)?;
    Ok(Some(ConfigBefore { text, config }))
}

fn found_entries(wanted: &ImportOptions, places: &HostPlaces) -> FoundEntries {
    if wanted.files.is_empty() {
        return find_entries(places);
    }
    let mut all = FoundEntries::default();
    for file in &wanted.files {
        let found = read_given_file(file, places);
        all.entries.extend(found.entries);
        all.notes.extend(found.notes);
        all.files.extend(found.files);
    }
    all
}

fn found_text(files: &[(String, Option<&'static Host>)], entries: usize) -> String {
    if files.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "found {} in {}:\n",
        count_of(entries as u64, "server"),
        count_of(files.len() as u64, "file")
    );
    for (file, host) in files {
        let host = host.map_or("unknown host", |host| host.name);
        text.push_str(&format!("  {host:<18} {}\n", visible(file)));
    }
    text
}

fn nothing_to_add(plan: &ImportPlan, shown: &str) -> Result<ExitCode> {
    if plan.known > 0 {
        return print(&format!(
            "nothing to add: {shown} already has these servers\n"
        ));
    }
    if !plan.notes.is_empty() {
        return Err(CommandError::Failure("no server was imported".to_owned()));
    }
    Err(CommandError::Failure(
        "found no server to import; name a host's file, as in: toolgate import FILE".to_owned(),
    ))
}

/// Returns the diff of the config, and the list of new secrets.
fn changes_text(plan: &ImportPlan, before: Option<&str>, shown: &str) -> String {
    let diff = unified_diff(shown, before, &plan.text);
    let mut text = format!("\n{diff}");
    let places: Vec<String> = plan
        .new_secrets()
        .map(|(secret, _)| secret.place.clone())
        .collect();
    if !places.is_empty() {
        text.push_str("\nnew secrets, which only you can read:\n");
        for place in places {
            text.push_str(&format!("  {}\n", visible(&place)));
        }
    }
    text
}

/// Stores the secrets first: a config that refers to missing secrets would not start.
fn store_secrets(
    plan: &ImportPlan,
    wanted: &ImportOptions,
    directory: &Path,
    guardian: Option<&toolgate_guardian::Guardian>,
) -> Result<()> {
    let runtime = super::explain::runtime()?;
    for (secret, value) in plan.new_secrets() {
        match guardian.filter(|_| wanted.keyring) {
            Some(guardian) => {
                let stored =
                    keyring::store_secret(&secret.name, value, guardian, KEYRING_WRITE_TIMEOUT);
                runtime.block_on(stored)?;
            }
            None => {
                let file = directory.join(&secret.name);
                create_directory(&file)?;
                write_atomically(&file, value)?;
            }
        }
    }
    Ok(())
}

/// Appends the sections to the config, unless it changed since the operator saw the diff.
fn write_config(plan: &ImportPlan, before: Option<&str>, target: &Path) -> Result<Config> {
    let mut document = ConfigDocument::open_or_create(target, "")?;
    if document.text() != before.unwrap_or_default() {
        return Err(CommandError::Failure(format!(
            "{}: another program changed the file meanwhile, so nothing was written; run the command again",
            target.display()
        )));
    }
    document.append(&plan.sections);
    Ok(document.save()?)
}

/// Returns the commands to type next.
fn next_steps(files: &[(String, Option<&'static Host>)]) -> String {
    let mut hosts: Vec<&str> = files
        .iter()
        .filter_map(|(_, host)| Some(host.as_ref()?.id))
        .collect();
    hosts.dedup();
    let mut text = "\nnext:\n  toolgate serve\n".to_owned();
    for host in hosts {
        text.push_str(&format!("  toolgate connect {host}\n"));
    }
    text
}
