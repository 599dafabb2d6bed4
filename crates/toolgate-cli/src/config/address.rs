//! Remote servers: `url` and the HTTP headers of its requests.

use super::{
    client_registration::{self, ClientRegistration, SignInParty},
    config_value::ConfigValue,
    plaintext,
    reader::{ConfigTree, SettingError, SettingPath},
    server_section::{CredentialOwner, ServerSection},
    token_exchange::ExchangeSettings,
    value_source::{self, MarkableText},
};
use http::{Uri, uri::Scheme};
use std::fmt;
use toolgate::client::{HttpOptions, check_url};

/// Keys that are valid only for a server with a `url`, besides those of its OAuth client.
pub(super) const REMOTE_SERVER_KEYS: &[&str] = &[
    "headers",
    "exchange",
    "credentials",
    "danger_private_addresses",
];
/// Example URL for error messages.
const EXAMPLE_URL: &str = "\"https://mcp.example.com/mcp\"";

/// Address of a remote server and its authentication settings.
#[derive(Clone, Eq, PartialEq)]
pub(crate) struct RemoteAddress {
    /// URL: `https://…`, or `http://…` on loopback.
    pub(crate) url: String,
    /// HTTP header names and values. The values may be secret.
    pub(crate) headers: Vec<(String, ConfigValue)>,
    /// OAuth client registration at the server's authorization server.
    pub(crate) client: ClientRegistration,
    /// Party that signs in: a person or the gateway.
    pub(crate) sign_in: SignInParty,
    /// True if URLs that the server names may point to private networks.
    pub(crate) danger_private: bool,
    /// Token exchange settings (RFC 8693).
    pub(crate) exchange: Option<ExchangeSettings>,
    /// Owner of the credentials from a sign-in.
    pub(crate) credential_owner: CredentialOwner,
}

/// Omits the headers and the query of the URL, which may contain secrets.
impl fmt::Debug for RemoteAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.without_query())
    }
}

impl RemoteAddress {
    /// Returns the URL without query and fragment, which may contain a secret.
    pub(crate) fn without_query(&self) -> &str {
        self.url.split(['?', '#']).next().unwrap_or_default()
    }

    /// Returns the address that the section of a server describes, if it has a `url`.
    pub(super) fn check(
        section: &mut ServerSection,
        tree: &ConfigTree<'_>,
        path: &SettingPath,
    ) -> Result<Option<RemoteAddress>, SettingError> {
        let Some(url) = section.url.take() else {
            let keys = REMOTE_SERVER_KEYS
                .iter()
                .chain(client_registration::OAUTH_CLIENT_KEYS);
            return match keys
                .map(|key| path.key(key))
                .find(|path| tree.contains(path))
            {
                Some(path) => Err(SettingError::about(
                    path,
                    format!(
                        "is only valid for a server with a url; add url = {EXAMPLE_URL}, or remove it"
                    ),
                )),
                None => Ok(None),
            };
        };
        check_plaintext_url(&url)
            .and_then(|()| {
                check_server_url(url.text()).map_err(|reason| {
                    format!("cannot be used: {reason}; write url = {EXAMPLE_URL}")
                })
            })
            .map_err(|text| SettingError::about(path.key("url"), text))?;
        let client = ClientRegistration::check(section, path)?;
        let mut address = RemoteAddress {
            url: url.text().to_owned(),
            headers: Vec::new(),
            sign_in: SignInParty::check(section, &client, path)?,
            client,
            danger_private: section.danger_private_addresses,
            exchange: section.exchange.take().map(ExchangeSettings::from),
            credential_owner: section.credentials,
        };
        for (name, value) in std::mem::take(&mut section.headers).0 {
            let path = path.key("headers").key(&name);
            address.add_header(name, value, &path)?;
        }
        address.check_single_credential(path)?;
        Ok(Some(address))
    }

