//! OAuth client registration at a server's authorization server: `client_id` and its credentials, or a client metadata
//! document. With `sign_in = "client"`, the gateway signs in without a person.

use super::{
    config_value::ConfigValue,
    reader::{SettingError, SettingPath},
    server_section::{ServerSection, SignInWord},
};
use toolgate_auth::Url;

/// Keys of a server's section that this module checks.
pub(super) const OAUTH_CLIENT_KEYS: &[&str] = &[
    "client_id",
    "issuer",
    "client_secret",
    "client_key",
    "client_document",
    "sign_in",
    "scopes",
];

/// Example of an issuer for error messages.
const EXAMPLE_ISSUER: &str = "issuer = \"https://login.example.com\"";

/// OAuth client registration at a server's authorization server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum ClientRegistration {
    /// Dynamic client registration (RFC 7591).
    Dynamic,
    /// Preregistered client.
    Preregistered(PreregisteredClient),
    /// Client ID Metadata Document at this URL.
    MetadataDocument(Url),
}

/// Preregistered OAuth client.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct PreregisteredClient {
    /// Client id, which is not secret.
    pub(crate) id: String,
    /// Issuer identifier of the authorization server; the client's credentials are sent only there.
    pub(crate) issuer: String,
    /// Client authentication.
    pub(crate) credential: ClientCredential,
}

/// Client authentication method.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum ClientCredential {
    /// None: a public client.
    Public,
    /// Client secret.
    Secret(ConfigValue),
    /// Private key for signed assertions (`private_key_jwt`).
    PrivateKey(ConfigValue),
}

/// Party that signs in at a server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum SignInParty {
    /// A person, with a command or in the console.
    Person,
    /// The gateway itself, with these scopes; empty for the scopes that the server names.
    Gateway(Vec<String>),
}

impl ClientRegistration {
    /// Returns the source of the client secret or private key.
    pub(crate) fn credential_value(&self) -> Option<&ConfigValue> {
        match self {
            ClientRegistration::Preregistered(PreregisteredClient {
                credential: ClientCredential::Secret(given) | ClientCredential::PrivateKey(given),
                ..
            }) => Some(given),
            _ => None,
        }
    }

    /// Returns the registration that the section of a server describes.
    pub(super) fn check(
        section: &ServerSection,
        path: &SettingPath,
    ) -> Result<ClientRegistration, SettingError> {
        let wrong = |key: &str, text: &str| Err(SettingError::about(path.key(key), text));
        let Some(id) = &section.client_id else {
            let of_client = [
                ("issuer", section.issuer.is_some()),
                ("client_secret", section.client_secret.is_some()),
                ("client_key", section.client_key.is_some()),
            ];
            if let Some((key, _)) = of_client.iter().find(|(_, given)| *given) {
                return wrong(
                    key,
                    "has no effect without a client_id; write client_id too, or remove it",
                );
            }
            return match &section.client_document {
                None => Ok(ClientRegistration::Dynamic),
                Some(document) if document.url.is_https() && document.url.path() != "/" => {
                    Ok(ClientRegistration::MetadataDocument(document.url.clone()))
                }
                Some(_) => wrong(
                    "client_document",
                    "is not the URL of a client metadata document, which begins with https:// and has a path; write one such as \"https://tools.example.com/client.json\"",
                ),
            };
        };
        if section.client_document.is_some() {
            return wrong(
                "client_document",
                "identifies the client, and so does client_id; keep one of the two",
            );
        }
        if id.text.is_empty() {
            return wrong(
                "client_id",
                "is empty; write the id that the authorization server assigned",
            );
        }
        let credential = match (&section.client_secret, &section.client_key) {
            (None, None) => ClientCredential::Public,
            (Some(secret), None) => ClientCredential::Secret(secret.0.clone()),
            (None, Some(key)) => ClientCredential::PrivateKey(key.0.clone()),
            (Some(_), Some(_)) => {
                return wrong(
                    "client_key",
                    "authenticates the client, and so does client_secret; keep one of the two",
                );
            }
        };
        let Some(issuer) = &section.issuer else {
            return wrong(
                "client_id",
                &format!(
                    "needs the issuer of the authorization server that knows this client: without it, the gateway would send the client id and any client secret to any authorization server that this server names; write {EXAMPLE_ISSUER}, exactly as the authorization server identifies itself"
                ),
            );
        };
        Ok(ClientRegistration::Preregistered(PreregisteredClient {
            id: id.text.clone(),
            // The issuer is compared exactly, so the text is stored unchanged.
            issuer: issuer.text.clone(),
            credential,
        }))
    }
}

