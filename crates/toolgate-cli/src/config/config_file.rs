//! `toolgate.toml` as written.

use super::{
    audit::AuditSection,
    auth::AuthSection,
    limits::GatewayLimits,
    network::{HostName, ListenAddress, OriginName},
    pins::PinSettings,
    reader::{ConfigPath, ConfigWord, NamedSettings, Word},
    rule::RuleSection,
    search::SearchSection,
    server_section::ServerSection,
    value_source::SecretSource,
};
use schemars::JsonSchema;
use serde::Deserialize;
use toolgate::aggregate::NameRules;

/// Configuration file of the toolgate gateway (toolgate.toml).
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ConfigFile {
    /// Listen address for HTTP: IP address and port; default `127.0.0.1:8665`.
    #[schemars(example = &"127.0.0.1:8665")]
    pub(super) listen: Option<ListenAddress>,
    /// Bearer token of the clients. Without a token or an issuer, the gateway serves HTTP on loopback only.
    pub(super) token: Option<SecretSource>,
    /// Allowed host names besides loopback, with or without a port.
    #[schemars(example = ["tools.example.com"])]
    pub(super) allowed_hosts: Vec<HostName>,
    /// Allowed origins of web pages besides the gateway's own.
    #[schemars(example = ["https://app.example.com"])]
    pub(super) allowed_origins: Vec<OriginName>,
    /// Data directory.
    pub(super) data: Option<ConfigPath>,
    /// Authentication of HTTP callers, and the scopes that their tokens need.
    pub(super) auth: AuthSection,
    /// Audit log.
    pub(super) audit: AuditSection,
    /// Limits. A key names the unit of its limit; without a unit, it is a count.
    pub(super) limits: GatewayLimits,
    /// Default handling of new, changed and confusable definitions.
    pub(super) pins: PinSettings,
    /// Upstream servers.
    pub(super) server: NamedSettings<ServerSection>,
    /// Rules. Of all rules that match a call, the strictest action wins.
    pub(super) rule: Vec<RuleSection>,
    /// Tool search instead of tool lists.
    pub(super) search: Option<SearchSection>,
    /// Naming rules for tools and prompts; default `specification`.
    #[serde(with = "Word::<NameRules>")]
    pub(super) tool_names: NameRules,
    /// Files with the operator's own secret rules.
    #[schemars(example = ["secrets.toml"])]
    pub(super) secret_rules: Vec<ConfigPath>,
}

impl ConfigWord for NameRules {
    const WORDS: &'static [(&'static str, NameRules)] = &[
        ("specification", NameRules::Specification),
        ("portable", NameRules::Portable),
    ];
}
