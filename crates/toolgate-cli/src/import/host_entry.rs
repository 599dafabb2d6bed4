//! Server entries of hosts in one neutral form.

use super::{
    env_file::read_env_file,
    host_text::{HostText, ReferenceSyntax},
    host_value::{HostValue, HostValueKind},
};
use crate::hosts::{Host, HostScope};
use std::path::PathBuf;

/// Server entry of a host, as its file has it.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostEntry {
    /// Name of the server in the host.
    pub(crate) name: String,
    /// Program and arguments; empty for a remote server.
    pub(crate) command: Vec<HostText>,
    /// Environment variables to set.
    pub(crate) env: Vec<(String, HostText)>,
    /// Names of variables to pass on.
    pub(crate) env_pass: Vec<String>,
    /// Working directory.
    pub(crate) cwd: Option<HostText>,
    /// Address of a remote server.
    pub(crate) url: Option<HostText>,
    /// HTTP headers.
    pub(crate) headers: Vec<(String, HostText)>,
    /// True if the host does not use the server.
    pub(crate) is_disabled: bool,
    /// Tools that the host leaves out.
    pub(crate) denied_tools: Vec<String>,
    /// The only tools that the host uses, if it names them.
    pub(crate) only_tools: Option<Vec<String>>,
    /// File with further variables.
    env_file: Option<HostText>,
    /// Notes about parts that could not be read.
    pub(crate) notes: Vec<String>,
    /// Keys without an equal in `toolgate.toml`.
    pub(crate) ignored_keys: Vec<String>,
    /// Place of the entry.
    pub(crate) place: EntryPlace,
}

/// Place of an entry: its host and its file.
#[derive(Clone, Debug, Default)]
pub(crate) struct EntryPlace {
    /// Host; `None` if it is unknown.
    pub(crate) host: Option<&'static Host>,
    /// True if the host itself replaces references to variables.
    pub(crate) host_expands: bool,
    /// Shown `file:line:column`.
    pub(crate) position: String,
    /// Shown path of the file.
    pub(crate) file: String,
    /// Scope of the servers in the file; `None` if it is unknown.
    pub(crate) scope: Option<HostScope>,
    /// Directory in which the host starts the server, and at which relative paths begin.
    pub(crate) directory: PathBuf,
}

/// Keys that say nothing that matters here.
const SILENT_KEYS: [&str; 13] = [
    "type",
    "transport",
    "name",
    "description",
    "icon",
    "gallery",
    "version",
    "source",
    "settings",
    "dev",
    "id",
    "registryUrl",
    "disabledReason",
];

/// Error in one entry: what is wrong, and what to do.
type EntryError = String;

impl HostEntry {
    /// Reads an entry.
    ///
    /// # Errors
    /// A value has the wrong type, or the entry has neither a command nor a URL.
    pub(crate) fn read(
        name: &str,
        value: &HostValue,
        syntax: ReferenceSyntax<'_>,
        place: EntryPlace,
    ) -> Result<HostEntry, EntryError> {
        let fields = value
            .table()
            .ok_or("it must be an object; write its command or url")?;
        let mut entry = HostEntry {
            name: name.to_owned(),
            place,
            ..HostEntry::default()
        };
        for (key, value) in fields {
            entry.read_field(key, value, syntax)?;
        }
        if entry.command.is_empty() && entry.url.is_none() && !entry.is_disabled {
            return Err(match value.get("settings") {
                Some(_) => {
                    "an extension of the host starts it; write its command into a toolgate.toml"
                }
                None => "it has neither a command nor a url; write one of the two",
            }
            .to_owned());
        }
        if let Some(kind) = value.get("type").and_then(HostValue::text)
            && matches!(kind, "ws" | "websocket")
        {
            return Err(format!(
                "its transport {kind:?} is not supported; use the server's address for Streamable HTTP"
            ));
        }
        entry.read_variables();
        let own: Vec<String> = entry.env.iter().map(|(name, _)| name.clone()).collect();
        let expands = entry.place.host_expands;
        let is_literal = |name: &str| {
            own.iter().any(|own| own == name) && !(expands && std::env::var_os(name).is_some())
        };
        let words = entry.command.into_iter();
        entry.command = words.map(|word| word.keep_literal(is_literal)).collect();
        Ok(entry)
    }

    fn read_field(
        &mut self,
        key: &str,
        value: &HostValue,
        syntax: ReferenceSyntax<'_>,
    ) -> Result<(), EntryError> {
        let text =
            |value: &HostValue| scalar(key, value).map(|text| HostText::parse(&text, syntax));
        if value.kind == HostValueKind::Null {
            return Ok(());
        }
        match key {
            "command" => self.read_command(value, syntax)?,
            "args" => {
                for word in list(key, value)? {
                    self.command.push(text(word)?);
                }
            }
            "env" | "environment" => self.env.extend(pairs(key, value, syntax)?),
            "envFile" => self.env_file = Some(text(value)?),
            "env_vars" => self.env_pass = names(key, value)?,
            "cwd" => self.cwd = Some(text(value)?),
            "url" | "serverUrl" | "httpUrl" => {
                // Gemini CLI has `url` for SSE beside `httpUrl`.
                if self.url.is_none() || key == "httpUrl" {
                    self.url = Some(text(value)?);
                }
            }
            "headers" | "http_headers" => self.headers.extend(pairs(key, value, syntax)?),
            "env_http_headers" => {
                for (name, value) in table(key, value)? {
                    let variable = scalar(key, value)?;
                    self.headers
                        .push((name.clone(), HostText::variable(&variable)));
                }
            }
            "bearer_token_env_var" => {
                let mut token = HostText::literal("Bearer ");
                token.0.extend(HostText::variable(&scalar(key, value)?).0);
                self.headers.push(("Authorization".to_owned(), token));
            }
            "disabled" => self.is_disabled |= flag(key, value)?,
            "enabled" => self.is_disabled |= !flag(key, value)?,
            "excludeTools" | "disabledTools" | "disabled_tools" => {
                self.denied_tools = names(key, value)?;
            }
            "includeTools" | "enabled_tools" | "tools" if is_name_list(value) => {
                let only = names(key, value)?;
                self.only_tools = (!only.iter().any(|name| name == "*")).then_some(only);
            }
            key if SILENT_KEYS.contains(&key) => {}
            "autoApprove" | "alwaysAllow" if is_empty_list(value) => {}
            key => self.ignored_keys.push(key.to_owned()),
        }
        Ok(())
    }

