//! Remote servers: `url` and the HTTP headers of its requests.

use super::{
    client_registration::{self, ClientRegistration, SignInParty},
    config_value::{self, ConfigValue},
    error::ConfigError,
    plaintext,
    section::{ConfigField, ConfigSection},
    token_exchange::ExchangeSettings,
};
use http::{Uri, uri::Scheme};
use std::{borrow::Cow, fmt, path::Path};
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

/// Owner of the OAuth credentials from a sign-in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CredentialOwner {
    /// Shared by all callers of the server.
    Shared,
    /// Separate for each caller.
    PerCaller,
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

    /// Reads `url` and the keys that go with it, if present.
    pub(super) fn read(
        section: &ConfigSection<'_>,
        id: &str,
        base: &Path,
    ) -> Result<Option<RemoteAddress>, ConfigError> {
        let Some(field) = section.get("url") else {
            let mut keys = REMOTE_SERVER_KEYS
                .iter()
                .chain(client_registration::OAUTH_CLIENT_KEYS);
            return match keys.find_map(|key| section.get(key)) {
                Some(field) => Err(field.key_error(format!(
                    "is only valid for a server with a url; write url = {EXAMPLE_URL}"
                ))),
                None => Ok(None),
            };
        };
        let url = read_server_url(&field)?;
        check_server_url(&url).map_err(|reason| {
            field.key_error(format!(
                "cannot be used: {reason}; write url = {EXAMPLE_URL}"
            ))
        })?;
        let client = ClientRegistration::read(section, base)?;
        let private = section.get("danger_private_addresses");
        let mut address = RemoteAddress {
            url: url.into_owned(),
            headers: Vec::new(),
            sign_in: SignInParty::read(section, &client)?,
            client,
            danger_private: private.map_or(Ok(false), |field| field.boolean())?,
            exchange: ExchangeSettings::read(section, id, base)?,
            credential_owner: CredentialOwner::Shared,
        };
        if let Some(field) = section.get("headers") {
            let name = format!("[server.{id}.headers]");
            let all = field.any_section(name, "{ Name = \"value\" }")?;
            for (name, at, value) in all.entries() {
                let given = ConfigValue::read_value(&value, name, base)?;
                let text = match &given {
                    ConfigValue::Plaintext(text) => text,
                    _ => "",
                };
                check_header(name, text).map_err(|text| all.doc.error(at, text))?;
                if address.has_header(name) {
                    let text = format!("{name:?} is set twice; keep one of the two");
                    return Err(all.doc.error(at, text));
                }
                address.headers.push((name.to_owned(), given));
            }
        }
        address.check_single_credential(section)?;
        Ok(Some(address))
    }

    /// Checks that only one setting authenticates the gateway to the server.
    fn check_single_credential(&mut self, section: &ConfigSection<'_>) -> Result<(), ConfigError> {
        if let (Some(_), Some(field)) = (&self.exchange, section.get("exchange")) {
            if self.has_authorization() {
                return Err(field.key_error(
                    "authenticates to the server, and so does the Authorization header; keep one of the two",
                ));
            }
            let mut of_client = ["client_id", "client_document"].into_iter();
            if let Some(key) = of_client.find(|key| section.get(key).is_some()) {
                return Err(field.key_error(format!("has its own client_id, and no sign-in is used at this server; remove {key} from the server")));
            }
        }
        if let (SignInParty::Gateway(_), Some(field)) = (&self.sign_in, section.get("sign_in"))
            && self.has_authorization()
        {
            return Err(field.key_error(
                "makes the gateway sign in by itself, and the Authorization header authenticates it too; keep one of the two",
            ));
        }
        if let Some(field) = section.get("credentials") {
            self.credential_owner = field.one_of(&[
                ("shared", CredentialOwner::Shared),
                ("per_caller", CredentialOwner::PerCaller),
            ])?;
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
            if let Some(other) = other {
                return Err(field.key_error(format!(
                    "gives each caller separate credentials, but {other}; keep one of the two"
                )));
            }
        }
        Ok(())
    }

    /// Returns the reason why no person can sign in at this server, if there is one.
    pub(crate) fn sign_in_obstacle(&self) -> Option<&'static str> {
        if self.has_authorization() {
            return Some("gets an Authorization header from the config; remove that to sign in");
        }
        if self.exchange.is_some() {
            return Some(
                "is used with exchanged tokens of the callers, so these credentials would never be used; remove its exchange to sign in",
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

/// Reads `url` and rejects plaintext secrets that are not marked with `danger_clear`.
fn read_server_url<'a>(field: &ConfigField<'a>) -> Result<Cow<'a, str>, ConfigError> {
    if let Some(clear) = config_value::marked_plaintext(field) {
        return clear.map(Cow::Borrowed);
    }
    let url = field.expanded()?;
    let why = plaintext::secret_in_url(field.text()?).or_else(|| plaintext::secret_in_url(&url));
    match why {
        None => Ok(url),
        Some(why) => Err(field.key_error(format!(
            "{why}, and would be in plaintext in this file; if the server accepts it in a header, write the header with {}; otherwise write {{ {} = \"…\" }}",
            config_value::SECRET_ALTERNATIVES,
            config_value::PLAINTEXT_KEY
        ))),
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
        .map_err(|bad| format!("the header {name:?} cannot be sent: {bad}"))
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