    fn add_header(
        &mut self,
        name: String,
        value: value_source::ValueSource,
        path: &SettingPath,
    ) -> Result<(), SettingError> {
        let value = value.check(&name);
        let value = value.map_err(|text| SettingError::about(path.clone(), text))?;
        let text = match &value {
            ConfigValue::Plaintext(text) => text,
            _ => "",
        };
        check_header(&name, text).map_err(|text| SettingError::at_key(path.clone(), text))?;
        if self.has_header(&name) {
            let text = format!("{name:?} is set twice; keep one of the two");
            return Err(SettingError::at_key(path.clone(), text));
        }
        self.headers.push((name, value));
        Ok(())
    }

    /// Checks that only one setting authenticates the gateway to the server.
    fn check_single_credential(&self, path: &SettingPath) -> Result<(), SettingError> {
        let wrong = |key: &str, text: String| Err(SettingError::about(path.key(key), text));
        let known_client = match self.client {
            ClientRegistration::Dynamic => None,
            ClientRegistration::Preregistered(_) => Some("client_id"),
            ClientRegistration::MetadataDocument(_) => Some("client_document"),
        };
        match (&self.exchange, known_client) {
            (Some(_), _) if self.has_authorization() => {
                return wrong("exchange", "authenticates to the server, and so does the Authorization header; keep one of the two".to_owned());
            }
            (Some(_), Some(key)) => {
                return wrong(
                    "exchange",
                    format!(
                        "gets the tokens for this server, so no sign-in with {key} takes place; remove {key} from the server"
                    ),
                );
            }
            _ => {}
        }
        if matches!(self.sign_in, SignInParty::Gateway(_)) && self.has_authorization() {
            return wrong("sign_in", "makes the gateway sign in by itself, and the Authorization header authenticates it too; keep one of the two".to_owned());
        }
        let other = match () {
            () if !self.has_caller_credentials() => None,
            () if self.has_authorization() => {
                Some("the Authorization header is the same for all callers")
            }
            () if self.exchange.is_some() => {
                Some("the exchange already gets a token for each caller")
            }
            () if self.sign_in != SignInParty::Person => {
                Some("sign_in = \"client\" makes the gateway sign in for all callers")
            }
            () => None,
        };
        match other {
            Some(other) => wrong(
                "credentials",
                format!("gives each caller separate credentials, but {other}; keep one of the two"),
            ),
            None => Ok(()),
        }
    }

    /// Returns the reason why no person can sign in at this server, if there is one.
    pub(crate) fn sign_in_obstacle(&self) -> Option<&'static str> {
        if self.has_authorization() {
            return Some(
                "gets an Authorization header from the config, so a sign-in would have no effect; remove that header to sign in",
            );
        }
        if self.exchange.is_some() {
            return Some(
                "is called with exchanged tokens, so credentials from a sign-in would never be used; remove its exchange to sign in",
            );
        }
        match self.sign_in {
            SignInParty::Person => None,
            SignInParty::Gateway(_) => Some(
                "has sign_in = \"client\": the gateway signs in by itself, so no person has to",
            ),
        }
    }

    /// Returns true if each caller has separate credentials.
    pub(crate) fn has_caller_credentials(&self) -> bool {
        self.credential_owner == CredentialOwner::PerCaller
    }

    /// Returns true if each caller has a separate connection.
    pub(crate) fn has_caller_connections(&self) -> bool {
        self.exchange.is_some() || self.has_caller_credentials()
    }

    fn has_header(&self, name: &str) -> bool {
        let mut set = self.headers.iter();
        set.any(|(set, _)| set.eq_ignore_ascii_case(name))
    }

    /// Returns true if the config sets an `Authorization` header.
    pub(crate) fn has_authorization(&self) -> bool {
        self.has_header("authorization")
    }
}

