//! `[server.NAME]`: settings of one upstream server.

use super::{
    address::{self, RemoteAddress},
    audit_content::AuditContentOverride,
    client_registration,
    config_value::{self, ConfigValue},
    environment::{read_env, read_env_pass},
    error::ConfigError,
    input_requests::InputRequestSettings,
    limits::GatewayLimits,
    overrides::ToolOverride,
    pins, plaintext,
    rate::RateSetting,
    revision::RevisionChoice,
    sanitizer::SanitizerSettings,
    section::{ConfigField, ConfigSection},
    server_names::{check_id, check_prefix, read_prefix},
};
use std::{
    fmt,
    path::{Path, PathBuf},
};
use toolgate_policy::{
    ChangedDefinitionAction, NewDefinitionAction, RequiredDefaults, UriSpelling,
};

/// Upstream server that the gateway starts or connects to.
#[derive(Clone)]
pub(crate) struct ServerSettings {
    /// Server id in rules, commands and the console: `[a-z0-9-]{1,32}`.
    pub(crate) id: String,
    /// Program and arguments, run without a shell; empty for a remote server.
    pub(crate) command: Vec<String>,
    /// Environment variables to set. The values may be secret.
    pub(crate) env: Vec<(String, ConfigValue)>,
    /// Names of variables passed on from the gateway's environment.
    pub(crate) env_pass: Vec<String>,
    /// Working directory; the gateway's own if absent.
    pub(crate) cwd: Option<PathBuf>,
    /// Address, if the server is remote.
    pub(crate) address: Option<RemoteAddress>,
    /// True if its tool annotations are trusted.
    pub(crate) trust_annotations: bool,
    /// Protocol revision to use with it.
    pub(crate) revision: RevisionChoice,
    /// Prefix of its tool names for clients; empty only if it is the only server.
    pub(crate) prefix: String,
    /// Start timeout in seconds, if different from the limits.
    pub(crate) start_seconds: Option<u64>,
    /// Call timeout in seconds, if different from the limits.
    pub(crate) call_seconds: Option<u64>,
    /// Maximum number of concurrent calls, if different from the limits.
    pub(crate) max_calls: Option<usize>,
    /// Rate limit for all callers together, if any.
    pub(crate) rate: Option<RateSetting>,
    /// Action for arguments that the input schema does not name.
    pub(crate) unknown_arguments: UnknownArguments,
    /// Spelling of resource URIs that the gateway sends to the server.
    pub(crate) uri_spelling: UriSpelling,
    /// Handling of required arguments with a default.
    pub(crate) required_defaults: RequiredDefaults,
    /// Action for new definitions, if different from `[pins]`.
    pub(crate) pins_first: Option<NewDefinitionAction>,
    /// Action for changed definitions, if different from `[pins]`.
    pub(crate) pins_change: Option<ChangedDefinitionAction>,
    /// Action for results that do not match their output schema.
    pub(crate) output_check: OutputCheck,
    /// Sanitizer settings.
    pub(crate) sanitizer: SanitizerSettings,
    /// Audit settings for its calls, if different from `[audit]`.
    pub(crate) audit_content: AuditContentOverride,
    /// Policy for its input requests.
    pub(crate) input_requests: InputRequestSettings,
    /// Overrides of its tool definitions.
    pub(crate) tool_overrides: Vec<ToolOverride>,
}

/// Action for arguments that a tool's input schema does not name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum UnknownArguments {
    /// Reject the call.
    Refuse,
    /// Pass the arguments on.
    Allow,
}

/// Action for a result that does not match the tool's output schema.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum OutputCheck {
    /// Return an error instead of the result.
    Block,
    /// Return the result and log the mismatch in the audit log.
    Warn,
    /// Do not check.
    Off,
}

/// Omits the environment and the arguments, which may contain secrets.
impl fmt::Debug for ServerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSettings")
            .field("id", &self.id)
            .field("program", &self.command.first())
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// Keys of a server, except those of remote servers.
const KEYS: &[&str] = &[
    "command",
    "env",
    "env_pass",
    "cwd",
    "trust_annotations",
    "revision",
    "prefix",
    "start_seconds",
    "call_seconds",
    "calls",
    "rate",
    "unknown_arguments",
    "uris",
    "required_with_default",
    "output",
    "tools",
    "secrets",
    "outbound_secrets",
    "placeholders",
    "media",
    "links",
    "error_text",
    "mark_untrusted",
    "elicitation_forms",
    "elicitation_urls",
    "sampling",
    "sampling_tokens",
    "roots",
    "pins_first",
    "pins_change",
    "audit_mode",
    "audit_arguments",
    "audit_results",
    "url",
];

