//! Configuration: one TOML file, the `mcpServers` JSON of a host, or the built-in demo server.
//!
//! Every invalid config is one error with file, line and column. Unknown keys are rejected, never ignored.

mod address;
mod admin;
mod approvals;
mod audit;
mod audit_content;
mod auth;
mod caller_names;
mod claim_mapping;
mod client_registration;
mod config_file;
mod config_value;
mod console;
mod data;
mod default_name;
mod env_name;
mod environment;
mod error;
mod expand;
mod file;
mod glob;
mod host_json;
mod https_url;
mod input_requests;
mod issuer_sign_in;
mod json;
pub(crate) mod keyring;
mod limits;
mod network;
mod notify;
mod overrides;
mod own_entries;
mod passkeys;
pub(crate) mod paths;
mod pins;
pub(crate) mod plaintext;
mod proxy;
mod rate;
mod reader;
mod renamed;
mod revision;
mod rule;
mod sanitizer;
pub(crate) mod schema;
mod scopes;
mod search;
mod secret_rules;
mod secret_sources;
mod server;
pub(crate) mod server_names;
mod server_section;
mod smtp_url;
mod store;
mod telemetry;
#[cfg(test)]
mod tests;
mod time_of_day;
mod tls;
mod token;
mod token_exchange;
mod tool_targets;
mod top_level;
mod value_source;
mod view;

pub(crate) use address::RemoteAddress;
pub(crate) use admin::AdminSettings;
pub(crate) use audit::{AuditCopySettings, AuditSettings};
pub(crate) use auth::{AuthSettings, IssuerSettings};
pub(crate) use caller_names::hook_caller;
pub(crate) use client_registration::{
    ClientCredential, ClientRegistration, PreregisteredClient, SignInParty,
};
pub(crate) use config_value::{ConfigValue, MAX_SECRET_FILE_BYTES};
pub(crate) use console::{ConsoleRole, ConsoleSettings};
pub(crate) use default_name::{name_of_command, name_of_url};
pub(crate) use env_name::check_env_name;
pub(crate) use error::{ConfigError, ConfigText, suggestion as nearest_names};
pub(crate) use expand::sole_reference;
pub(crate) use glob::NameGlob;
pub(crate) use limits::GatewayLimits;
#[cfg(test)]
pub(crate) use limits::limit_keys;
pub(crate) use notify::{NotifyChannel, NotifySettings, RequestRisk};
pub(crate) use overrides::ToolOverride;
pub(crate) use passkeys::PasskeyConfig;
pub(crate) use pins::PinSettings;
pub(crate) use plaintext::secret_reason;
pub(crate) use rate::RateSetting;
pub(crate) use revision::RevisionChoice;
pub(crate) use rule::{ConfigRule, ConfigRuleAction};
pub(crate) use search::{MAX_SEARCH_RESULTS, SearchSettings};
pub(crate) use secret_rules::SecretRuleFiles;
pub(crate) use secret_sources::SecretUse;
pub(crate) use server::ServerSettings;
pub(crate) use server_names::{check_name as check_server_name, normalize_id};
#[cfg(test)]
pub(crate) use server_section::CredentialOwner;
pub(crate) use server_section::{OutputCheck, UnknownArguments};
pub(crate) use smtp_url::{SmtpServer, SmtpTls};
pub(crate) use store::{PeerSettings, StoreSettings};
pub(crate) use telemetry::TelemetrySettings;
pub(crate) use time_of_day::DailyHours;
pub(crate) use tls::TlsSettings;
pub(crate) use token::TokenSource;
pub(crate) use token_exchange::ExchangeSettings;
pub(crate) use tool_targets::SEARCH_SERVER;
pub(crate) use view::ViewSettings;

use crate::proxy::TrustedProxies;
use file::FilePrivacy;
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};
use toolgate::{
    aggregate::{DefinitionOverrides, NameRules},
    auth::Url,
};

