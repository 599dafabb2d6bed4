//! Reads the `mcpServers` JSON that hosts have, such as `claude_desktop_config.json`.

use super::{
    Config, Source,
    error::{ConfigError, Doc},
    limits::Limits,
    server::{NO_URL, Server, check_env_name, duplicate, normalised},
};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::{fmt, path::Path};

/// An object as keys and values in their order; the values keep their place in the text.
struct Entries<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Collect)
    }
}

struct Collect;

impl<'de> Visitor<'de> for Collect {
    type Value = Entries<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Entries(entries))
    }
}

impl<'a> Entries<'a> {
    fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| *value)
    }
}

/// A JSON text with places.
#[derive(Clone, Copy)]
struct Json<'a>(Doc<'a>);

impl<'a> Json<'a> {
    /// The offset of a value, which is a part of the text.
    fn offset(self, value: &RawValue) -> usize {
        (value.get().as_ptr() as usize).saturating_sub(self.0.text.as_ptr() as usize)
    }

    fn wrong(self, value: &RawValue, text: impl fmt::Display) -> ConfigError {
        self.0.error(self.offset(value), text)
    }

    /// Reads a value whose syntax is known to be right.
    fn typed<T: Deserialize<'a>>(
        self,
        value: &'a RawValue,
        what: &str,
        write: &str,
    ) -> Result<T, ConfigError> {
        serde_json::from_str(value.get())
            .map_err(|_| self.wrong(value, format!("{what} is not {write}")))
    }

    fn object(self, value: &'a RawValue, what: &str) -> Result<Entries<'a>, ConfigError> {
        let entries: Entries<'a> = self.typed(value, what, "an object in braces")?;
        let twice = |(at, (key, _)): (usize, &(String, _))| {
            entries.0[..at].iter().any(|(other, _)| other == key)
        };
        match entries
            .0
            .iter()
            .enumerate()
            .find(|(at, entry)| twice((*at, entry)))
        {
            Some((_, (key, value))) => Err(self.wrong(
                value,
                format!("{key:?} is there twice in {what}; keep one of the two"),
            )),
            None => Ok(entries),
        }
    }
}

/// Reads a config in JSON; relative paths in it start at `base`.
pub(super) fn read(doc: Doc<'_>, base: &Path, source: Source) -> Result<Config, ConfigError> {
    let json = Json(doc);
    let root: &RawValue = serde_json::from_str(doc.text).map_err(|error| syntax(doc, &error))?;
    let root_entries = json.object(root, "the file")?;
    let Some(all) = root_entries.get("mcpServers") else {
        return Err(json.wrong(root, "this JSON has no \"mcpServers\"; write {\"mcpServers\": {\"NAME\": {\"command\": \"program\"}}}"));
    };
    let (mut servers, mut notes) = (Vec::new(), Vec::new());
    for (name, value) in json.object(all, "\"mcpServers\"")?.0 {
        match entry(json, &name, value, base)? {
            Ok(server) => add(json, value, &name, server, &mut servers)?,
            Err(note) => notes.push(note),
        }
    }
    if servers.is_empty() {
        return Err(json.wrong(
            all,
            format!(
                "\"mcpServers\" has no server that can be started{}",
                because(&notes)
            ),
        ));
    }
    let mut config = Config::of(source, servers, Limits::default());
    config.notes = notes;
    Ok(config)
}

fn because(notes: &[String]) -> String {
    notes
        .first()
        .map_or_else(|| "; add one".to_owned(), |note| format!(": {note}"))
}

fn add(
    json: Json<'_>,
    value: &RawValue,
    name: &str,
    server: Server,
    servers: &mut Vec<Server>,
) -> Result<(), ConfigError> {
    servers.push(server);
    match duplicate(servers) {
        Some(id) => Err(json.wrong(
            value,
            format!(
                "{name:?} and an entry before it both become server id {id:?}; rename one of them"
            ),
        )),
        None => Ok(()),
    }
}

