//! Files of hosts: which ones exist, and the server entries in them.

use super::{
    host_entry::{EntryPlace, HostEntry},
    host_text::ReferenceSyntax,
    host_value::{HostValue, HostValueKind},
};
use crate::{
    config::ConfigText,
    hosts::{ANY_KEY, HOSTS, Host, HostFile, HostPath, HostPlaces, HostScope, VariableForm},
};
use std::{
    collections::HashSet,
    io::{ErrorKind, Read},
    path::{Path, PathBuf},
};

/// Maximum size of a host's file in bytes. Claude Code also keeps histories in its file.
const MAX_HOST_FILE_BYTES: u64 = 64 << 20;

/// Host whose texts also have `$NAME`.
const BARE_VARIABLE_HOST: &str = "gemini-cli";

/// Keys under which an unknown file may have its servers, and the host that has them there.
const GUESSED_KEYS: [(&[&str], Option<&str>); 6] = [
    (&["mcpServers"], None),
    (&["servers"], Some("vscode")),
    (&["mcp", "servers"], Some("vscode")),
    (&["context_servers"], Some("zed")),
    (&["mcp_servers"], Some("codex")),
    (&["mcp"], Some("opencode")),
];

/// Entries of the files that were read.
#[derive(Debug, Default)]
pub(crate) struct FoundEntries {
    /// Entries, in the order of the hosts.
    pub(crate) entries: Vec<HostEntry>,
    /// One line for each file or entry that could not be read.
    pub(crate) notes: Vec<String>,
    /// Shown paths of the files with servers, each with its host.
    pub(crate) files: Vec<(String, Option<&'static Host>)>,
}

/// Returns the entries of all files of known hosts that exist.
pub(crate) fn find_entries(places: &HostPlaces) -> FoundEntries {
    let mut found = FoundEntries::default();
    let mut seen = HashSet::new();
    for host in HOSTS {
        for file in host.files {
            let Some(path) = file.path(places) else {
                continue;
            };
            // Two hosts may share the file of a project.
            if !seen.insert((path.clone(), file.servers)) || is_missing(&path) {
                continue;
            }
            found.read_file(&path, &[(host, file)], false, places);
        }
    }
    found
}

/// Returns the entries of one file. Its path or its keys tell the host.
pub(crate) fn read_given_file(path: &Path, places: &HostPlaces) -> FoundEntries {
    let mut found = FoundEntries::default();
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let of = |host: &'static Host| host.files.iter().map(move |file| (host, file));
    let matches: Vec<_> = HOSTS
        .iter()
        .flat_map(of)
        .filter(|(_, file)| path.ends_with(relative_path(file, places)))
        .collect();
    found.read_file(&path, &matches, true, places);
    found
}

fn is_missing(path: &Path) -> bool {
    path.symlink_metadata()
        .is_err_and(|error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
}

fn relative_path(file: &HostFile, places: &HostPlaces) -> &'static str {
    let path = if places.macos { file.macos } else { file.linux };
    match path {
        HostPath::Home(file) | HostPath::Config(file) | HostPath::Project(file) => file,
        HostPath::Variable { file, .. } => file,
    }
}

/// Servers in a file.
struct ServerTable<'v> {
    host: Option<&'static Host>,
    scope: Option<HostScope>,
    /// Directory of the project, for the servers of one.
    project: Option<PathBuf>,
    servers: &'v HostValue,
}