/// Configuration of the gateway: servers, callers, rules and limits.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// Listen address for HTTP.
    pub(crate) listen: SocketAddr,
    /// Certificate and private key of the listener. `None`: it serves HTTP without TLS.
    pub(crate) tls: Option<TlsSettings>,
    /// Trusted proxies in front of the listener.
    pub(crate) proxies: TrustedProxies,
    /// Source of the clients' bearer token. Without a token, the gateway serves HTTP on loopback only.
    pub(crate) token: Option<TokenSource>,
    /// Authentication of HTTP callers, besides the bearer token.
    pub(crate) auth: AuthSettings,
    /// Allowed host names besides loopback, in lower case, with or without a port.
    pub(crate) allowed_hosts: Vec<String>,
    /// Allowed origins besides the gateway's own pages, in lower case.
    pub(crate) allowed_origins: Vec<String>,
    /// Address at which approvers open the console.
    pub(crate) console_url: Option<Url>,
    /// Notifications of approval requests.
    pub(crate) notify: Vec<NotifySettings>,
    /// Data directory that the config names.
    pub(crate) data: Option<PathBuf>,
    /// Audit log settings.
    pub(crate) audit: AuditSettings,
    /// Health pages and metrics.
    pub(crate) admin: AdminSettings,
    /// Metrics and traces.
    pub(crate) telemetry: TelemetrySettings,
    /// Web console: its sessions, the roles of people, and what it may change.
    pub(crate) console: ConsoleSettings,
    /// Passkeys of approvers. `None`: no passkey can be enrolled.
    pub(crate) passkeys: Option<PasskeyConfig>,
    /// Limits.
    pub(crate) limits: GatewayLimits,
    /// Shared state of several gateways.
    pub(crate) store: StoreSettings,
    /// Pinning of definitions.
    pub(crate) pins: PinSettings,
    /// Naming rules for tools and prompts.
    pub(crate) tool_names: NameRules,
    /// Enabled upstream servers, in the order of the file.
    pub(crate) servers: Vec<ServerSettings>,
    /// Disabled servers, which rules may name.
    pub(crate) disabled_servers: Vec<ServerSettings>,
    /// Rules, in the order of the file, and then those of the views.
    pub(crate) rules: Vec<ConfigRule>,
    /// Views, in the order of the file.
    pub(crate) views: Vec<ViewSettings>,
    /// View of the endpoint without a name.
    pub(crate) default_view: Option<String>,
    /// Tool search; `None` means that all tools are listed.
    pub(crate) search: Option<SearchSettings>,
    /// The operator's secret rules, in addition to the built-in ones.
    pub(crate) secret_rules: SecretRuleFiles,
    /// Origin of this config.
    pub(crate) source: ConfigSource,
    /// True if the file contains plaintext secrets, as the JSON of a host may.
    pub(crate) has_plaintext_secrets: bool,
    /// SHA-256 of the file in lower-case hex.
    pub(crate) hash: Option<String>,
    /// Notes for the operator that are not errors, for example a skipped server.
    pub(crate) notes: Vec<String>,
}

/// Origin of a config.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum ConfigSource {
    /// A file.
    File(PathBuf),
    /// The built-in demo server.
    BuiltIn,
    /// The command line of `toolgate run`.
    CommandLine,
}

impl Config {
    /// Loads the given file, else the default file if it exists, else the demo server.
    ///
    /// Files in the current directory are never loaded by default: a project folder may be hostile.
    ///
    /// # Errors
    /// The file cannot be read, is writable by others, or is invalid.
    pub(crate) fn load(given: Option<&Path>) -> Result<Config, ConfigError> {
        match given
            .map(Path::to_owned)
            .or_else(crate::config::paths::default_config)
        {
            Some(path) => Config::load_file(&path),
            None => Config::demo(),
        }
    }

    /// Returns the data directory that the given or the default file names, even if the rest of the file is invalid.
    ///
    /// # Errors
    /// The file cannot be read or is writable by others, or its `data` key cannot be determined.
    pub(crate) fn data_directory(given: Option<&Path>) -> Result<Option<PathBuf>, ConfigError> {
        let file = given
            .map(Path::to_owned)
            .or_else(crate::config::paths::default_config);
        file.map_or(Ok(None), |file| data::data_directory(&file))
    }

    /// Loads the config from a file.
    ///
    /// # Errors
    /// The file cannot be read, is writable by others, or is invalid.
    pub(crate) fn load_file(path: &Path) -> Result<Config, ConfigError> {
        let text = Config::read_text(path)?;
        let mut config = Config::parse(path, &text)?;
        if config.has_plaintext_secrets {
            file::read(path, file::MAX_CONFIG_BYTES, FilePrivacy::Secret)
                .map_err(|text| ConfigError::new(path.display(), text))?;
        }
        config.remove_own_entries()?;
        config.hash = Some(Config::text_hash(&text));
        Ok(config)
    }

