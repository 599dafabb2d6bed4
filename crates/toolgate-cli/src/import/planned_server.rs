//! Translation of a host's entry to a section of `toolgate.toml`.

use super::{
    host_entry::HostEntry,
    host_text::{HostText, TextPart},
    secret_places::{PlannedSecret, SecretPlaces},
    starter_rules::starter_rules,
};
use crate::{
    config::{
        Config, ServerSettings,
        plaintext::{secret_in_url, secret_reason, secrets_in_command},
    },
    config_edit::{EntryValue, ServerEntry},
    hosts::HostScope,
};
use std::path::Path;
use toml_edit::Value;

/// Server to add to the config.
pub(crate) struct PlannedServer {
    /// Server ID.
    pub(crate) id: String,
    /// Lines of the section, without its comment.
    pub(crate) section: String,
    /// Rules for it.
    pub(crate) rules: String,
    /// Settings that the section yields.
    pub(crate) settings: ServerSettings,
    /// Secrets to store, or to be stored by the operator.
    pub(crate) secrets: Vec<PlannedSecret>,
    /// Notes about parts that were changed or left out.
    pub(crate) notes: Vec<String>,
    /// True if the entry itself names the working directory.
    pub(crate) has_directory: bool,
    /// Values of its environment and headers, where they are known.
    pub(crate) values: Vec<(String, Option<String>)>,
}

/// Returns the value of a variable.
fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl PlannedServer {
    /// Translates an entry to a server with this ID. `target` is the config that the server is for.
    ///
    /// # Errors
    /// The config cannot have such a server; the text says why, and what to do.
    pub(crate) fn plan(
        entry: &HostEntry,
        id: &str,
        places: &SecretPlaces<'_>,
        target: &Path,
    ) -> Result<PlannedServer, String> {
        let mut draft = SectionDraft {
            entry,
            id,
            places,
            server: ServerEntry::default(),
            secrets: Vec::new(),
            notes: Vec::new(),
        };
        draft.write_address()?;
        draft.write_values()?;
        draft.write_directory()?;
        for note in &entry.notes {
            draft.note(note);
        }
        draft.note_ignored_keys();
        draft.check_secrets()?;
        let (section, rules) = (draft.server.section(id), draft.rules());
        let settings = checked(target, &format!("{section}\n{rules}"))?;
        let of = |(name, text): &(String, HostText)| (name.clone(), text.resolve(environment));
        let mut values: Vec<_> = entry.env.iter().chain(&entry.headers).map(of).collect();
        values.sort();
        Ok(PlannedServer {
            id: id.to_owned(),
            section,
            rules,
            settings,
            secrets: draft.secrets,
            notes: draft.notes,
            has_directory: entry.cwd.is_some(),
            values,
        })
    }
}

/// Parses a config that has only this server, which applies all checks of a config to it.
fn checked(target: &Path, text: &str) -> Result<ServerSettings, String> {
    let config = Config::parse(target, text).map_err(|error| {
        let text = error.to_string();
        // The position is one in a text that the operator never sees.
        let message = text.split_once(": ").map(|(_, message)| message.to_owned());
        message.unwrap_or(text)
    })?;
    let server = config.servers.into_iter().next();
    server.ok_or_else(|| "internal error: the section has no server; report this".to_owned())
}

/// Section under construction.
struct SectionDraft<'a> {
    entry: &'a HostEntry,
    id: &'a str,
    places: &'a SecretPlaces<'a>,
    server: ServerEntry,
    secrets: Vec<PlannedSecret>,
    notes: Vec<String>,
}