impl FoundEntries {
    fn read_file(
        &mut self,
        path: &Path,
        matches: &[(&'static Host, &'static HostFile)],
        guess: bool,
        places: &HostPlaces,
    ) {
        let shown = shown_path(path, places);
        let text = match read_text(path) {
            Ok(text) => text,
            Err(why) => return self.notes.push(format!("could not take {shown}: {why}")),
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let document = ConfigText { name: &shown, text };
        let is_toml = path
            .extension()
            .is_some_and(|extension| extension == "toml");
        let parsed = match is_toml {
            true => HostValue::parse_toml(text).map(Some),
            false => HostValue::parse_json(text),
        };
        let root = match parsed {
            Ok(Some(root)) => root,
            Ok(None) => return,
            Err(wrong) => {
                let position = document.position(wrong.at);
                return self.notes.push(format!(
                    "could not take {position}: {}; correct the file, and import it again",
                    wrong.text
                ));
            }
        };
        let mut tables: Vec<ServerTable<'_>> = matches
            .iter()
            .flat_map(|(host, file)| known_tables(&root, host, file, path, places))
            .collect();
        if tables.is_empty() && guess {
            tables.extend(guessed_table(&root));
            if tables.is_empty() {
                self.notes.push(format!(
                    "could not take {shown}: it has no MCP servers under a known key, such as \"mcpServers\"; copy them under that key"
                ));
            }
        }
        for table in tables {
            self.read_table(&table, &root, document, path, places);
        }
    }

    fn read_table(
        &mut self,
        table: &ServerTable<'_>,
        root: &HostValue,
        document: ConfigText<'_>,
        path: &Path,
        places: &HostPlaces,
    ) {
        let Some(servers) = table.servers.table() else {
            let position = document.position(table.servers.at);
            return self.notes.push(format!(
                "could not take {position}: the servers must be an object; correct the file, and import it again"
            ));
        };
        if servers.is_empty() {
            return;
        }
        if let Some(project) = table.project.as_ref().filter(|project| !project.is_dir()) {
            return self.notes.push(format!(
                "could not take the servers of the project {} ({}): the directory does not exist",
                project.display(),
                document.position(table.servers.at)
            ));
        }
        if !self.files.iter().any(|(file, _)| file == document.name) {
            self.files.push((document.name.to_owned(), table.host));
        }
        let variables = table.host.and_then(|host| host.style.variables);
        let inputs = input_defaults(root);
        let project = table.project.as_deref().and_then(Path::to_str);
        let syntax = ReferenceSyntax {
            bare: table.host.is_some_and(|host| host.id == BARE_VARIABLE_HOST),
            braces: variables == Some(VariableForm::Braces),
            project,
            inputs: &inputs,
        };
        let directory = match (&table.project, table.scope) {
            (Some(project), _) => project.clone(),
            (None, Some(_)) => places.home.clone().unwrap_or_default(),
            (None, None) => path.parent().map(Path::to_owned).unwrap_or_default(),
        };
        for (at, (name, value)) in servers.iter().enumerate() {
            let place = EntryPlace {
                host: table.host,
                host_expands: variables.is_some(),
                position: document.position(value.at),
                file: document.name.to_owned(),
                scope: table.scope,
                directory: directory.clone(),
            };
            let position = place.position.clone();
            let read = match servers[..at].iter().any(|(other, _)| other == name) {
                true => {
                    Err("the file has another server of this name; rename one of them".to_owned())
                }
                false => HostEntry::read(name, value, syntax, place),
            };
            match read {
                Ok(entry) => self.entries.push(entry),
                Err(why) => self
                    .notes
                    .push(format!("could not take {name:?} ({position}): {why}")),
            }
        }
    }
}

/// Returns the servers at the keys of a known file.
fn known_tables<'v>(
    root: &'v HostValue,
    host: &'static Host,
    file: &HostFile,
    path: &Path,
    places: &HostPlaces,
) -> Vec<ServerTable<'v>> {
    let mut found = vec![(None, root)];
    for key in file.servers {
        let below = found.into_iter();
        found = match *key {
            ANY_KEY => below
                .flat_map(|(_, value)| value.table().unwrap_or_default())
                .map(|(key, value)| (Some(PathBuf::from(key)), value))
                .collect(),
            key => below
                .filter_map(|(project, value)| Some((project, value.get(key)?)))
                .collect(),
        };
    }
    let depth = Path::new(relative_path(file, places)).components().count();
    let around = path.ancestors().nth(depth).map(Path::to_owned);
    let table = |(project, servers)| ServerTable {
        host: Some(host),
        scope: Some(file.scope),
        project: match file.scope {
            HostScope::User => None,
            HostScope::Project => around.clone(),
            HostScope::Local => project,
        },
        servers,
    };
    found.into_iter().map(table).collect()
}

/// Returns the servers at the first known key of a file of an unknown host.
fn guessed_table(root: &HostValue) -> Option<ServerTable<'_>> {
    GUESSED_KEYS.iter().find_map(|(keys, host)| {
        let servers = keys.iter().try_fold(root, |value, key| value.get(key))?;
        Some(ServerTable {
            host: host.and_then(Host::find),
            scope: None,
            project: None,
            servers,
        })
    })
}

/// Returns the defaults of the inputs that are no passwords.
fn input_defaults(root: &HostValue) -> Vec<(String, String)> {
    let inputs = root
        .get("inputs")
        .or_else(|| root.get("mcp")?.get("inputs"));
    let Some(HostValueKind::List(inputs)) = inputs.map(|inputs| &inputs.kind) else {
        return Vec::new();
    };
    let default = |input: &HostValue| {
        let is_password = input.get("password").map(|value| &value.kind);
        if is_password == Some(&HostValueKind::Bool(true)) {
            return None;
        }
        let (id, default) = (input.get("id")?.text()?, input.get("default")?.text()?);
        (!default.is_empty()).then(|| (id.to_owned(), default.to_owned()))
    };
    inputs.iter().filter_map(default).collect()
}

/// Reads a host's file. Its permissions are not checked: unlike a config, it starts nothing until the operator has
/// seen the imported servers.
fn read_text(path: &Path) -> Result<String, String> {
    let unreadable = |error: std::io::Error| {
        format!("it cannot be read: {error}; check the path and its permissions")
    };
    let meta = path.metadata().map_err(unreadable)?;
    if !meta.is_file() {
        return Err("it is not a regular file; give the path of a regular file".to_owned());
    }
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(MAX_HOST_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > MAX_HOST_FILE_BYTES {
        return Err(format!(
            "it is longer than {MAX_HOST_FILE_BYTES} bytes; copy its servers into a smaller file, and import that"
        ));
    }
    String::from_utf8(bytes)
        .map_err(|_| "it is not UTF-8 text; save it as UTF-8, and import it again".to_owned())
}

/// Returns a path with `~` for the home directory.
pub(crate) fn shown_path(path: &Path, places: &HostPlaces) -> String {
    let home = places.home.as_ref();
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    }
}
