//! `[server.NAME]`: settings of one upstream server.

use super::{
    address::RemoteAddress,
    audit_content::AuditContentOverride,
    config_value::ConfigValue,
    environment::{check_env, check_env_pass},
    expand,
    input_requests::InputRequestSettings,
    limits::GatewayLimits,
    overrides::ToolOverride,
    plaintext,
    rate::RateSetting,
    reader::{ConfigTree, NamedSettings, SettingError, SettingPath},
    revision::RevisionChoice,
    sanitizer::SanitizerSettings,
    server_names::{check_id, check_prefix_text, check_prefixes},
    server_section::{OutputCheck, ServerSection, UnknownArguments},
    value_source::{self, MarkableText},
};
use std::{fmt, path::PathBuf};
use toolgate_policy::{
    ChangedDefinitionAction, NewDefinitionAction, RequiredDefaults, UriSpelling,
};

/// Upstream server that the gateway starts or connects to.
#[derive(Clone, PartialEq)]
pub(crate) struct ServerSettings {
    /// Server id in rules, commands and the console: `[a-z0-9-]{1,32}`.
    pub(crate) id: String,
    /// False if the gateway neither starts nor offers it.
    pub(crate) enabled: bool,
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

/// Keys that are valid only for a server with a command.
const PROCESS_KEYS: &[&str] = &["command", "env", "env_pass", "cwd"];

impl ServerSettings {
    /// Creates a server with the defaults.
    pub(crate) fn new(id: impl Into<String>, command: Vec<String>) -> ServerSettings {
        let id = id.into();
        ServerSettings {
            prefix: id.clone(),
            id,
            enabled: true,
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
            unknown_arguments: UnknownArguments::default(),
            uri_spelling: UriSpelling::default(),
            required_defaults: RequiredDefaults::default(),
            pins_first: None,
            pins_change: None,
            output_check: OutputCheck::default(),
            sanitizer: SanitizerSettings::default(),
            audit_content: AuditContentOverride::default(),
            input_requests: InputRequestSettings::default(),
            tool_overrides: Vec::new(),
        }
    }

    /// Checks all sections `[server.NAME]`, in the order of the file.
    pub(super) fn check_all(
        sections: NamedSettings<ServerSection>,
        limits: &GatewayLimits,
        tree: &ConfigTree<'_>,
    ) -> Result<Vec<ServerSettings>, SettingError> {
        let path = |id: &str| SettingPath::new(&["server", id]);
        let mut servers = Vec::new();
        for (id, section) in sections.0 {
            let path = path(&id);
            check_id(&id).map_err(|text| SettingError::at_key(path.clone(), text))?;
            servers.push(ServerSettings::check(&id, section, limits, tree, &path)?);
        }
        let prefixes: Vec<_> = servers
            .iter()
            .map(|server| (server.id.as_str(), server.prefix.as_str()))
            .collect();
        check_prefixes(&prefixes).map_err(|(id, text)| SettingError::at_key(path(&id), text))?;
        Ok(servers)
    }

    fn check(
        id: &str,
        mut section: ServerSection,
        limits: &GatewayLimits,
        tree: &ConfigTree<'_>,
        path: &SettingPath,
    ) -> Result<ServerSettings, SettingError> {
        let mut server = match RemoteAddress::check(&mut section, tree, path)? {
            Some(address) => {
                // The gateway does not start a remote server.
                let mut keys = PROCESS_KEYS.iter().map(|key| path.key(key));
                if let Some(path) = keys.find(|path| tree.contains(path)) {
                    return Err(SettingError::about(
                        path,
                        "is only valid for a server that the gateway starts, but this one has a url; keep one of the two",
                    ));
                }
                let mut server = ServerSettings::new(id, Vec::new());
                server.address = Some(address);
                server
            }
            None => {
                let command = section.command.take();
                let command =
                    command.ok_or_else(|| SettingError::missing(path.clone(), "command"))?;
                let command = check_command(&command, &path.key("command"))?;
                ServerSettings::new(id, command)
            }
        };
        server.env = check_env(std::mem::take(&mut section.env), &path.key("env"))?;
        check_env_pass(&section.env_pass, &server.env, &path.key("env_pass"))?;
        if let Some(prefix) = &section.prefix {
            check_prefix_text(prefix)
                .map_err(|text| SettingError::about(path.key("prefix"), text))?;
            server.prefix.clone_from(prefix);
        }
        limits.check_call_seconds(section.call_seconds, path)?;
        let overrides = std::mem::take(&mut section.tools);
        server.tool_overrides =
            ToolOverride::check_all(overrides, &server.prefix, limits, tree, &path.key("tools"))?;
        server.set(section);
        Ok(server)
    }

    /// Sets what needs no check.
    fn set(&mut self, section: ServerSection) {
        self.sanitizer = section.sanitizer();
        self.input_requests = section.input_requests();
        self.audit_content = AuditContentOverride {
            durability: section.audit_mode,
            arguments: section.audit_arguments,
            results: section.audit_results,
        };
        self.enabled = section.enabled.unwrap_or(true);
        self.env_pass = section.env_pass;
        self.cwd = section.cwd.map(PathBuf::from);
        self.trust_annotations = section.trust_annotations;
        self.revision = section.revision;
        self.start_seconds = section.start_seconds;
        self.call_seconds = section.call_seconds;
        self.max_calls = section.calls;
        self.rate = section.rate;
        self.unknown_arguments = section.unknown_arguments;
        self.uri_spelling = section.uris;
        self.required_defaults = section.required_with_default;
        self.output_check = section.output;
        self.pins_first = section.pins_first;
        self.pins_change = section.pins_change;
    }
}

/// Returns the program and its arguments, none of which looks like a secret as written or expanded. Marked ones may.
fn check_command(
    command: &[MarkableText],
    path: &SettingPath,
) -> Result<Vec<String>, SettingError> {
    let wrong = |text: &str| Err(SettingError::about(path.clone(), text));
    let text = |(at, word): (usize, &MarkableText)| match (at, word) {
        (0, MarkableText::Text(text)) => expand::expand_program(&text.text)
            .map_err(|text| SettingError::about(path.index(0), text)),
        _ => Ok(word.text().to_owned()),
    };
    let words: Vec<String> = command
        .iter()
        .enumerate()
        .map(text)
        .collect::<Result<_, _>>()?;
    let written: Vec<String> = command
        .iter()
        .map(|word| word.written().unwrap_or(word.text()).to_owned())
        .collect();
    let is_unmarked = |at: usize| command.get(at).is_some_and(|word| word.written().is_some());
    let found = plaintext::secrets_in_command(&written)
        .chain(plaintext::secrets_in_command(&words))
        .find(|(at, _)| is_unmarked(*at));
    if let Some((at, why)) = found {
        return Err(SettingError::about(
            path.index(at),
            format!(
                "has an argument that {why}, which would be in plaintext in this file and in the process list; if the program reads it from its environment, write env = {{ NAME = {{ env = \"NAME\" }} }}; otherwise write {{ {} = \"…\" }}",
                value_source::PLAINTEXT_KEY
            ),
        ));
    }
    match words.first().map(String::as_str) {
        None => wrong(
            "is empty; write the program and its arguments, such as [\"program\", \"argument\"]",
        ),
        Some("") => wrong("begins with an empty string; write the program as the first element"),
        Some(_) => Ok(words),
    }
}
