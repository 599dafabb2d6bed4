//! Reads `toolgate.toml`.

use super::{
    AdminSettings, AuditSettings, AuthSettings, Config, ConfigSource, SecretRuleFiles,
    TelemetrySettings,
    config_file::ConfigFile,
    console::ConsoleSettings,
    error::{ConfigError, ConfigText},
    https_url::HttpsUrl,
    network,
    notify::NotifySettings,
    passkeys::{self, PasskeyConfig},
    reader::{ConfigTree, SettingError, SettingPath, toml_syntax_error},
    rule::ConfigRule,
    schema::config_schema,
    search::SearchSettings,
    server::ServerSettings,
    store::StoreSettings,
    tls::TlsSettings,
    token::TokenSource,
    tool_targets::ToolTargets,
    view::{ViewSettings, check_default_view},
};
use crate::proxy::TrustedProxies;
use std::path::{Path, PathBuf};
use toolgate::auth::Url;

/// Reads a config in TOML; relative paths in it start at `base`.
pub(super) fn read(
    doc: ConfigText<'_>,
    base: &Path,
    source: ConfigSource,
) -> Result<Config, ConfigError> {
    let tree = ConfigTree::parse(doc).map_err(|error| toml_syntax_error(doc, &error))?;
    let config = tree.read(base).and_then(|file| check(file, source, &tree));
    config.map_err(|error| tree.error(error, config_schema()))
}

/// Checks what the settings of a file mean together.
fn check(
    file: ConfigFile,
    source: ConfigSource,
    tree: &ConfigTree<'_>,
) -> Result<Config, SettingError> {
    file.limits.check(|path| tree.contains(path))?;
    let servers = ServerSettings::check_all(file.server, &file.limits, tree)?;
    if servers.is_empty() {
        return Err(SettingError::message(
            SettingPath::default(),
            "no server is configured; add one with `toolgate add`, or write [server.NAME] with command = [\"program\", \"argument\"]",
        ));
    }
    let tools = ToolTargets {
        servers: &servers,
        search: file.search.is_some(),
    };
    let auth = AuthSettings::check(file.auth, tools, tree)?;
    let search = file
        .search
        .map(|search| SearchSettings::check(&search, tools, &auth));
    let search = search.transpose()?;
    let rules = ConfigRule::check_all(
        file.rule,
        &file.limits,
        tools,
        &auth,
        (tree, &SettingPath::new(&["rule"])),
    )?;
    let (views, view_rules) = ViewSettings::check_all(file.view, &file.limits, tools, &auth, tree)?;
    let default_view = check_default_view(file.default_view, &views)?;
    let notify = NotifySettings::check_all(file.notify, tools, &auth, tree)?;
    let console = ConsoleSettings::check(file.console, &auth)?;
    let passkeys = file.passkeys.map(PasskeyConfig::check).transpose()?;
    passkeys::check_rules(&rules, passkeys.as_ref())?;
    passkeys::check_rules(&view_rules, passkeys.as_ref())?;
    let console_url = file.console_url.map(check_console_url).transpose()?;
    let (servers, disabled): (Vec<_>, Vec<_>) =
        servers.into_iter().partition(|server| server.enabled);
    let mut config = Config::with_defaults(source, servers, file.limits);
    config.disabled_servers = disabled;
    config.store = StoreSettings::check(file.store)?;
    config.pins = file.pins;
    config.tool_names = file.tool_names;
    config.auth = auth;
    config.search = search;
    config.rules = rules.into_iter().chain(view_rules).collect();
    config.views = views;
    config.notify = notify;
    config.console = console;
    config.passkeys = passkeys;
    config.console_url = console_url;
    config.default_view = default_view;
    config.data = file.data.map(PathBuf::from);
    config.audit = AuditSettings::check(file.audit, config.store.url.is_some())?;
    config.admin = AdminSettings::check(file.admin, tree)?;
    config.telemetry = TelemetrySettings::check(file.telemetry)?;
    config.secret_rules = SecretRuleFiles::read(&file.secret_rules)?;
    config.notes.extend(config.secret_rules.notes.clone());
    let token = |token| TokenSource::new(token, tree, &SettingPath::new(&["token"]));
    config.token = file.token.map(token);
    config.listen = file.listen.0;
    config.tls = file.tls.map(TlsSettings::from);
    config.proxies = file.proxy.map(TrustedProxies::from).unwrap_or_default();
    config.allowed_hosts = file.allowed_hosts.into_iter().map(|host| host.0).collect();
    config.allowed_origins = file
        .allowed_origins
        .into_iter()
        .map(|origin| origin.0)
        .collect();
    check_exchange(&config)?;
    network::check_listen(config.listen, config.requires_authentication())
        .map_err(|text| SettingError::message(SettingPath::new(&["listen"]), text))?;
    Ok(config)
}

/// Checks the address of the console, whose pages are at the root of its host.
fn check_console_url(url: HttpsUrl) -> Result<Url, SettingError> {
    match (url.url.path(), url.url.query()) {
        ("/", None) => Ok(url.url),
        _ => Err(SettingError::about(
            SettingPath::new(&["console_url"]),
            "has a path or a query, but the console is at the root of its host; write only the scheme and the host, such as \"https://tools.example.com\"",
        )),
    }
}

/// Checks that callers have tokens to exchange.
fn check_exchange(config: &Config) -> Result<(), SettingError> {
    let exchanges = |server: &&ServerSettings| {
        let address = server.address.as_ref();
        address.is_some_and(|address| address.exchange.is_some())
    };
    match config.servers.iter().find(exchanges) {
        Some(server) if config.auth.issuers.is_empty() => Err(SettingError::at_key(
            SettingPath::new(&["server", &server.id]),
            format!(
                "[server.{}] has an exchange, but without an issuer no caller has a token to exchange; add [auth.issuer.NAME], or remove the exchange",
                server.id
            ),
        )),
        _ => Ok(()),
    }
}