    /// Returns the digest of the text of a config file, as [`Config::hash`] has it.
    pub(crate) fn text_hash(text: &str) -> String {
        let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        toolgate_protocol::hex::encode(digest.as_ref())
    }

    /// Reads the text of a config file.
    ///
    /// # Errors
    /// The file cannot be read or is writable by others.
    pub(crate) fn read_text(path: &Path) -> Result<String, ConfigError> {
        file::read(path, file::MAX_CONFIG_BYTES, FilePrivacy::Config)
            .map_err(|text| ConfigError::new(path.display(), text))
    }

    /// Checks a text that is to become the config file of that path.
    ///
    /// # Errors
    /// The text is too long or an invalid config.
    pub(crate) fn check_text(path: &Path, text: &str) -> Result<Config, ConfigError> {
        if text.len() as u64 > file::MAX_CONFIG_BYTES {
            let limit = file::MAX_CONFIG_BYTES;
            let why = format!("would be longer than {limit} bytes, which is the limit; shorten it");
            return Err(ConfigError::new(path.display(), why));
        }
        let mut config = Config::parse(path, text)?;
        config.remove_own_entries()?;
        Ok(config)
    }

    /// Parses the text of a config file. Text that begins with a brace or a comment of JSON is JSON.
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Config, ConfigError> {
        let name = path.display().to_string();
        let doc = ConfigText {
            name: &name,
            text: text.strip_prefix('\u{feff}').unwrap_or(text),
        };
        let (base, source) = (
            file::config_directory(path),
            ConfigSource::File(path.to_owned()),
        );
        match doc.text.trim_start().starts_with(['{', '/']) {
            true => host_json::read(doc, &base, source),
            false => top_level::read(doc, &base, source),
        }
    }

    /// Returns the built-in config: the demo server of this program, with trusted annotations and no rules.
    ///
    /// # Errors
    /// The path of this program is unknown or not UTF-8.
    pub(crate) fn demo() -> Result<Config, ConfigError> {
        let wrong = |text: &str| {
            ConfigError::new(
                "cannot start the demo server",
                format!("the path of this program {text}; pass --config with a config of your own"),
            )
        };
        let program =
            std::env::current_exe().map_err(|error| wrong(&format!("is unknown: {error}")))?;
        let program = program
            .into_os_string()
            .into_string()
            .map_err(|_| wrong("is not UTF-8"))?;
        let mut server = ServerSettings::new("demo", vec![program, "demo-server".to_owned()]);
        server.trust_annotations = true;
        Ok(Config::with_defaults(
            ConfigSource::BuiltIn,
            vec![server],
            GatewayLimits::default(),
        ))
    }

    /// Returns the config of `toolgate run`: one server with that command and no tool name prefix. Its default name is
    /// that of its package.
    ///
    /// # Errors
    /// The command is empty, or the name is invalid.
    pub(crate) fn for_command(
        name: Option<&str>,
        command: Vec<String>,
    ) -> Result<Config, ConfigError> {
        let wrong = |text: &str| ConfigError::new("toolgate run", text);
        if command.first().is_none_or(String::is_empty) {
            return Err(wrong(
                "the command is empty; write the program and its arguments after --",
            ));
        }
        let id = match name {
            Some(name) => check_server_name(name)
                .map(|()| name.to_owned())
                .map_err(|text| wrong(&text))?,
            None => name_of_command(&command),
        };
        let mut server = ServerSettings::new(id, command);
        server.prefix = String::new();
        Ok(Config::with_defaults(
            ConfigSource::CommandLine,
            vec![server],
            GatewayLimits::default(),
        ))
    }

    /// Returns the advice about a server that is disabled; `None` for any other name.
    pub(crate) fn disabled_reason(&self, server: &str) -> Option<String> {
        let is = self
            .disabled_servers
            .iter()
            .any(|disabled| disabled.id == server);
        is.then(|| {
            format!("the server {server} is disabled; enable it with `toolgate enable {server}`")
        })
    }

    /// Returns true for the built-in config.
    pub(crate) fn is_demo(&self) -> bool {
        self.source == ConfigSource::BuiltIn
    }

