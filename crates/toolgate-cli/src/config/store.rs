//! `[store]`: state that several gateways share in PostgreSQL.

use super::{
    ConfigValue,
    reader::{ConfigPath, ExpandedText, IntRange, SettingError, SettingPath},
    value_source::ValueSource,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::{net::SocketAddr, path::PathBuf};
use toolgate_store::postgres::PostgresAddress;

/// State that several gateways share.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct StoreSection {
    /// URL of the PostgreSQL database that the gateways share: `postgres://USER:PASSWORD@HOST/DATABASE`. A URL with a
    /// password needs `{ env = "NAME" }` or `{ file = "PATH" }`. To another machine, the
    /// gateway uses TLS and verifies the certificate, with `?sslrootcert=FILE` against your own authority. Default:
    /// none: the state is in the data directory.
    #[schemars(example = serde_json::json!({"env": "TOOLGATE_DATABASE_URL"}))]
    url: Option<ValueSource>,
    /// Maximum number of gateways that run at the same time.
    #[serde(with = "IntRange::<1, 64>")]
    gateways: u32,
    /// True if a URL with `sslmode=disable` may name another machine. The network can then read and change the state.
    danger_plaintext: bool,
    /// Host and port at which the other gateways reach this one, such as `10.0.0.5:7445`. Requests of a session go to
    /// the gateway that has it. It needs `ca`, `cert` and `key`. Default: none: a session works at its gateway only.
    #[schemars(example = &"10.0.0.5:7445")]
    advertise: Option<ExpandedText>,
    /// IP address and port at which this gateway listens for the others. Default: `advertise`, or its port on all
    /// addresses if it has a host name.
    listen: Option<ExpandedText>,
    /// Certificates of the authority that signs the gateways' certificates, in PEM. Whoever has a certificate of it
    /// counts as a gateway, so it must sign nothing else.
    ca: Option<ConfigPath>,
    /// Certificate of this gateway for the host of `advertise`, in PEM, for servers and clients.
    cert: Option<ConfigPath>,
    /// Private key of that certificate, in PEM.
    key: Option<ConfigPath>,
}

/// Settings of the shared store.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct StoreSettings {
    /// URL of the database; `None` for a store in the data directory.
    pub(crate) url: Option<ConfigValue>,
    /// Maximum number of gateways that run at the same time.
    pub(crate) gateways: u32,
    /// True if connections to other machines may be without TLS.
    pub(crate) danger_plaintext: bool,
    /// Connections between gateways.
    pub(crate) peers: Option<PeerSettings>,
}

/// Settings of the connections between gateways.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct PeerSettings {
    /// Host and port at which the other gateways reach this one.
    pub(crate) advertise: String,
    listen: Option<String>,
    pub(crate) ca: PathBuf,
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

impl PeerSettings {
    #[cfg(test)]
    pub(crate) fn new(advertise: &str, [ca, cert, key]: [PathBuf; 3]) -> PeerSettings {
        PeerSettings {
            advertise: advertise.to_owned(),
            listen: None,
            ca,
            cert,
            key,
        }
    }

    /// Returns the address at which this gateway listens for the others.
    pub(crate) fn listen_address(&self) -> String {
        match &self.listen {
            Some(listen) => listen.clone(),
            None if self.advertise.parse::<SocketAddr>().is_ok() => self.advertise.clone(),
            None => {
                let port = self.advertise.rsplit_once(':').map_or("", |(_, port)| port);
                format!("0.0.0.0:{port}")
            }
        }
    }
}

impl Default for StoreSection {
    fn default() -> StoreSection {
        let StoreSettings {
            gateways,
            danger_plaintext,
            ..
        } = StoreSettings::default();
        StoreSection {
            url: None,
            gateways,
            danger_plaintext,
            advertise: None,
            listen: None,
            ca: None,
            cert: None,
            key: None,
        }
    }
}

