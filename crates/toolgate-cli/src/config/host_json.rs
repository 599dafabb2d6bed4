//! Reads the `mcpServers` JSON that hosts have, such as `claude_desktop_config.json`.

use super::{
    Config, ConfigSource,
    address::{self, RemoteAddress},
    client_registration::{ClientRegistration, SignInParty},
    config_value::ConfigValue,
    env_name::check_env_name,
    error::{ConfigError, ConfigText},
    expand,
    json::{JsonDocument, JsonEntries, blank_comments, json_syntax_error},
    limits::GatewayLimits,
    plaintext,
    server::ServerSettings,
    server_names::{duplicate_id, normalize_id},
    server_section::CredentialOwner,
};
use serde_json::value::RawValue;
use std::{borrow::Cow, path::Path};

/// Key names that hosts use for a server URL.
const URL_KEYS: [&str; 3] = ["url", "serverUrl", "httpUrl"];

/// Reads a config in JSON; relative paths in it start at `base`.
pub(super) fn read(
    doc: ConfigText<'_>,
    base: &Path,
    source: ConfigSource,
) -> Result<Config, ConfigError> {
    let text = blank_comments(doc.text);
    let doc = ConfigText { text: &text, ..doc };
    let json = JsonDocument(doc);
    let root: &RawValue =
        serde_json::from_str(doc.text).map_err(|error| json_syntax_error(doc, &error))?;
    let root_entries = json.object(root, "the file")?;
    let Some(all) = root_entries.get("mcpServers") else {
        return Err(json.error(root, "this JSON has no \"mcpServers\"; write {\"mcpServers\": {\"NAME\": {\"command\": \"program\"}}}"));
    };
    let (mut servers, mut notes) = (Vec::new(), Vec::new());
    for (name, value) in json.object(all, "\"mcpServers\"")?.0 {
        match read_entry(json, &name, value, base)? {
            Ok(server) => push_server(json, value, &name, server, &mut servers)?,
            Err(note) => notes.push(note),
        }
    }
    if servers.is_empty() {
        return Err(json.error(
            all,
            match notes.is_empty() {
                true => "\"mcpServers\" contains no server; add one",
                false => "\"mcpServers\" contains only disabled servers; enable one, or add one",
            },
        ));
    }
    let mut config = Config::with_defaults(source, servers, GatewayLimits::default());
    let clear: Vec<String> = config.servers.iter().flat_map(plaintext_notes).collect();
    config.has_plaintext_secrets = !clear.is_empty();
    config.notes = notes.into_iter().chain(clear).collect();
    Ok(config)
}

/// Returns notes on plaintext secrets of a server: hosts write them that way, so they are only reported.
fn plaintext_notes(server: &ServerSettings) -> Vec<String> {
    let id = &server.id;
    let note = |what: String, instead: &str| {
        format!(
            "the server {id:?} has a plaintext secret in this file, in {what}; toolgate uses it, because only you can read the file, but it is safer to write {instead} in a toolgate.toml"
        )
    };
    let named = |list: &[(String, ConfigValue)], key: &str| -> Vec<String> {
        let one = |(name, given): &(String, ConfigValue)| match given {
            ConfigValue::Plaintext(text) => plaintext::secret_reason(name, text).map(|_| {
                note(
                    format!("{name:?} of {key:?}"),
                    &format!("{key} = {{ {name} = {{ env = \"NAME\" }} }}"),
                )
            }),
            _ => None,
        };
        list.iter().filter_map(one).collect()
    };
    let mut notes = named(&server.env, "env");
    if let Some(address) = &server.address {
        notes.extend(named(&address.headers, "headers"));
        let url = plaintext::secret_in_url(&address.url).map(|_| "\"url\"".to_owned());
        notes.extend(url.map(|what| note(what, "headers = { NAME = { env = \"NAME\" } }")));
    }
    let words = plaintext::secrets_in_command(&server.command).next();
    notes.extend(words.map(|(at, _)| {
        note(
            format!("argument {at} of \"args\""),
            "env = { NAME = { env = \"NAME\" } } (if the program reads its environment)",
        )
    }));
    notes
}

fn push_server(
    json: JsonDocument<'_>,
    value: &RawValue,
    name: &str,
    server: ServerSettings,
    servers: &mut Vec<ServerSettings>,
) -> Result<(), ConfigError> {
    servers.push(server);
    match duplicate_id(servers.iter().map(|server| server.id.as_str())) {
        Some(id) => Err(json.error(
            value,
            format!(
                "{name:?} and an entry before it both become the server id {id:?}; rename one of them"
            ),
        )),
        None => Ok(()),
    }
}

