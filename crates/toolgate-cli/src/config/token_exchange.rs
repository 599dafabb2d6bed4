//! `[server.NAME.exchange]`: OAuth token exchange for a server.

use super::{
    auth::{read_https_url, read_scopes},
    config_value::ConfigValue,
    error::ConfigError,
    section::ConfigSection,
    token::TokenSource,
};
use std::{borrow::Cow, path::Path};
use toolgate_auth::Url;

const KEYS: &[&str] = &["url", "client_id", "client_secret", "audience", "scopes"];

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

impl ExchangeSettings {
    /// Reads `exchange`, if present.
    pub(super) fn read(
        section: &ConfigSection<'_>,
        id: &str,
        base: &Path,
    ) -> Result<Option<ExchangeSettings>, ConfigError> {
        let Some(field) = section.get("exchange") else {
            return Ok(None);
        };
        let name = format!("[server.{id}.exchange]");
        let section = field.section(name, "a section", KEYS)?;
        let client = section.require(
            "client_id",
            "\"toolgate\", as the endpoint knows this gateway",
        )?;
        let secret = TokenSource::read_client_secret(&section, base)?;
        let audience = section.get("audience");
        Ok(Some(ExchangeSettings {
            token_endpoint: read_https_url(
                &section.require("url", "\"https://login.example.com/token\"")?,
            )?,
            client_secret: secret
                .ok_or_else(|| {
                    client
                        .key_error("needs its secret; write client_secret = { env = \"VARIABLE\" }")
                })?
                .value,
            client_id: client.expanded()?.into_owned(),
            audience: audience
                .map(|f| f.expanded().map(Cow::into_owned))
                .transpose()?,
            scopes: section
                .get("scopes")
                .map_or(Ok(Vec::new()), |field| read_scopes(&field))?,
        }))
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
                "needs its secret",
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