impl Default for StoreSettings {
    fn default() -> StoreSettings {
        StoreSettings {
            url: None,
            gateways: 1,
            danger_plaintext: false,
            peers: None,
        }
    }
}

impl StoreSettings {
    pub(super) fn check(section: StoreSection) -> Result<StoreSettings, SettingError> {
        let wrong = |text: String| {
            SettingError::message(SettingPath::new(&["store", "url"]), format!("url {text}"))
        };
        let peers = check_peers(&section)?;
        let url = section.url.map(|url| url.check("url")).transpose();
        let settings = StoreSettings {
            url: url.map_err(wrong)?,
            gateways: section.gateways,
            danger_plaintext: section.danger_plaintext,
            peers,
        };
        if let Some(ConfigValue::Plaintext(url)) = &settings.url {
            PostgresAddress::parse(url, settings.danger_plaintext).map_err(wrong)?;
        }
        if settings.url.is_none() && settings.peers.is_some() {
            return Err(SettingError::message(
                SettingPath::new(&["store", "advertise"]),
                "gateways find each other in a shared store; set url in [store]",
            ));
        }
        match (&settings.url, settings.gateways) {
            (None, 2..) => Err(SettingError::message(
                SettingPath::new(&["store", "gateways"]),
                "several gateways need a shared store; set url in [store]",
            )),
            _ => Ok(settings),
        }
    }

    /// Returns the address of the shared database, or `None` if the state is in the data directory.
    ///
    /// # Errors
    /// The URL is unavailable or invalid; the message says why, without the password.
    pub(crate) fn address(&self) -> Result<Option<PostgresAddress>, String> {
        let Some(url) = &self.url else {
            return Ok(None);
        };
        let read = match url {
            // The guardian, which reads the keyring, starts after the state is open.
            ConfigValue::Keyring(_) => Err("a keyring entry cannot be used here; use { env = \"NAME\" } or { file = \"PATH\" }".to_owned()),
            other => other.read(),
        };
        let read = read.map_err(|why| format!("the url in [store] cannot be read: {why}"))?;
        PostgresAddress::parse(read.reveal().trim(), self.danger_plaintext)
            .map(Some)
            .map_err(|why| format!("{} for url in [store] {why}", url.describe_source()))
    }
}

/// Checks the settings of the connections between gateways: all of them, or none.
fn check_peers(section: &StoreSection) -> Result<Option<PeerSettings>, SettingError> {
    let wrong =
        |key: &str, text: String| SettingError::message(SettingPath::new(&["store", key]), text);
    let path = |path: &Option<ConfigPath>| path.clone().map(PathBuf::from);
    let files = (path(&section.ca), path(&section.cert), path(&section.key));
    let (advertise, ca, cert, key) = match (&section.advertise, files) {
        (None, (None, None, None)) if section.listen.is_none() => return Ok(None),
        (Some(advertise), (Some(ca), Some(cert), Some(key))) => (advertise, ca, cert, key),
        _ => {
            return Err(wrong(
                "advertise",
                "connections between gateways need advertise, ca, cert and key together; `toolgate store pki` creates certificates".to_owned(),
            ));
        }
    };
    let port = advertise.text.rsplit_once(':');
    let port = port.filter(|(host, _)| !host.is_empty());
    if port
        .and_then(|(_, port)| port.parse::<u16>().ok())
        .is_none_or(|port| port == 0)
    {
        let text = format!(
            "\"{}\" is not a host and a port, such as 10.0.0.5:7445",
            advertise.text
        );
        return Err(wrong("advertise", text));
    }
    let listen = section.listen.as_ref().map(|listen| listen.text.clone());
    if let Some(listen) = &listen
        && listen.parse::<SocketAddr>().is_err()
    {
        let text = format!("\"{listen}\" is not an IP address and a port, such as 0.0.0.0:7445");
        return Err(wrong("listen", text));
    }
    Ok(Some(PeerSettings {
        advertise: advertise.text.clone(),
        listen,
        ca,
        cert,
        key,
    }))
}