/// Reads one server, or returns a note why it is skipped.
fn read_entry(
    json: JsonDocument<'_>,
    name: &str,
    value: &RawValue,
    base: &Path,
) -> Result<Result<ServerSettings, String>, ConfigError> {
    let entries = json.object(value, &format!("{name:?}"))?;
    let left_out = |why: String| {
        Ok(Err(format!(
            "{}: the server {name:?} is skipped: {why}",
            json.0.position(json.offset(value))
        )))
    };
    if entries
        .get("disabled")
        .is_some_and(|value| value.get() == "true")
    {
        return left_out("it is disabled".to_owned());
    }
    let id = normalize_id(name);
    if id.is_empty() || id.len() > 32 {
        return Err(json.error(
            value,
            format!(
                "{name:?} cannot be turned into a server id; choose a name of 1 to 32 letters, digits and \"-\""
            ),
        ));
    }
    let url = URL_KEYS.iter().find(|key| entries.get(key).is_some());
    match url {
        Some(key) => read_remote_server(json, name, id, key, &entries).map(Ok),
        None => read_process_server(json, name, id, value, &entries, base).map(Ok),
    }
}

/// Reads a remote server.
fn read_remote_server<'a>(
    json: JsonDocument<'a>,
    name: &str,
    id: String,
    key: &str,
    entries: &JsonEntries<'a>,
) -> Result<ServerSettings, ConfigError> {
    let what = |key: &str| format!("{key:?} of {name:?}");
    let mut address = RemoteAddress {
        url: String::new(),
        headers: Vec::new(),
        client: ClientRegistration::Dynamic,
        sign_in: SignInParty::Person,
        danger_private: false,
        exchange: None,
        credential_owner: CredentialOwner::Shared,
    };
    if let Some(value) = entries.get(key) {
        address.url = text(json, value, &what(key))?;
        address::check_server_url(&address.url).map_err(|reason| {
            json.error(
                value,
                format!("{} cannot be used: {reason}; correct it", what(key)),
            )
        })?;
    }
    if let Some(value) = entries.get("headers") {
        for (name, value) in json.object(value, &what("headers"))?.0 {
            let given = possibly_secret(json, value, &format!("{name:?} in {}", what("headers")))?;
            let word = match &given {
                ConfigValue::Plaintext(word) => word,
                _ => "",
            };
            address::check_header(&name, word).map_err(|text| json.error(value, text))?;
            address.headers.push((name, given));
        }
    }
    let mut server = ServerSettings::new(id, Vec::new());
    server.address = Some(address);
    Ok(server)
}

fn read_process_server<'a>(
    json: JsonDocument<'a>,
    name: &str,
    id: String,
    value: &'a RawValue,
    entries: &JsonEntries<'a>,
    base: &Path,
) -> Result<ServerSettings, ConfigError> {
    let what = |key: &str| format!("{key:?} of {name:?}");
    let missing = || {
        json.error(
            value,
            format!("{name:?} has neither \"command\" nor \"url\"; write \"command\": \"program\" or \"url\": \"https://mcp.example.com/mcp\""),
        )
    };
    let program = text(
        json,
        entries.get("command").ok_or_else(missing)?,
        &what("command"),
    )?;
    if program.is_empty() {
        return Err(json.error(
            value,
            format!("{} is empty; write the program to start", what("command")),
        ));
    }
    let mut command = vec![program];
    if let Some(args) = entries.get("args") {
        let args: Vec<&RawValue> = json.typed(args, &what("args"), "an array of strings")?;
        for arg in args {
            command.push(text(json, arg, &what("args"))?);
        }
    }
    let mut server = ServerSettings::new(id, command);
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
    json: JsonDocument<'a>,
    value: &'a RawValue,
    what: &str,
) -> Result<Vec<(String, ConfigValue)>, ConfigError> {
    let pair = |(name, value): (String, &'a RawValue)| {
        check_env_name(&name).map_err(|text| json.error(value, text))?;
        let given = possibly_secret(json, value, &format!("{name:?} in {what}"))?;
        Ok((name, given))
    };
    json.object(value, what)?.0.into_iter().map(pair).collect()
}

/// Reads a value of `env` or `headers`. A value that is one variable stays a reference, so a secret is not copied here.
fn possibly_secret<'a>(
    json: JsonDocument<'a>,
    value: &'a RawValue,
    what: &str,
) -> Result<ConfigValue, ConfigError> {
    let expanded = text(json, value, what)?;
    let written: String = json.typed(value, what, "a string")?;
    Ok(match expand::sole_reference(&written) {
        Some(name) => ConfigValue::Env(name.to_owned()),
        None => ConfigValue::Plaintext(expanded),
    })
}

fn text<'a>(
    json: JsonDocument<'a>,
    value: &'a RawValue,
    what: &str,
) -> Result<String, ConfigError> {
    let text: String = json.typed(value, what, "a string")?;
    match text {
        text if text.contains('\0') => {
            Err(json.error(value, format!("{what} contains a NUL character; remove it")))
        }
        text => expand::expand_variables(&text, expand::environment)
            .map(Cow::into_owned)
            .map_err(|wrong| json.error(value, format!("{what} {wrong}"))),
    }
}