    /// Returns true if each caller has a separate connection to a server.
    pub(crate) fn has_caller_connections(&self, server: &str) -> bool {
        let server = self.servers.iter().find(|one| one.id == server);
        let address = server.and_then(|server| server.address.as_ref());
        address.is_some_and(RemoteAddress::has_caller_connections)
    }

    /// Returns the address of the console that approvers use, if the config names it.
    pub(crate) fn console_base(&self) -> Option<String> {
        let url = self.console_url.as_ref()?;
        Some(format!("{}/", url.origin()))
    }

    /// Returns the address of the console for links: `console_url`, or that of the listener. With passkeys, it has the
    /// name `localhost`, because a passkey cannot belong to an IP address.
    pub(crate) fn console_at(&self, listener: &str) -> String {
        if let Some(base) = self.console_base() {
            return base;
        }
        let loopback = ["http://127.0.0.1", "http://[::1]"];
        let rest = loopback.iter().find_map(|own| listener.strip_prefix(own));
        match rest.filter(|_| self.passkeys.is_some()) {
            Some(rest) => format!("http://localhost{rest}"),
            None => listener.to_owned(),
        }
    }

    /// Returns true if any server uses token exchange.
    pub(crate) fn uses_token_exchange(&self) -> bool {
        let mut addresses = self.servers.iter().filter_map(|s| s.address.as_ref());
        addresses.any(|address| address.exchange.is_some())
    }

    /// Returns true if every HTTP caller must authenticate.
    pub(crate) fn requires_authentication(&self) -> bool {
        self.token.is_some() || self.auth.required || !self.auth.issuers.is_empty()
    }

    /// Returns whether the gateway's own listener serves the metrics without a token: it is loopback, and callers need no
    /// credentials.
    pub(crate) fn serves_open_metrics(&self) -> bool {
        self.listen.ip().to_canonical().is_loopback() && !self.requires_authentication()
    }

    /// Rejects a listen address that other machines can reach without authentication; for command-line addresses.
    ///
    /// # Errors
    /// The address is not loopback and anonymous access is allowed.
    pub(crate) fn check_listen(&self) -> Result<(), ConfigError> {
        network::check_listen(self.listen, self.requires_authentication())
            .map_err(|text| ConfigError::new("the listen address", text))
    }

    /// Checks that the gateway's own tokens and secrets exist and are long enough. Keyring entries are not read.
    ///
    /// # Errors
    /// A token or secret is missing, too short or too long.
    pub(crate) fn check_tokens(&self) -> Result<(), ConfigError> {
        let asked = self.auth.issuers.iter().flat_map(|i| &i.introspection);
        let all = self
            .token
            .iter()
            .chain(&self.admin.token)
            .chain(asked.map(|asked| &asked.client_secret));
        let here = |source: &&TokenSource| !matches!(source.value, ConfigValue::Keyring(_));
        all.filter(here)
            .try_for_each(|source| source.check_value(source.value.read()).map(drop))
    }

    /// Resolves the tool overrides of each server, in the order of the servers.
    ///
    /// # Errors
    /// An environment variable is not set.
    pub(crate) fn overrides(&self) -> Result<Vec<DefinitionOverrides>, ConfigError> {
        let one = |over: &ToolOverride| Ok((over.tool.clone(), over.resolve()?));
        let of = |server: &ServerSettings| server.tool_overrides.iter().map(one).collect();
        self.servers.iter().map(of).collect()
    }

    /// Returns a config with these servers, these limits and the defaults.
    fn with_defaults(
        source: ConfigSource,
        servers: Vec<ServerSettings>,
        limits: GatewayLimits,
    ) -> Config {
        Config {
            listen: network::DEFAULT_LISTEN_ADDRESS,
            tls: None,
            proxies: TrustedProxies::default(),
            token: None,
            auth: AuthSettings::default(),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            console_url: None,
            notify: Vec::new(),
            data: None,
            audit: AuditSettings::default(),
            admin: AdminSettings::default(),
            telemetry: TelemetrySettings::default(),
            console: ConsoleSettings::default(),
            passkeys: None,
            limits,
            store: StoreSettings::default(),
            pins: PinSettings::default(),
            tool_names: NameRules::default(),
            servers,
            disabled_servers: Vec::new(),
            rules: Vec::new(),
            views: Vec::new(),
            default_view: None,
            search: None,
            secret_rules: SecretRuleFiles::default(),
            has_plaintext_secrets: false,
            source,
            hash: None,
            notes: Vec::new(),
        }
    }
}