impl SignInParty {
    /// Returns the party that the section of a server names.
    pub(super) fn check(
        section: &ServerSection,
        client: &ClientRegistration,
        path: &SettingPath,
    ) -> Result<SignInParty, SettingError> {
        let scopes = section.scopes.clone().map(|scopes| scopes.0);
        match (section.sign_in, scopes) {
            (SignInWord::Person, None) => Ok(SignInParty::Person),
            (SignInWord::Person, Some(_)) => Err(SettingError::about(
                path.key("scopes"),
                "is only used if the gateway signs in by itself; write sign_in = \"client\" too, or remove the scopes: a person's sign-in requests the scopes that the server names",
            )),
            (SignInWord::Client, scopes) if client.credential_value().is_some() => {
                Ok(SignInParty::Gateway(scopes.unwrap_or_default()))
            }
            (SignInWord::Client, _) => Err(SettingError::about(
                path.key("sign_in"),
                format!(
                    "makes the gateway sign in by itself, which needs a registered client; write client_id, {EXAMPLE_ISSUER}, and client_secret or client_key = {{ file = \"PATH\" }}"
                ),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, RemoteAddress};
    use std::path::Path;

    const ID: &str = "client_id = \"gate\"\n";
    const AT: &str = "issuer = \"https://l.test/a/\"\n";
    const SECRET: &str = "client_secret = { keyring = \"far\" }\n";
    const KEY: &str = "client_key = { file = \"far.pem\" }\n";
    const ITSELF: &str = "sign_in = \"client\"\n";
    const AUTH: &str = "headers = { Authorization = { env = \"A\" } }\n";
    const EXCHANGE: &str = "[server.far.exchange]\nurl = \"https://l.test/token\"\nclient_id = \"gate\"\nclient_secret = { env = \"S\" }\n";

    fn read(parts: &[&str]) -> Result<RemoteAddress, String> {
        let text = format!(
            "[auth]\nresource = \"https://t.test/mcp\"\n[auth.issuer.corp]\nurl = \"https://l.test\"\n[server.far]\nurl = \"https://far.test/mcp\"\n{}",
            parts.concat()
        );
        let config = Config::parse(Path::new("/etc/t.toml"), &text);
        let config = config.map_err(|error| error.to_string())?;
        Ok(config.servers[0].address.clone().unwrap())
    }

    #[test]
    fn a_client_is_complete_and_has_one_issuer() {
        let known = |parts: &[&str]| match read(parts).unwrap().client {
            ClientRegistration::Preregistered(known) => (known.issuer, known.credential),
            other => panic!("{other:?}"),
        };
        let issuer = "https://l.test/a/".to_owned();
        assert_eq!(known(&[ID, AT]), (issuer.clone(), ClientCredential::Public));
        let secret = ConfigValue::Keyring("far".to_owned());
        assert_eq!(
            known(&[ID, AT, SECRET]),
            (issuer.clone(), ClientCredential::Secret(secret))
        );
        let key = ConfigValue::File("/etc/far.pem".into());
        assert_eq!(
            known(&[ID, AT, KEY]),
            (issuer, ClientCredential::PrivateKey(key))
        );
        assert_eq!(read(&[]).unwrap().client, ClientRegistration::Dynamic);
        let document = "client_document = \"https://t.test/client.json\"\n";
        let read_document = read(&[document]).unwrap().client;
        assert_eq!(
            read_document,
            ClientRegistration::MetadataDocument(Url::parse("https://t.test/client.json").unwrap())
        );
        for (parts, told) in [
            (
                &[ID] as &[_],
                "\"client_id\" in [server.far] needs the issuer of the authorization server",
            ),
            (
                &[ID, SECRET],
                "write issuer = \"https://login.example.com\"",
            ),
            (
                &[ID, "issuer = \"http://l.test\"\n"],
                "http:// is allowed only for this machine",
            ),
            (
                &[AT],
                "\"issuer\" in [server.far] has no effect without a client_id",
            ),
            (&[SECRET], "has no effect without a client_id"),
            (&[KEY], "has no effect without a client_id"),
            (&[ID, AT, SECRET, KEY], "keep one of the two"),
            (
                &[ID, AT, "client_key = \"canary\"\n"],
                "would store a secret in plaintext",
            ),
            (&[ID, AT, document], "keep one of the two"),
            (
                &["client_document = \"http://127.0.0.1/client.json\"\n"],
                "begins with https://",
            ),
            (&["client_document = \"https://t.test\"\n"], "has a path"),
            (
                &[document, EXCHANGE],
                "remove client_document from the server",
            ),
        ] {
            let error = read(parts).map(drop).unwrap_err();
            assert!(
                error.contains(told) && !error.contains("canary"),
                "{parts:?}\n{error}"
            );
        }
    }

    #[test]
    fn the_gateway_signs_in_only_with_a_credential() {
        let signs_in = |parts: &[&str]| read(parts).unwrap().sign_in;
        let asks = "scopes = [\"a\", \"b\"]\n";
        let both = SignInParty::Gateway(vec!["a".to_owned(), "b".to_owned()]);
        assert_eq!(signs_in(&[ID, AT, SECRET, ITSELF, asks]), both);
        assert_eq!(
            signs_in(&[ID, AT, KEY, ITSELF]),
            SignInParty::Gateway(Vec::new())
        );
        assert_eq!(signs_in(&["sign_in = \"person\"\n"]), SignInParty::Person);
        for (parts, told) in [
            (&[ITSELF] as &[_], "write client_id, issuer = "),
            (&[ID, AT, ITSELF], "and client_secret or client_key"),
            (&[ID, AT, SECRET, asks], "write sign_in = \"client\" too"),
            (&["sign_in = \"nobody\"\n"], "person"),
            (
                &[ID, AT, SECRET, ITSELF, "credentials = \"per_caller\"\n"],
                "keep one of the two",
            ),
            (&[ID, AT, SECRET, ITSELF, AUTH], "the Authorization header"),
            (
                &[ID, AT, SECRET, ITSELF, EXCHANGE],
                "remove client_id from the server",
            ),
        ] {
            let error = read(parts).map(drop).unwrap_err();
            assert!(error.contains(told), "{parts:?}\n{error}");
        }
    }
}