/// Returns every key of a server.
pub(super) fn server_keys() -> Vec<&'static str> {
    [
        KEYS,
        address::REMOTE_SERVER_KEYS,
        client_registration::OAUTH_CLIENT_KEYS,
    ]
    .concat()
}

/// Keys that are valid only for a server with a command.
const PROCESS_KEYS: &[&str] = &["command", "env", "env_pass", "cwd"];

/// Example command for error messages.
const EXAMPLE_COMMAND: &str = "[\"program\", \"argument\"]";

impl ServerSettings {
    /// Creates a server with the defaults.
    pub(crate) fn new(id: impl Into<String>, command: Vec<String>) -> ServerSettings {
        let id = id.into();
        ServerSettings {
            prefix: id.clone(),
            id,
            command,
            env: Vec::new(),
            env_pass: Vec::new(),
            cwd: None,
            address: None,
            trust_annotations: false,
            revision: RevisionChoice::default(),
            start_seconds: None,
            call_seconds: None,
            max_calls: None,
            rate: None,
            unknown_arguments: UnknownArguments::Refuse,
            uri_spelling: UriSpelling::Canonical,
            required_defaults: RequiredDefaults::Optional,
            pins_first: None,
            pins_change: None,
            output_check: OutputCheck::Block,
            sanitizer: SanitizerSettings::default(),
            audit_content: AuditContentOverride::default(),
            input_requests: InputRequestSettings::default(),
            tool_overrides: Vec::new(),
        }
    }

    /// Reads all sections `[server.NAME]`, in the order of the file.
    pub(super) fn read_all(
        field: &ConfigField<'_>,
        limits: &GatewayLimits,
        base: &Path,
    ) -> Result<Vec<ServerSettings>, ConfigError> {
        let all = field.any_section(
            "[server]",
            "a section for each server, such as [server.files]",
        )?;
        let entries = all.entries();
        let mut servers = Vec::new();
        for (id, at, field) in &entries {
            check_id(id).map_err(|text| all.doc.error(*at, text))?;
            servers.push(ServerSettings::read(id, field, limits, base)?);
        }
        for ((_, at, _), server) in entries.iter().zip(&servers) {
            check_prefix(server, &servers).map_err(|text| all.doc.error(*at, text))?;
        }
        Ok(servers)
    }

    fn read(
        id: &str,
        field: &ConfigField<'_>,
        limits: &GatewayLimits,
        base: &Path,
    ) -> Result<ServerSettings, ConfigError> {
        let name = format!("[server.{id}]");
        let section = field.section(
            &*name,
            &format!("a section that begins with {name}"),
            &server_keys(),
        )?;
        let mut server = match RemoteAddress::read(&section, id, base)? {
            Some(address) => ServerSettings::remote(id, &section, address)?,
            None => {
                let words = read_command(&section.require("command", EXAMPLE_COMMAND)?)?;
                let mut server = ServerSettings::new(id, words);
                server.read_environment(&section, base)?;
                server
            }
        };
        server.read_settings(&section, limits)?;
        Ok(server)
    }

    /// Creates a remote server, which the gateway does not start.
    fn remote(
        id: &str,
        section: &ConfigSection<'_>,
        address: RemoteAddress,
    ) -> Result<ServerSettings, ConfigError> {
        if let Some(field) = PROCESS_KEYS.iter().find_map(|key| section.get(key)) {
            return Err(field.key_error(
                "is only valid for a server that the gateway starts, but this one has a url; keep one of the two",
            ));
        }
        let mut server = ServerSettings::new(id, Vec::new());
        server.address = Some(address);
        Ok(server)
    }

    fn read_environment(
        &mut self,
        section: &ConfigSection<'_>,
        base: &Path,
    ) -> Result<(), ConfigError> {
        if let Some(field) = section.get("env") {
            self.env = read_env(&field, &self.id, base)?;
        }
        if let Some(field) = section.get("env_pass") {
            self.env_pass = read_env_pass(&field, &self.env)?;
        }
        if let Some(field) = section.get("cwd") {
            self.cwd = Some(field.path(base)?);
        }
        Ok(())
    }

