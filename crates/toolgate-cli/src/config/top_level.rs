//! Reads `toolgate.toml`.

use super::{
    AuditSettings, AuthSettings, Config, ConfigSource, SecretRuleFiles,
    error::{ConfigError, ConfigText},
    limits::GatewayLimits,
    network,
    pins::PinSettings,
    rule::ConfigRule,
    search::SearchSettings,
    section::{ConfigField, ConfigSection},
    server::ServerSettings,
    token::TokenSource,
};
use std::path::Path;
use toml::de::DeTable;
use toolgate::aggregate::NameRules;

/// Every top-level key.
pub(super) const TOP_LEVEL_KEYS: &[&str] = &[
    "listen",
    "token",
    "allowed_hosts",
    "allowed_origins",
    "data",
    "auth",
    "audit",
    "limits",
    "pins",
    "server",
    "rule",
    "search",
    "tool_names",
    "secret_rules",
];

/// Reads a config in TOML; relative paths in it start at `base`.
pub(super) fn read(
    doc: ConfigText<'_>,
    base: &Path,
    source: ConfigSource,
) -> Result<Config, ConfigError> {
    let tree = DeTable::parse(doc.text).map_err(|error| toml_syntax_error(doc, &error))?;
    let top = ConfigSection::new(doc, "", 0, tree.get_ref(), TOP_LEVEL_KEYS)?;
    let limits = GatewayLimits::read(top.get("limits"))?;
    let servers = top.get("server").map_or(Ok(Vec::new()), |field| {
        ServerSettings::read_all(&field, &limits, base)
    })?;
    if servers.is_empty() {
        return Err(doc.error(
            0,
            "no server is configured; add [server.NAME] with command = [\"program\", \"argument\"]",
        ));
    }
    let mut config = Config::with_defaults(source, servers, limits);
    config.pins = PinSettings::read(top.get("pins"))?;
    if let Some(field) = top.get("tool_names") {
        config.tool_names = read_name_rules(&field)?;
    }
    let search = top.get("search");
    config.auth = AuthSettings::read(top.get("auth"), &config.servers, search.is_some(), base)?;
    if let Some(field) = search {
        config.search = Some(SearchSettings::read(&field, &config.servers, &config.auth)?);
    }
    if let Some(field) = top.get("rule") {
        let search = config.search.is_some();
        config.rules = ConfigRule::read_all(
            &field,
            &config.servers,
            &config.limits,
            search,
            &config.auth,
        )?;
    }
    config.data = top.get("data").map(|field| field.path(base)).transpose()?;
    config.audit = AuditSettings::read(top.get("audit"), base)?;
    config.secret_rules = SecretRuleFiles::read(top.get("secret_rules"), base)?;
    config.notes.extend(config.secret_rules.notes.clone());
    read_net(&mut config, &top, base)?;
    Ok(config)
}

/// Reads the naming rules for tools and prompts.
fn read_name_rules(field: &ConfigField<'_>) -> Result<NameRules, ConfigError> {
    match field.text()? {
        "specification" => Ok(NameRules::Specification),
        "portable" => Ok(NameRules::Portable),
        other => Err(field.key_error(format!(
            "is {other:?}; write \"specification\" or \"portable\""
        ))),
    }
}

fn read_net(config: &mut Config, top: &ConfigSection<'_>, base: &Path) -> Result<(), ConfigError> {
    config.listen = network::read_listen(top)?;
    config.token = TokenSource::read_token(top, base)?;
    let exchanges = |server: &&ServerSettings| {
        let address = server.address.as_ref();
        address.is_some_and(|address| address.exchange.is_some())
    };
    if let (true, Some(server), Some(field)) = (
        config.auth.issuers.is_empty(),
        config.servers.iter().find(exchanges),
        top.get("server"),
    ) {
        let servers = field.any_section("[server]", "sections that begin with [server.NAME]")?;
        let mut entries = servers.entries().into_iter();
        let at = entries.find(|(id, ..)| *id == server.id);
        let at = at.map_or(field.offset(), |(_, at, _)| at);
        return Err(top.doc.error(at, format!("[server.{}] has an exchange, but without an issuer no caller has a token to exchange; add [auth.issuer.NAME], or remove the exchange", server.id)));
    }
    config.allowed_hosts = network::read_allowed_hosts(top)?;
    config.allowed_origins = network::read_allowed_origins(top)?;
    match (
        network::check_listen(config.listen, config.requires_authentication()),
        top.get("listen"),
    ) {
        (Err(text), Some(field)) => Err(field.error(format!("listen {text}"))),
        _ => Ok(()),
    }
}

/// Converts the parser's message to one line with the position.
pub(super) fn toml_syntax_error(doc: ConfigText<'_>, error: &toml::de::Error) -> ConfigError {
    let text = error.message().lines().collect::<Vec<_>>().join("; ");
    doc.error(
        error.span().map_or(0, |span| span.start),
        format!("not TOML: {text}"),
    )
}
