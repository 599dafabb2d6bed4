//! `[server.NAME.exchange]`: OAuth token exchange for a server.

use super::{
    config_value::ConfigValue, https_url::HttpsUrl, reader::ExpandedText, scopes::Scopes,
    value_source::SecretSource,
};
use schemars::JsonSchema;
use serde::Deserialize;
use toolgate_auth::Url;

/// OAuth token exchange for a server (RFC 8693), `[server.NAME.exchange]`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExchangeSection {
    /// Token endpoint of the authorization server: `https://`, or `http://` on this machine.
    #[schemars(example = &"https://login.example.com/token")]
    url: HttpsUrl,
    /// Client id of the gateway at that endpoint.
    #[schemars(example = &"toolgate")]
    client_id: ExpandedText,
    /// Secret of that client.
    #[schemars(example = serde_json::json!({"env": "NAME"}))]
    client_secret: SecretSource,
    /// Name of the server at the endpoint (`audience`). The gateway always sends `resource` as well: the `url` of the
    /// server without its query.
    audience: Option<ExpandedText>,
    /// Scopes to request. Default: those of the endpoint.
    #[schemars(example = ["files:read"])]
    scopes: Option<Scopes>,
}

/// Token exchange settings: a caller's token is exchanged for one of the server (RFC 8693).
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ExchangeSettings {
    /// Token endpoint URL.
    pub(crate) token_endpoint: Url,
    /// Client id of the gateway at the token endpoint.
    pub(crate) client_id: String,
    /// Client secret.
    pub(crate) client_secret: ConfigValue,
    /// `audience` parameter; `None` identifies the server by its URL.
    pub(crate) audience: Option<String>,
    /// Requested scopes; empty for the endpoint's default.
    pub(crate) scopes: Vec<String>,
}

impl From<ExchangeSection> for ExchangeSettings {
    fn from(section: ExchangeSection) -> ExchangeSettings {
        ExchangeSettings {
            token_endpoint: section.url.url,
            client_id: section.client_id.text,
            client_secret: section.client_secret.0,
            audience: section.audience.map(|audience| audience.text),
            scopes: section.scopes.map_or_else(Vec::new, |scopes| scopes.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use std::path::Path;

    const AUTH: &str =
        "[auth]\nresource = \"https://t.test/mcp\"\n[auth.issuer.corp]\nurl = \"https://l.test\"\n";
    const SERVER: &str = "[server.far]\nurl = \"https://far.test/mcp\"\n";
    const EXCHANGE: &str = "[server.far.exchange]\nurl = \"https://l.test/token\"\nclient_id = \"gate\"\nclient_secret = { env = \"S\" }\n";

    fn read(text: &str) -> Result<Config, String> {
        Config::parse(Path::new("/etc/t.toml"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn rejects_an_incomplete_exchange() {
        let whole = format!("{AUTH}{SERVER}{EXCHANGE}audience = \"a\"\nscopes = [\"x\"]\n");
        let config = read(&whole).unwrap();
        assert!(config.uses_token_exchange());
        assert!(
            !read(&format!("{AUTH}{SERVER}"))
                .unwrap()
                .uses_token_exchange()
        );
        for (text, told) in [
            (
                format!("{SERVER}{EXCHANGE}"),
                "t.toml:1:9: [server.far] has an exchange, but without an issuer no caller has a token to exchange; add [auth.issuer.NAME]",
            ),
            (
                format!(
                    "{AUTH}{SERVER}headers = {{ Authorization = {{ env = \"A\" }} }}\n{EXCHANGE}"
                ),
                "keep one of the two",
            ),
            (
                format!("{AUTH}{SERVER}client_id = \"x\"\nissuer = \"https://l.test\"\n{EXCHANGE}"),
                "remove client_id from the server",
            ),
            (
                whole.replace("client_secret = { env = \"S\" }\n", ""),
                "[server.far.exchange] has no \"client_secret\"; write client_secret = { env = \"NAME\" }",
            ),
            (
                whole.replace("https://l.test/token", "http://l.test/token"),
                "anyone on the network path",
            ),
            (
                whole.replace("audience", "audiense"),
                "did you mean \"audience\"",
            ),
            (
                whole.replace("[\"x\"]", "[\"a b\"]"),
                "is not a valid scope",
            ),
            (
                format!(
                    "{AUTH}[server.s]\ncommand = [\"x\"]\n{}",
                    EXCHANGE.replace("far", "s")
                ),
                "is only valid for a server with a url",
            ),
        ] {
            let error = read(&text).map(|_| ()).unwrap_err();
            assert!(error.contains(told), "{text}\n{error}");
        }
    }
}
