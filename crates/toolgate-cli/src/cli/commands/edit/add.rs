//! `toolgate add`: a new server in the config.

use super::{
    super::{CommandError, DataLocation, Result, print},
    reload_notice, secret_input,
};
use crate::{
    args::AddOptions,
    config::{
        check_env_name, check_server_name, name_of_command, name_of_url, secret_reason,
        sole_reference,
    },
    config_edit::{ConfigDocument, EntryValue, ServerEntry, write_private_file},
};
use std::{
    path::{Path, PathBuf, absolute},
    process::ExitCode,
};
use toolgate_core::visible_line;

/// First lines of a config that this command creates.
const NEW_CONFIG: &str = "\
# Config of Toolgate. `toolgate check` validates it, and `toolgate doctor` finds problems.
# A call that no rule allows waits for your approval: `toolgate inbox`, or the console.
";

/// Program or URL of the new server, and its name.
struct NewServer {
    name: String,
    entry: ServerEntry,
}

/// Adds a server.
pub(in crate::cli::commands) fn add(
    place: &DataLocation<'_>,
    wanted: &AddOptions,
) -> Result<ExitCode> {
    let path = place.config_path()?;
    let mut new = new_server(wanted)?;
    check_server_name(&new.name).map_err(CommandError::Usage)?;
    // Nothing is asked for a server that cannot be added.
    edit(&path, &new, wanted.replace)?.check()?;
    let secrets = read_secrets(&path, wanted, &mut new)?;
    let config = edit(&path, &new, wanted.replace)?;
    config.check()?;
    for (file, value) in &secrets {
        write_private_file(file, &format!("{value}\n"))?;
    }
    warn_of_unset_variables(&new.entry);
    let (is_new, config) = (config.is_new(), config.save()?);
    let file = visible_line(&path.display().to_string());
    let begun = if is_new { " (a new file)" } else { "" };
    let mut text = format!("added the server {} to {file}{begun}\n", new.name);
    for (file, _) in &secrets {
        let file = visible_line(&file.display().to_string());
        text.push_str(&format!("stored a secret in {file}\n"));
    }
    if wanted.disabled {
        text.push_str(&format!(
            "it is disabled; enable it with: toolgate enable {}{}\n",
            new.name,
            place.option_words()
        ));
    }
    text.push_str(&reload_notice::text(place, &path, &config)?);
    print(&text)
}

/// Reports variables that the server needs and that this environment lacks: the gateway may be started in another one.
fn warn_of_unset_variables(entry: &ServerEntry) {
    for (_, value) in entry.env.iter().chain(&entry.headers) {
        if let EntryValue::Env(name) = value
            && std::env::var_os(name).is_none()
        {
            eprintln!(
                "toolgate: the environment variable {name} is not set here; set it in the environment in which toolgate starts"
            );
        }
    }
}

/// Returns the config with the new server.
fn edit(path: &Path, new: &NewServer, replace: bool) -> Result<ConfigDocument> {
    let mut config = ConfigDocument::open_or_create(path, NEW_CONFIG)?;
    if replace && config.server_names().contains(&new.name) {
        config.remove_server(&new.name)?;
    }
    config.add_server(&new.name, &new.entry)?;
    Ok(config)
}

/// Reads the command line.
fn new_server(wanted: &AddOptions) -> Result<NewServer> {
    let usage = |text: String| Err(CommandError::Usage(text));
    let is_url = |word: &String| word.contains("://");
    let remote_only = |given: bool, option: &str, needs: &str| match given {
        true => Err(CommandError::Usage(format!(
            "{option} is only valid for a server with {needs}; remove it"
        ))),
        false => Ok(()),
    };
    let mut new = match (wanted.target.as_slice(), wanted.command.as_slice()) {
        ([], []) => {
            return usage("the server is missing; write its program after --, as in `toolgate add -- npx -y PACKAGE`, or its URL".to_owned());
        }
        ([url], []) if is_url(url) => remote(name_of_url(url), url),
        ([name, url], []) if is_url(url) => remote(name.clone(), url),
        ([url, ..], [_, ..]) if is_url(url) => {
            return usage("a server has either a URL or a program; remove one of them".to_owned());
        }
        ([], command) => program(name_of_command(command), command, wanted.cwd.as_deref())?,
        ([name], command @ [_, ..]) => program(name.clone(), command, wanted.cwd.as_deref())?,
        (words, command) => {
            let words: Vec<&str> = words.iter().chain(command).map(String::as_str).collect();
            return usage(format!(
                "{:?} is neither a name with a URL nor a name with a program after --; write `toolgate add {}`",
                words.join(" "),
                match words.as_slice() {
                    [name] =>
                        format!("{name} -- PROGRAM` or `toolgate add {name} https://HOST/mcp"),
                    words => format!("-- {}", words.join(" ")),
                }
            ));
        }
    };
    let is_remote = new.entry.url.is_some();
    remote_only(is_remote && !wanted.env.is_empty(), "--env", "a program")?;
    remote_only(is_remote && wanted.cwd.is_some(), "--cwd", "a program")?;
    remote_only(!is_remote && !wanted.header.is_empty(), "--header", "a URL")?;
    for given in &wanted.env {
        new.entry.env.push(env_value(given)?);
    }
    for given in &wanted.header {
        new.entry.headers.push(header_value(given)?);
    }
    new.entry.disabled = wanted.disabled;
    let names = new
        .entry
        .env
        .iter()
        .chain(&new.entry.headers)
        .map(|(name, _)| name)
        .chain(&wanted.secret);
    let names: Vec<&String> = names.collect();
    if let Some((_, twice)) = names
        .iter()
        .enumerate()
        .find(|(at, name)| names[..*at].contains(name))
    {
        return usage(format!("{twice} is given twice; keep one of the two"));
    }
    Ok(new)
}

