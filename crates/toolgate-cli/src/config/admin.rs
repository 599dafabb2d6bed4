//! `[admin]`: health pages and metrics.

use super::{
    network::ListenAddress,
    reader::{ConfigTree, SettingError, SettingPath},
    token::TokenSource,
    value_source::SecretSource,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::net::SocketAddr;

/// Health pages (`/livez`, `/readyz`) and metrics (`/metrics`).
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct AdminSection {
    /// IP address and port of a listener of its own for `/livez`, `/readyz` and `/metrics`. It serves nothing else.
    /// Default: none: the gateway's own listener serves them.
    #[schemars(example = &"127.0.0.1:9665")]
    listen: Option<ListenAddress>,
    /// Bearer token for `/metrics`: 16 to 4096 visible ASCII characters. The health pages need none. Without it, only a
    /// loopback listener that needs no credentials serves the metrics.
    token: Option<SecretSource>,
    /// True if an `admin` listener that other machines can reach serves `/metrics` without a token. The metrics name
    /// servers and tools.
    danger_open_metrics: bool,
}

/// Settings of the health pages and of `/metrics`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct AdminSettings {
    /// Address of a listener of its own.
    pub(crate) listen: Option<SocketAddr>,
    /// Bearer token for the metrics.
    pub(crate) token: Option<TokenSource>,
    /// True if a listener of its own beyond loopback serves metrics without a token.
    pub(crate) open_metrics: bool,
}

impl AdminSettings {
    /// Checks `[admin]`.
    pub(super) fn check(
        section: AdminSection,
        tree: &ConfigTree<'_>,
    ) -> Result<AdminSettings, SettingError> {
        let path = SettingPath::new(&["admin"]);
        let token = section.token;
        let token = token.map(|token| TokenSource::new(token, tree, &path.key("token")));
        let listen = section.listen.map(|address| address.0);
        let is_open = listen.is_some_and(|address| !address.ip().to_canonical().is_loopback());
        if is_open && token.is_none() && !section.danger_open_metrics {
            return Err(SettingError::message(
                path.key("listen"),
                "lets other machines read /metrics, which names servers and tools; set `token` in [admin], or `danger_open_metrics = true` if a firewall protects the port".to_owned(),
            ));
        }
        Ok(AdminSettings {
            listen,
            token,
            open_metrics: section.danger_open_metrics,
        })
    }
}