    /// Adds the variables of the file that the entry names. The entry itself has precedence.
    fn read_variables(&mut self) {
        let Some(file) = self.env_file.take() else {
            return;
        };
        let path = file.resolve(|name| std::env::var(name).ok());
        let read = match path {
            Some(path) => read_env_file(&self.place.directory.join(path)),
            None => Err(format!("it needs {}", file.sources().join(" and "))),
        };
        match read {
            Ok(variables) => {
                for (name, value) in variables {
                    if !self.env.iter().any(|(known, _)| *known == name) {
                        self.env.push((name, value));
                    }
                }
            }
            Err(why) => self.notes.push(format!(
                "could not take the variables of \"envFile\": {why}; add them to \"env\""
            )),
        }
    }

    /// Reads the three forms of a command: a program, a list with its arguments, or a table of both.
    fn read_command(
        &mut self,
        value: &HostValue,
        syntax: ReferenceSyntax<'_>,
    ) -> Result<(), EntryError> {
        let parse = |text: &str| HostText::parse(text, syntax);
        match &value.kind {
            HostValueKind::Text(program) if program.is_empty() => {
                return Err("its command is empty; write the program to start".to_owned());
            }
            // The arguments may come before the program in the file.
            HostValueKind::Text(program) => self.command.insert(0, parse(program)),
            HostValueKind::List(words) => {
                for word in words {
                    self.command.push(parse(&scalar("command", word)?));
                }
            }
            HostValueKind::Table(fields) => {
                let program = value.get("path").and_then(HostValue::text);
                let program =
                    program.ok_or("its command has no path; write the program to start")?;
                self.command.insert(0, parse(program));
                for (key, value) in fields.iter().filter(|(key, _)| key != "path") {
                    self.read_field(key, value, syntax)?;
                }
            }
            _ => return Err(wrong_type("command", "a string")),
        }
        Ok(())
    }
}

fn wrong_type(key: &str, expected: &str) -> EntryError {
    format!("{key:?} must be {expected}; correct it in the host's file")
}

/// Returns a text, or a number or a boolean as text: hosts accept them too.
fn scalar(key: &str, value: &HostValue) -> Result<String, EntryError> {
    match &value.kind {
        HostValueKind::Text(text) if text.contains('\0') => {
            Err(format!("{key:?} contains a NUL character; remove it"))
        }
        HostValueKind::Text(text) | HostValueKind::Number(text) => Ok(text.clone()),
        HostValueKind::Bool(flag) => Ok(flag.to_string()),
        _ => Err(wrong_type(key, "a string")),
    }
}

fn flag(key: &str, value: &HostValue) -> Result<bool, EntryError> {
    match value.kind {
        HostValueKind::Bool(flag) => Ok(flag),
        _ => Err(wrong_type(key, "true or false")),
    }
}

fn list<'v>(key: &str, value: &'v HostValue) -> Result<&'v [HostValue], EntryError> {
    match &value.kind {
        HostValueKind::List(elements) => Ok(elements),
        _ => Err(wrong_type(key, "a list of strings")),
    }
}

fn table<'v>(key: &str, value: &'v HostValue) -> Result<&'v [(String, HostValue)], EntryError> {
    value.table().ok_or_else(|| wrong_type(key, "an object"))
}

fn names(key: &str, value: &HostValue) -> Result<Vec<String>, EntryError> {
    let name = |value: &HostValue| {
        // Codex also has `{ name = "NAME" }`.
        scalar(key, value.get("name").unwrap_or(value))
    };
    list(key, value)?.iter().map(name).collect()
}

/// Returns true for a list of strings. Some hosts have a table of settings under the same key.
fn is_name_list(value: &HostValue) -> bool {
    matches!(&value.kind, HostValueKind::List(all) if all.iter().all(|one| one.text().is_some()))
}

fn is_empty_list(value: &HostValue) -> bool {
    matches!(&value.kind, HostValueKind::List(all) if all.is_empty())
}

fn pairs(
    key: &str,
    value: &HostValue,
    syntax: ReferenceSyntax<'_>,
) -> Result<Vec<(String, HostText)>, EntryError> {
    let known = table(key, value)?.iter();
    let known = known.filter(|(_, value)| value.kind != HostValueKind::Null);
    let pair = |(name, value): &(String, HostValue)| {
        let text = scalar(&format!("{key}.{name}"), value)?;
        Ok((name.clone(), HostText::parse(&text, syntax)))
    };
    known.map(pair).collect()
}