/// Rejects a plaintext secret in a URL that is not marked with `danger_clear`.
fn check_plaintext_url(url: &MarkableText) -> Result<(), String> {
    let Some(written) = url.written() else {
        return Ok(());
    };
    match plaintext::secret_in_url(written).or_else(|| plaintext::secret_in_url(url.text())) {
        None => Ok(()),
        Some(why) => Err(format!(
            "{why}, which would be in plaintext in this file; if the server accepts it in a header, write the header with {}; otherwise write {{ {} = \"…\" }}",
            value_source::SECRET_ALTERNATIVES,
            value_source::PLAINTEXT_KEY
        )),
    }
}

/// Checks that a server URL is allowed.
///
/// # Errors
/// The reason why the URL is not allowed.
pub(super) fn check_server_url(url: &str) -> Result<(), String> {
    check_url(url)?;
    let uri: Uri = url.parse().map_err(|_| "it is not a valid URL")?;
    let open = uri.scheme() == Some(&Scheme::HTTP);
    if open && !uri.host().is_some_and(is_loopback) {
        return Err("http:// is allowed only for this machine, because anyone on the network path could read and change the traffic".to_owned());
    }
    Ok(())
}

/// Checks that an HTTP header can be sent.
pub(super) fn check_header(name: &str, value: &str) -> Result<(), String> {
    let checked = HttpOptions::default().header(name, value);
    checked
        .map(drop)
        .map_err(|bad| format!("the header {name:?} cannot be used: {bad}"))
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || bare
            .parse()
            .is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use std::path::Path;

    #[test]
    fn accepts_credentials_per_caller_only_where_callers_sign_in() {
        const EACH: &str =
            "[server.far]\nurl = \"https://far.test/mcp\"\ncredentials = \"per_caller\"\n";
        let read = |text: &str| {
            let config = Config::parse(Path::new("/etc/t.toml"), text);
            config.map_err(|error| error.to_string())
        };
        let each = |text: &str| {
            let address = read(text).unwrap().servers[0].address.clone().unwrap();
            (
                address.has_caller_credentials(),
                address.has_caller_connections(),
            )
        };
        assert_eq!(each(EACH), (true, true));
        assert_eq!(each(&EACH.replace("per_caller", "shared")), (false, false));
        assert_eq!(
            each(&EACH.replace("credentials = \"per_caller\"\n", "")),
            (false, false)
        );
        for (text, told) in [
            (EACH.replace("\"per_caller\"", "\"per_callers\""), "caller"),
            (
                EACH.replace("url = \"https://far.test/mcp\"", "command = [\"x\"]"),
                "is only valid for a server with a url",
            ),
            (
                format!("{EACH}headers = {{ Authorization = {{ env = \"A\" }} }}\n"),
                "keep one of the two",
            ),
            (
                format!(
                    "[auth]\nresource = \"https://t.test/mcp\"\n[auth.issuer.corp]\nurl = \"https://l.test\"\n{EACH}[server.far.exchange]\nurl = \"https://l.test/token\"\nclient_id = \"gate\"\nclient_secret = {{ env = \"S\" }}\n"
                ),
                "keep one of the two",
            ),
        ] {
            let error = read(&text).map(|_| ()).unwrap_err();
            assert!(
                error.contains("credentials") && error.contains(told),
                "{text}\n{error}"
            );
        }
    }

    #[test]
    fn http_reaches_only_this_machine() {
        for good in [
            "https://a.test/mcp",
            "https://10.0.0.1:8443/mcp",
            "http://localhost:80/mcp",
            "http://127.9.9.9/mcp",
            "http://[::1]:3000/mcp?k=1",
        ] {
            assert_eq!(check_server_url(good), Ok(()), "{good}");
        }
        for bad in [
            "http://a.test/mcp",
            "http://localhost.a.test/mcp",
            "http://127.0.0.1.a.test/",
            "http://10.0.0.1/",
            "HTTP://a.test/",
            "ws://a.test/",
            "https://u:p@a.test/",
            "https://",
        ] {
            assert!(check_server_url(bad).is_err(), "{bad}");
        }
    }
}