/// One server, or a note on why it is left out.
fn entry(
    json: Json<'_>,
    name: &str,
    value: &RawValue,
    base: &Path,
) -> Result<Result<Server, String>, ConfigError> {
    let entries = json.object(value, &format!("{name:?}"))?;
    let left_out = |why: String| {
        Ok(Err(format!(
            "{}: server {name:?} is left out: {why}",
            json.0.at(json.offset(value))
        )))
    };
    if let Some(key) = ["url", "serverUrl", "httpUrl"]
        .into_iter()
        .find(|key| entries.get(key).is_some())
    {
        return left_out(format!("{key:?} {NO_URL}"));
    }
    if entries
        .get("disabled")
        .is_some_and(|value| value.get() == "true")
    {
        return left_out("it is disabled".to_owned());
    }
    let id = normalised(name);
    if id.is_empty() || id.len() > 32 {
        return Err(json.wrong(
            value,
            format!(
                "{name:?} cannot become a server id; rename it to 1 to 32 of a-z, 0-9 and \"-\""
            ),
        ));
    }
    server(json, name, id, value, &entries, base).map(Ok)
}

fn server<'a>(
    json: Json<'a>,
    name: &str,
    id: String,
    value: &'a RawValue,
    entries: &Entries<'a>,
    base: &Path,
) -> Result<Server, ConfigError> {
    let what = |key: &str| format!("{key:?} of {name:?}");
    let missing = || {
        json.wrong(
            value,
            format!("{name:?} has no \"command\"; write \"command\": \"program\""),
        )
    };
    let program = text(
        json,
        entries.get("command").ok_or_else(missing)?,
        &what("command"),
    )?;
    if program.is_empty() {
        return Err(json.wrong(
            value,
            format!("{} is empty; write the program", what("command")),
        ));
    }
    let mut command = vec![program];
    if let Some(args) = entries.get("args") {
        let args: Vec<&RawValue> = json.typed(args, &what("args"), "a list of texts")?;
        for arg in args {
            command.push(text(json, arg, &what("args"))?);
        }
    }
    let mut server = Server::new(id, command);
    if let Some(value) = entries.get("env") {
        server.env = env(json, value, &what("env"))?;
    }
    let cwd = entries
        .get("cwd")
        .map(|value| text(json, value, &what("cwd")))
        .transpose()?;
    server.cwd = cwd.map(|cwd| base.join(cwd));
    Ok(server)
}

fn env<'a>(
    json: Json<'a>,
    value: &'a RawValue,
    what: &str,
) -> Result<Vec<(String, String)>, ConfigError> {
    let pair = |(name, value): (String, &'a RawValue)| {
        check_env_name(&name).map_err(|text| json.wrong(value, text))?;
        let text = text(json, value, &format!("{name:?} in {what}"))?;
        Ok((name, text))
    };
    json.object(value, what)?.0.into_iter().map(pair).collect()
}

fn text<'a>(json: Json<'a>, value: &'a RawValue, what: &str) -> Result<String, ConfigError> {
    let text: String = json.typed(value, what, "text in quotes")?;
    match text {
        text if text.contains('\0') => {
            Err(json.wrong(value, format!("{what} has a NUL in it; take it out")))
        }
        // Some hosts put a variable here; the server would get the words themselves.
        text if text.contains("${") => Err(json.wrong(
            value,
            format!(
                "{what} has \"${{\" in it, which is not filled in here; write the value itself"
            ),
        )),
        text => Ok(text),
    }
}

/// The parser's words without its place, which stands before them.
fn syntax(doc: Doc<'_>, error: &serde_json::Error) -> ConfigError {
    let text = error.to_string();
    let words = text.split(" at line ").next().unwrap_or(&text);
    let place = format!("{}:{}:{}", doc.name, error.line(), error.column());
    ConfigError::new(place, format!("not JSON: {words}"))
}