    fn read_settings(
        &mut self,
        section: &ConfigSection<'_>,
        limits: &GatewayLimits,
    ) -> Result<(), ConfigError> {
        if let Some(field) = section.get("trust_annotations") {
            self.trust_annotations = field.boolean()?;
        }
        self.revision = RevisionChoice::read(section)?;
        if let Some(field) = section.get("prefix") {
            self.prefix = read_prefix(&field)?;
        }
        if let Some(field) = section.get("start_seconds") {
            self.start_seconds = Some(field.number(1..=3600)?);
        }
        if let Some(field) = section.get("call_seconds") {
            self.call_seconds = Some(field.number(1..=limits.call_max_seconds)?);
        }
        if let Some(field) = section.get("calls") {
            self.max_calls =
                Some(usize::try_from(field.number(1..=1_000_000)?).unwrap_or(usize::MAX));
        }
        if let Some(field) = section.get("rate") {
            let rate = RateSetting::parse(field.text()?).map_err(|text| field.error(text))?;
            self.rate = Some(rate);
        }
        if let Some(field) = section.get("unknown_arguments") {
            self.unknown_arguments = field.one_of(&[
                ("refuse", UnknownArguments::Refuse),
                ("allow", UnknownArguments::Allow),
            ])?;
        }
        if let Some(field) = section.get("uris") {
            self.uri_spelling = field.one_of(&[
                ("canonical", UriSpelling::Canonical),
                ("verbatim", UriSpelling::Verbatim),
            ])?;
        }
        if let Some(field) = section.get("required_with_default") {
            self.required_defaults = field.one_of(&[
                ("optional", RequiredDefaults::Optional),
                ("required", RequiredDefaults::Required),
            ])?;
        }
        self.sanitizer = SanitizerSettings::read(section)?;
        self.audit_content = AuditContentOverride::read(section)?;
        self.input_requests = InputRequestSettings::read(section)?;
        self.pins_first = pins::read_on_new(section, "pins_first")?;
        self.pins_change = pins::read_on_change(section, "pins_change")?;
        if let Some(field) = section.get("tools") {
            self.tool_overrides = ToolOverride::read_all(&field, &self.id, &self.prefix, limits)?;
        }
        if let Some(field) = section.get("output") {
            self.output_check = field.one_of(&[
                ("block", OutputCheck::Block),
                ("warn", OutputCheck::Warn),
                ("off", OutputCheck::Off),
            ])?;
        }
        Ok(())
    }
}

/// Rejects arguments that look like secrets, as written or expanded. Marked arguments, `None` in `written`, may.
fn check_arguments(
    fields: &[ConfigField<'_>],
    written: &[Option<&str>],
    words: &[String],
) -> Result<(), ConfigError> {
    let pairs = written.iter().zip(words);
    let raw: Vec<String> = pairs
        .map(|(raw, word)| raw.map_or_else(|| word.clone(), str::to_owned))
        .collect();
    let found = plaintext::secrets_in_command(&raw).chain(plaintext::secrets_in_command(words));
    let mut found = found.filter(|(at, _)| written.get(*at).is_some_and(Option::is_some));
    match found.next().and_then(|(at, why)| Some((fields.get(at)?, why))) {
        Some((word, why)) => Err(word.key_error(format!(
            "has an argument that {why}, and would be in plaintext in this file and in the process list; if the program reads it from its environment, write env = {{ NAME = {} }}; otherwise write {{ {} = \"…\" }}",
            "{ env = \"NAME\" }",
            config_value::PLAINTEXT_KEY
        ))),
        None => Ok(()),
    }
}

fn read_command(field: &ConfigField<'_>) -> Result<Vec<String>, ConfigError> {
    let fields = field.list(&format!("an array such as {EXAMPLE_COMMAND}"))?;
    let (mut written, mut words) = (Vec::new(), Vec::new());
    for (at, word) in fields.iter().enumerate() {
        let (raw, expanded) = match config_value::marked_plaintext(word) {
            Some(clear) => (None, clear?.to_owned()),
            None if at == 0 => (Some(word.text()?), word.program()?),
            None => (Some(word.text()?), word.expanded()?.into_owned()),
        };
        written.push(raw);
        words.push(expanded);
    }
    check_arguments(&fields, &written, &words)?;
    match words.first().map(String::as_str) {
        None => Err(field.key_error(format!(
            "is empty; write the program and its arguments, such as {EXAMPLE_COMMAND}"
        ))),
        Some("") => {
            Err(field.key_error("begins with an empty string; the first element is the program"))
        }
        Some(_) => Ok(words),
    }
}
