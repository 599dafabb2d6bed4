//! `toolgate connect HOST --hooks`: a hook in the host's settings, and the server `host` in the config.

use super::{
    CommandError, Result, connect::host_places, data_dir::DataLocation, hook::unknown_host,
    lasting_program, own_program, print,
};
use crate::{
    args::{ConnectOptions, DisconnectOptions},
    banner::shell_quote,
    config::paths,
    config_edit::{ConfigDocument, ServerEntry},
    file_diff::unified_diff,
    hosts::{ConnectionRecord, ConnectionStore, EditedFile, HookHost, digest_digits, unknown_home},
};
use std::{fs, path::PathBuf, process::ExitCode};

/// Name of the server in the config.
pub(super) const SERVER_NAME: &str = "host";
/// Time limit of the hook, which the host enforces.
const HOOK_SECONDS: u64 = 600;
/// Time in which the hook decides. It ends before the host's limit, after which the host would run its tool.
const WAIT_SECONDS: u64 = 590;
/// Rules of the server.
const RULES: &str = "\
# Tools of hosts themselves. A hook of the host calls the tool here before the host runs its own.
# No other caller sees these tools. A tool that no rule allows needs an approval.
[[rule]]
tools = [\"host.*\"]
callers = [\"*@http\", \"*@stdio\", \"*:*\"]
action = \"deny\"

[[rule]]
tools = [\"host.read\", \"host.search\"]
action = \"allow\"
";

/// Adds the hook to a host's settings, and the server to the config.
pub(super) fn connect(place: &DataLocation<'_>, options: &ConnectOptions) -> Result<ExitCode> {
    let id = options.host.as_deref().unwrap_or_default();
    let (host, file) = hook_file(id, options.project)?;
    let path = file.path.display();
    let command = hook_command(place, host)?;
    let before = file.read()?;
    let after = host
        .add_hooks(
            before.as_deref().unwrap_or_default(),
            &command,
            HOOK_SECONDS,
        )
        .map_err(|why| format!("{path} {why}; correct it"))?;
    let config = edited_config(place)?;
    if options.dry_run {
        let mut text = unified_diff(&path.to_string(), before.as_deref(), &after);
        if let Some(config) = &config {
            text.push_str(&format!("\nappended to the config:\n\n{}", config.1));
        }
        return print(&text);
    }
    if let Some((config, _)) = config {
        config.save()?;
        eprintln!(
            "added the server {SERVER_NAME:?} and two rules for it to the config; edit them as needed"
        );
    }
    if before.as_deref() == Some(&after) {
        eprintln!("toolgate: the hook is already in {path}");
        return Ok(ExitCode::SUCCESS);
    }
    let store = ConnectionStore::new(&place.data()?);
    let stored = store.load(&file)?;
    let is_first = stored.is_none();
    let record = stored.unwrap_or_else(|| ConnectionRecord {
        host: host.id().to_owned(),
        file: file.path.clone(),
        name: "hooks".to_owned(),
        existed: before.is_some(),
        created_keys: 0,
        digest: Some(digest_digits(after.as_bytes())),
        replaced: Vec::new(),
    });
    store.save(&file, &record, before.as_deref().filter(|_| is_first))?;
    file.replace(before.as_deref(), &after)?;
    eprintln!(
        "the own tools of {} now go through the gateway: {path}\n  \
         keep a gateway running (`toolgate serve`): without one, these tools are denied\n  \
         restart {0} to apply the change; `toolgate disconnect {0} --hooks` undoes it",
        host.id()
    );
    if host == HookHost::Codex {
        eprintln!(
            "  Codex skips the hook until you trust it: start `codex`, and choose \"Trust all and continue\" under \"Hooks need review\""
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Removes the hook from a host's settings. The config stays as it is.
pub(super) fn disconnect(
    place: &DataLocation<'_>,
    options: &DisconnectOptions,
) -> Result<ExitCode> {
    let (host, file) = hook_file(&options.host, options.project)?;
    let store = ConnectionStore::new(&place.data()?);
    remove_hooks(&store, host, &file, options.dry_run)
}

/// Removes the gateway's hooks from a file.
pub(super) fn remove_hooks(
    store: &ConnectionStore,
    host: HookHost,
    file: &EditedFile,
    dry_run: bool,
) -> Result<ExitCode> {
    let path = file.path.display();
    let missing = || CommandError::Failure(format!("{path} has no toolgate hook"));
    let before = file.read()?.ok_or_else(missing)?;
    let record = store.load(file)?;
    let digest = digest_digits(before.as_bytes());
    let as_written = record.filter(|record| record.digest.as_ref() == Some(&digest));
    let after = match &as_written {
        Some(record) if record.existed => Some(store.backup(file)?),
        Some(_) => None,
        None => {
            let removed = host.remove_hooks(&before);
            let removed = removed.map_err(|why| format!("{path} {why}; correct it"))?;
            Some(removed.ok_or_else(missing)?)
        }
    };
    if dry_run {
        let after = after.as_deref().unwrap_or_default();
        return print(&unified_diff(&path.to_string(), Some(&before), after));
    }
    match &after {
        Some(text) => file.replace(Some(&before), text)?,
        None => fs::remove_file(&file.path)
            .map_err(|error| format!("{path} cannot be deleted: {error}"))?,
    }
    store.remove(file)?;
    eprintln!(
        "the own tools of {} no longer go through the gateway: {path}\n  restart {0} to apply the change",
        host.id()
    );
    Ok(ExitCode::SUCCESS)
}

fn hook_file(id: &str, project: bool) -> Result<(HookHost, EditedFile)> {
    let host = HookHost::find(id).ok_or_else(|| unknown_host(id))?;
    let path = host.file(project, &host_places()?);
    let path = path.ok_or_else(|| CommandError::Failure(unknown_home(id)))?;
    let file = EditedFile {
        host: host.id(),
        path,
    };
    Ok((host, file))
}

/// Returns the command line of the hook, for the host's shell.
fn hook_command(place: &DataLocation<'_>, host: HookHost) -> Result<String> {
    let mut words = vec![lasting_program()?, "hook".to_owned(), host.id().to_owned()];
    words.extend(["--wait".to_owned(), WAIT_SECONDS.to_string()]);
    words.extend(place.absolute_options());
    let words: Vec<String> = words.iter().map(|word| shell_quote(word)).collect();
    Ok(words.join(" "))
}

/// Returns the config with the server and its rules, and the text that is new; `None` if it has the server.
fn edited_config(place: &DataLocation<'_>) -> Result<Option<(ConfigDocument, String)>> {
    let path: Option<PathBuf> = place.config.map(Into::into).or_else(paths::default_config);
    let path = path.ok_or_else(|| {
        CommandError::Usage(
            "there is no config for the rules of these tools; create one with `toolgate init` or `toolgate import`"
                .to_owned(),
        )
    })?;
    let mut config = ConfigDocument::open(&path)?;
    if config.server_names().iter().any(|name| name == SERVER_NAME) {
        return Ok(None);
    }
    let entry = ServerEntry {
        command: vec![own_program()?, "host-tools".to_owned()],
        ..ServerEntry::default()
    };
    let length = config.text().len();
    config.add_server(SERVER_NAME, &entry)?;
    config.append(RULES);
    let added = config.text().get(length..).unwrap_or(RULES).to_owned();
    Ok(Some((config, added)))
}