impl SectionDraft<'_> {
    fn note(&mut self, text: impl std::fmt::Display) {
        let note = format!(
            "{:?} ({}): {text}",
            self.entry.name, self.entry.place.position
        );
        self.notes.push(note);
    }

    /// Writes the command or the URL.
    fn write_address(&mut self) -> Result<(), String> {
        if let Some(url) = &self.entry.url {
            self.server.url = Some(in_config(url, "url")?);
            return Ok(());
        }
        let words = self.entry.command.iter();
        let words = words.map(|word| in_config(word, "command"));
        self.server.command = words.collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Rejects secrets at places that cannot refer to a secret.
    fn check_secrets(&self) -> Result<(), String> {
        if let Some((at, why)) = secrets_in_command(&self.server.command).next() {
            return Err(format!(
                "argument {at} of its command {why}, and a command in a toolgate.toml has no secrets; let the program read it from an environment variable in \"env\""
            ));
        }
        match self.server.url.as_deref().and_then(secret_in_url) {
            Some(why) => Err(format!(
                "its url {why}, and a url in a toolgate.toml has no secrets; send it in \"headers\", if the server accepts that"
            )),
            None => Ok(()),
        }
    }

    /// Writes the environment or the headers.
    fn write_values(&mut self) -> Result<(), String> {
        let entry = self.entry;
        let (key, used, other_key, other) = match entry.url {
            Some(_) => ("headers", &entry.headers, "env", &entry.env),
            None => ("env", &entry.env, "headers", &entry.headers),
        };
        if !other.is_empty() {
            let names: Vec<&str> = other.iter().map(|(name, _)| name.as_str()).collect();
            self.note(format!(
                "left out {} of {other_key:?}, which such a server does not have",
                names.join(", ")
            ));
        }
        let mut values = Vec::new();
        for (name, text) in used {
            values.push((name.clone(), self.value(key, name, text)?));
        }
        match entry.url {
            Some(_) => self.server.headers = values,
            None => {
                self.server.env = values;
                self.server.env_pass.clone_from(&entry.env_pass);
            }
        }
        Ok(())
    }

    /// Returns a value of the environment or a header. A secret becomes a reference.
    fn value(&mut self, key: &str, name: &str, text: &HostText) -> Result<EntryValue, String> {
        let is_secret_name = secret_reason(name, "x").is_some();
        match text.0.as_slice() {
            [
                TextPart::Variable {
                    name: variable,
                    default,
                },
            ] if default.is_none() || (is_secret_name && environment(variable).is_some()) => {
                return Ok(EntryValue::Env(variable.clone()));
            }
            [TextPart::File(path)] => return Ok(EntryValue::File(path.clone())),
            _ => {}
        }
        let resolved = text.resolve(environment);
        let written = text.in_config_syntax();
        let has_input = text.0.iter().any(|part| matches!(part, TextPart::Input(_)));
        let is_secret = |text: &str| secret_reason(name, text).is_some() || has_auth_scheme(text);
        let looks_secret =
            resolved.as_deref().is_some_and(is_secret) || written.as_deref().is_ok_and(is_secret);
        if !has_input && !looks_secret {
            let written = written.map_err(|why| {
                format!("{name:?} of {key:?} {why}; write the value itself there")
            })?;
            return Ok(EntryValue::Text(written));
        }
        let sources = text.sources().join(" and ");
        let (secret, reference) = self.places.secret(self.id, name, resolved, &self.secrets);
        match (&secret.value, sources.is_empty()) {
            (Some(_), false) => self.note(format!(
                "{name:?} of {key:?} joins text with {sources}, which a toolgate.toml cannot do with a secret; {} has the present value, and does not follow a change",
                secret.place
            )),
            (None, _) if !secret.exists => self.note(format!(
                "{name:?} of {key:?} needs {sources}; store {} with: {}",
                value_form(text),
                secret.how_to_store
            )),
            _ => {}
        }
        self.secrets.push(secret);
        Ok(reference)
    }

    /// Writes the working directory: that of the entry, or that of its project.
    fn write_directory(&mut self) -> Result<(), String> {
        if self.entry.url.is_some() {
            return Ok(());
        }
        let place = &self.entry.place;
        let project = matches!(place.scope, Some(HostScope::Project | HostScope::Local));
        let around = place.directory.to_string_lossy();
        let directory = match &self.entry.cwd {
            Some(cwd) => {
                let written = in_config(cwd, "cwd")?;
                match written.starts_with(['/', '~', '$']) {
                    true => written,
                    false => place.directory.join(written).display().to_string(),
                }
            }
            None if project => HostText::literal(around).in_config_syntax()?,
            None => return Ok(()),
        };
        self.server.cwd = Some(directory);
        Ok(())
    }

    fn note_ignored_keys(&mut self) {
        if !self.entry.ignored_keys.is_empty() {
            let keys: Vec<String> = self
                .entry
                .ignored_keys
                .iter()
                .map(|key| format!("{key:?}"))
                .collect();
            self.note(format!(
                "left out {}, which toolgate.toml does not have",
                keys.join(", ")
            ));
        }
    }

    /// Returns the starter rules, and rules for the tools that the host leaves out.
    fn rules(&self) -> String {
        let entry = self.entry;
        // Package names have no references.
        let literal = |text: &HostText| text.in_config_syntax().unwrap_or_default();
        let words: Vec<String> = entry.command.iter().map(literal).collect();
        let url = entry.url.as_ref().map(literal);
        let mut rules: Vec<String> = starter_rules(self.id, &words, url.as_deref())
            .into_iter()
            .collect();
        let globs = |names: &[String]| {
            let glob = |name: &String| quoted(&format!("{}.{}", self.id, glob_of(name)));
            names.iter().map(glob).collect::<Vec<_>>().join(", ")
        };
        if !entry.denied_tools.is_empty() {
            rules.push(format!(
                "[[rule]] # tools that the host leaves out\ntools = [{}]\naction = \"deny\"\n",
                globs(&entry.denied_tools)
            ));
        }
        if let Some(only) = &entry.only_tools {
            rules.push(format!(
                "[[rule]] # the host uses only these tools\ntools = [\"{}.*\"]\nexcept = [{}]\naction = \"deny\"\n",
                self.id,
                globs(only)
            ));
        }
        rules.join("\n")
    }
}

/// Returns true for the value of an authorization header, whatever the variable or header is called.
fn has_auth_scheme(text: &str) -> bool {
    let scheme = text.split_once(' ').map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        ["bearer", "basic", "token"].contains(&scheme.to_lowercase().as_str())
    })
}

/// Returns a glob for a tool's name. A character that globs do not support becomes `?`.
fn glob_of(name: &str) -> String {
    let unsupported = |c: char| c.is_whitespace() || c.is_control() || "[]{}!\\,^".contains(c);
    name.replace(unsupported, "?")
}

fn in_config(text: &HostText, key: &str) -> Result<String, String> {
    text.in_config_syntax()
        .map_err(|why| format!("its {key} {why}; write the value itself there"))
}

/// Describes the value that the operator has to store.
fn value_form(text: &HostText) -> String {
    let part = |part: &TextPart| match part {
        TextPart::Literal(text) => text.clone(),
        TextPart::Variable { name, .. } => format!("<{name}>"),
        TextPart::Input(id) => format!("<{id}>"),
        TextPart::File(path) => format!("<{path}>"),
        TextPart::Unknown(written) => written.clone(),
    };
    match text.0.as_slice() {
        [_] => "the value".to_owned(),
        parts => format!("{:?}", parts.iter().map(part).collect::<String>()),
    }
}

/// Returns a TOML string.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
