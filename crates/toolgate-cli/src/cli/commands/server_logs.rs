//! `toolgate logs`: what a server wrote to its stderr.

use super::{CommandError, DataLocation, Result, print};
use crate::{
    args::LogsOptions,
    cli::output::json_line,
    config::Config,
    event_log::{is_same_file, rotated_path},
    runtime::dry_run::nearest_name,
    servers::{stderr_directory, stderr_path},
};
use schemars::JsonSchema;
use serde::Serialize;
use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, Read},
    path::Path,
    process::ExitCode,
    thread,
    time::Duration,
};
use toolgate_core::visible;

/// Interval at which `-f` looks for new lines.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(200);

/// Runs `toolgate logs`. The files are read, so it works without a running gateway.
pub(super) fn run(place: &DataLocation<'_>, wanted: &LogsOptions) -> Result<ExitCode> {
    let directory = stderr_directory(&place.data()?);
    let path = stderr_path(&directory, &wanted.server);
    let config = place.config().ok();
    let stored = stored_servers(&directory);
    if !stored.contains(&wanted.server) {
        let why = absence(config.as_ref(), stored, &wanted.server)?;
        eprintln!("toolgate: {why}");
    }
    // Open the file before its predecessor is read: a rotation in between repeats lines instead of losing them.
    let mut open = File::open(&path).ok();
    let mut text = read_text(&rotated_path(&path))?;
    let mut rest = open.as_mut().map_or(Ok(Vec::new()), read_new)?;
    text.push_str(&complete_lines(&mut rest));
    let output = LogFormat {
        server: &wanted.server,
        json: wanted.json,
    };
    print(&output.text(last_lines(&text, wanted.count))?)?;
    match wanted.follow {
        true => follow(&path, open, rest, &output),
        false => Ok(ExitCode::SUCCESS),
    }
}

/// Line that a server wrote to its stderr.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct LogLineOutput {
    /// Server in the config.
    server: String,
    /// Time at which the gateway read the line, in RFC 3339; `null` if the stored line has none.
    #[schemars(extend("format" = "date-time"))]
    at: Option<String>,
    text: String,
}

/// Format of the output.
struct LogFormat<'a> {
    server: &'a str,
    json: bool,
}

impl LogFormat<'_> {
    /// Formats stored lines.
    fn text(&self, lines: &str) -> Result<String> {
        match self.json {
            true => lines
                .lines()
                .map(|line| json_line(&self.line(line)))
                .collect(),
            false => Ok(visible(lines)),
        }
    }

    /// Splits a stored line into its time and its text.
    fn line(&self, line: &str) -> LogLineOutput {
        let is_time = |text: &str| text.len() == 24 && text.ends_with('Z') && text.contains('T');
        let (at, text) = match line.split_once(' ').filter(|(time, _)| is_time(time)) {
            Some((time, text)) => (Some(time.to_owned()), text),
            None => (None, line),
        };
        LogLineOutput {
            server: self.server.to_owned(),
            at,
            text: text.to_owned(),
        }
    }
}

/// Prints new lines until the reader of the output is gone. `rest` is the beginning of the next line.
fn follow(
    path: &Path,
    mut open: Option<File>,
    mut rest: Vec<u8>,
    output: &LogFormat<'_>,
) -> Result<ExitCode> {
    loop {
        thread::sleep(FOLLOW_INTERVAL);
        let named = File::open(path).ok();
        if let Some(file) = &mut open {
            rest.extend(read_new(file)?);
        }
        print(&output.text(&complete_lines(&mut rest))?)?;
        if !is_same(open.as_ref(), named.as_ref()) {
            open = named;
        }
    }
}

/// Returns why there is no file of a server.
///
/// # Errors
/// There is no such server, or it has no stderr.
fn absence(config: Option<&Config>, stored: BTreeSet<String>, id: &str) -> Result<String> {
    let servers = config.map(|config| config.servers.as_slice());
    let servers = servers.unwrap_or_default();
    match servers.iter().find(|server| server.id == id) {
        Some(server) if server.address.is_some() => Err(CommandError::Failure(format!(
            "the server {id} has a url; only a server that toolgate starts has a stderr; `toolgate status` shows why a server is not running"
        ))),
        Some(_) => Ok(format!("the server {id} has not written to stderr yet")),
        None => {
            let known = servers.iter().map(|server| server.id.clone());
            let known: BTreeSet<String> = known.chain(stored).collect();
            Err(CommandError::Failure(unknown_server(id, known)))
        }
    }
}

/// Returns the message about an unknown server, with the nearest name or all names.
pub(super) fn unknown_server(id: &str, known: BTreeSet<String>) -> String {
    let all = known.iter().cloned().collect::<Vec<_>>().join(", ");
    match nearest_name(id, known) {
        Some(near) => format!("there is no server {id:?}; did you mean {near:?}?"),
        None if all.is_empty() => format!("there is no server {id:?}"),
        None => format!("there is no server {id:?}; the servers are: {all}"),
    }
}

/// Returns the servers that have a file.
fn stored_servers(directory: &Path) -> BTreeSet<String> {
    let entries = directory.read_dir().into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let id = |name: String| {
        let name = name.strip_suffix(".1").unwrap_or(&name);
        Some(name.strip_suffix(".log")?.to_owned())
    };
    names.filter_map(id).collect()
}

fn read_text(path: &Path) -> Result<String> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(unreadable(&error)),
    }
}

/// Reads what was appended to a file since the last time.
fn read_new(file: &mut File) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|e| unreadable(&e))?;
    Ok(bytes)
}

fn unreadable(error: &io::Error) -> CommandError {
    CommandError::Failure(format!(
        "cannot read the stderr of the server: {error}; check the permissions of the data directory"
    ))
}

/// Takes the complete lines, and leaves the beginning of the next one.
fn complete_lines(bytes: &mut Vec<u8>) -> String {
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    let lines: Vec<u8> = bytes.drain(..end.map_or(0, |end| end + 1)).collect();
    String::from_utf8_lossy(&lines).into_owned()
}

fn last_lines(text: &str, count: usize) -> &str {
    let mut starts = text.rmatch_indices('\n').map(|(at, _)| at + 1);
    match starts.nth(count) {
        Some(start) => &text[start..],
        None => text,
    }
}

fn is_same(one: Option<&File>, other: Option<&File>) -> bool {
    let metadata = |file: Option<&File>| file.and_then(|file| file.metadata().ok());
    match (metadata(one), metadata(other)) {
        (Some(one), Some(other)) => is_same_file(&one, &other),
        (one, other) => one.is_none() && other.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_the_last_complete_lines() {
        let mut bytes = b"one\ntwo\nthree\nfo".to_vec();
        let text = complete_lines(&mut bytes);
        assert_eq!(bytes, b"fo");
        assert_eq!(last_lines(&text, 2), "two\nthree\n");
        assert_eq!(last_lines(&text, 9), "one\ntwo\nthree\n");
        assert_eq!(last_lines(&text, 0), "");
    }

    #[test]
    fn names_the_nearest_server() {
        let known = || BTreeSet::from(["files".to_owned(), "github".to_owned()]);
        assert!(unknown_server("flies", known()).ends_with("did you mean \"files\"?"));
        assert!(unknown_server("xyz", known()).ends_with("the servers are: files, github"));
    }
}