fn remote(name: String, url: &str) -> NewServer {
    let entry = ServerEntry {
        url: Some(url.to_owned()),
        ..ServerEntry::default()
    };
    NewServer { name, entry }
}

/// Returns a server with a program. A relative path of the program counts from this directory, not from the gateway's.
fn program(name: String, command: &[String], cwd: Option<&Path>) -> Result<NewServer> {
    let from_here = |path: &Path| match absolute(path) {
        Ok(path) => path.into_os_string().into_string().map_err(|path| {
            CommandError::Usage(format!(
                "{} is not UTF-8, which a config must be; rename it",
                path.display()
            ))
        }),
        Err(error) => Err(CommandError::Usage(format!("{}: {error}", path.display()))),
    };
    let cwd = cwd.map(from_here).transpose()?;
    let mut command = command.to_vec();
    if let Some(program) = command.first_mut()
        && program.contains('/')
        && !program.starts_with(['/', '~'])
    {
        let base = cwd.as_deref().unwrap_or_default();
        *program = from_here(&PathBuf::from(base).join(&*program))?;
    }
    let entry = ServerEntry {
        command,
        // The config expands variables in paths, and a directory may have such a name.
        cwd: cwd.map(|cwd| cwd.replace("${", "$${")),
        ..ServerEntry::default()
    };
    Ok(NewServer { name, entry })
}

/// Reads `NAME` or `NAME=VALUE`.
fn env_value(given: &str) -> Result<(String, EntryValue)> {
    let (name, value) = match given.split_once('=') {
        Some((name, value)) => (name, text_value(value)),
        None => (given, EntryValue::Env(given.to_owned())),
    };
    check_env_name(name).map_err(|text| CommandError::Usage(format!("--env: {text}")))?;
    let instead = format!(
        "pass it with --secret {name}, which stores it in a file that only you can read, or with --env {name}, which takes it from the environment of toolgate"
    );
    check_plaintext("--env", name, &value, &instead)?;
    Ok((name.to_owned(), value))
}

/// Reads `NAME=VALUE` or `NAME: VALUE`.
fn header_value(given: &str) -> Result<(String, EntryValue)> {
    let at = given.find(['=', ':']);
    let Some((name, value)) = at.map(|at| (given[..at].trim(), given[at + 1..].trim())) else {
        return Err(CommandError::Usage(
            "--header has no value; write --header NAME=VALUE, --header NAME='${VARIABLE}', or --secret NAME".to_owned(),
        ));
    };
    let value = text_value(value);
    let instead = format!(
        "pass it with --secret {name}, which stores it in a file that only you can read, or with --header {name}='${{VARIABLE}}', which takes it from the environment of toolgate"
    );
    check_plaintext("--header", name, &value, &instead)?;
    Ok((name.to_owned(), value))
}

/// Rejects a value that would be a secret in plaintext, which the config reader rejects as well.
fn check_plaintext(option: &str, name: &str, value: &EntryValue, instead: &str) -> Result<()> {
    let EntryValue::Text(text) = value else {
        return Ok(());
    };
    match secret_reason(name, text) {
        None => Ok(()),
        Some(why) => Err(CommandError::Usage(format!(
            "{option}: {name} {why}, and its value would be in plaintext in the config; {instead}"
        ))),
    }
}

/// Returns the value of a text. A text that is one variable stays a reference, because it may be a secret.
fn text_value(text: &str) -> EntryValue {
    match sole_reference(text) {
        Some(name) => EntryValue::Env(name.to_owned()),
        None => EntryValue::Text(text.to_owned()),
    }
}

/// Reads the values of `--secret`, and adds their files to the server.
fn read_secrets(
    config: &Path,
    wanted: &AddOptions,
    new: &mut NewServer,
) -> Result<Vec<(PathBuf, String)>> {
    let mut secrets = Vec::new();
    for name in &wanted.secret {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_".contains(&b);
        if name.is_empty() || !name.bytes().all(plain) {
            // The text may contain the secret itself.
            return Err(CommandError::Usage("--secret: write the name of the variable or header alone; the value is read from the terminal or from standard input".to_owned()));
        }
        let is_remote = new.entry.url.is_some();
        if !is_remote {
            check_env_name(name)
                .map_err(|text| CommandError::Usage(format!("--secret: {text}")))?;
        }
        let file = format!("{}.{name}.secret", new.name);
        let value = secret_input::read(name)?;
        let values = if is_remote {
            &mut new.entry.headers
        } else {
            &mut new.entry.env
        };
        values.push((name.clone(), EntryValue::File(file.clone())));
        secrets.push((config.with_file_name(file), value));
    }
    Ok(secrets)
}
