//! `toolgate.toml` as written.

use super::{
    admin::AdminSection,
    audit::AuditSection,
    auth::AuthSection,
    console::ConsoleSection,
    https_url::HttpsUrl,
    limits::GatewayLimits,
    network::{HostName, ListenAddress, OriginName},
    notify::NotifySection,
    passkeys::PasskeysSection,
    pins::PinSettings,
    proxy::ProxySection,
    reader::{ConfigPath, ConfigWord, NamedSettings, Word},
    rule::RuleSection,
    search::SearchSection,
    server_section::ServerSection,
    store::StoreSection,
    telemetry::TelemetrySection,
    tls::TlsSection,
    value_source::SecretSource,
    view::ViewSection,
};
use schemars::JsonSchema;
use serde::Deserialize;
use toolgate::aggregate::NameRules;

/// Configuration file of the toolgate gateway (toolgate.toml).
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ConfigFile {
    /// IP address and port of the HTTP listener. Port 0 selects a free port. An address that other machines can reach
    /// needs a `token`, an issuer, or `required` in `[auth]`. The option `--listen` overrides it.
    #[schemars(example = &"127.0.0.1:8665")]
    pub(super) listen: ListenAddress,
    /// Bearer token of the clients: 16 to 4096 visible ASCII characters. `openssl rand -hex 32` makes a good one. Only
    /// HTTP needs it.
    pub(super) token: Option<SecretSource>,
    /// Further host names under which clients may reach the gateway, exact, with or without a port. Loopback names
    /// always work.
    #[schemars(example = ["tools.example.com"])]
    pub(super) allowed_hosts: Vec<HostName>,
    /// Further web origins that may use the endpoint, exact: `scheme://host` or `scheme://host:port`. Their scripts can
    /// read its answers (CORS, without cookies), but cannot use the console. The gateway's own pages always work.
    #[schemars(example = ["https://app.example.com"])]
    pub(super) allowed_origins: Vec<OriginName>,
    /// Address at which approvers open the console, for links and sign-ins: `https://`, or `http://` on this machine,
    /// without a path. Its host name needs no entry in `allowed_hosts`. Default: that of the listener.
    #[schemars(example = &"https://tools.example.com")]
    pub(super) console_url: Option<HttpsUrl>,
    /// Notifications of approval requests: who hears of them, and how.
    pub(super) notify: Vec<NotifySection>,
    /// Data directory: audit log, approvals and sockets. The option `--data` overrides it. Default: `toolgate` in the
    /// user's data directory.
    pub(super) data: Option<ConfigPath>,
    /// TLS of the HTTP listener. Without this section, the listener serves HTTP without encryption.
    pub(super) tls: Option<TlsSection>,
    /// Reverse proxies and load balancers in front of the listener. Without this section, the gateway ignores what they
    /// say about their clients.
    pub(super) proxy: Option<ProxySection>,
    /// Authentication of HTTP callers, and the scopes that their tokens need.
    pub(super) auth: AuthSection,
    /// Audit log.
    pub(super) audit: AuditSection,
    /// Health pages and metrics.
    pub(super) admin: AdminSection,
    /// Metrics and traces.
    pub(super) telemetry: TelemetrySection,
    /// Web console: its sessions, the roles of people, and what it may change.
    pub(super) console: ConsoleSection,
    /// Passkeys with which approvers sign calls. Without this section, no passkey can be enrolled.
    pub(super) passkeys: Option<PasskeysSection>,
    /// Limits. The name of a key says its unit: bytes, seconds or milliseconds; all others are counts.
    pub(super) limits: GatewayLimits,
    /// State that several gateways share.
    pub(super) store: StoreSection,
    /// Handling of new, changed and confusable definitions.
    pub(super) pins: PinSettings,
    /// Upstream servers: one section for each.
    pub(super) server: NamedSettings<ServerSection>,
    /// Rules for calls. Of all rules that match a call, the strictest action wins.
    pub(super) rule: Vec<RuleSection>,
    /// Views: sets of servers and rules, each with an endpoint of its own, `/mcp/NAME`.
    pub(super) view: NamedSettings<ViewSection>,
    /// View that `/mcp`, `/sse` and stdio serve. Default: none, so they serve every server.
    #[schemars(example = &"oncall")]
    pub(super) default_view: Option<String>,
    /// Tool search instead of tool lists.
    pub(super) search: Option<SearchSection>,
    /// Naming rules for tools and prompts toward clients. `portable` fits hosts that accept only short names without
    /// dots.
    #[serde(with = "Word::<NameRules>")]
    pub(super) tool_names: NameRules,
    /// Files with your own rules that find secrets, in the format of gitleaks. Relative paths start at the directory of
    /// the config.
    #[schemars(example = ["secrets.toml"])]
    pub(super) secret_rules: Vec<ConfigPath>,
}

impl ConfigWord for NameRules {
    const WORDS: &'static [(&'static str, NameRules)] = &[
        ("specification", NameRules::Specification),
        ("portable", NameRules::Portable),
    ];
}
