//! `[tls]`: certificate and private key of the gateway's own listener.

use super::{
    file::{self, FilePrivacy},
    reader::ConfigPath,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Maximum size of a file with certificates or a private key, in bytes.
const MAX_PEM_BYTES: u64 = 1024 * 1024;

/// Certificate and private key of the gateway's own listener.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TlsSection {
    /// File with the certificate chain in PEM: the certificate of the gateway first, then the intermediate
    /// certificates.
    #[schemars(example = &"tls/cert.pem")]
    cert: ConfigPath,
    /// File with the private key of the certificate in PEM: PKCS #8, PKCS #1 or SEC1, without a passphrase. Only its
    /// owner and its group may read it, and only you or root may own it.
    #[schemars(example = &"tls/key.pem")]
    key: ConfigPath,
    /// File with the certificates of authorities in PEM. With it, the listener accepts only clients with a certificate
    /// of one of these authorities. Callers still need their credentials. Default: none: no client certificate is
    /// requested.
    #[schemars(example = &"tls/clients.pem")]
    client_ca: Option<ConfigPath>,
}

/// Files of the gateway's certificate, its private key, and the authorities of its clients.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct TlsSettings {
    /// File with the certificate chain in PEM.
    pub(crate) cert: PathBuf,
    /// File with the private key in PEM.
    pub(crate) key: PathBuf,
    /// File with the authorities of client certificates in PEM. `None`: no client certificate is requested.
    pub(crate) client_ca: Option<PathBuf>,
}

impl From<TlsSection> for TlsSettings {
    fn from(section: TlsSection) -> TlsSettings {
        TlsSettings {
            cert: section.cert.into(),
            key: section.key.into(),
            client_ca: section.client_ca.map(PathBuf::from),
        }
    }
}

impl TlsSettings {
    /// Returns all files of the settings.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        let client_ca = self.client_ca.iter();
        [&self.cert, &self.key]
            .into_iter()
            .chain(client_ca)
            .map(PathBuf::as_path)
    }

    /// Reads a file with certificates.
    ///
    /// # Errors
    /// The file cannot be read, or others can change it.
    pub(crate) fn read_certificates(path: &Path) -> Result<String, String> {
        file::read(path, MAX_PEM_BYTES, FilePrivacy::Certificate)
    }

    /// Reads the file with the private key.
    ///
    /// # Errors
    /// The file cannot be read, or users other than its owner and its group can read it.
    pub(crate) fn read_key(&self) -> Result<String, String> {
        file::read(&self.key, MAX_PEM_BYTES, FilePrivacy::PrivateKey)
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use std::path::Path;

    fn read(text: &str) -> Result<Config, String> {
        let text = format!("{text}\n[server.a]\ncommand = [\"a\"]\n");
        Config::parse(Path::new("/etc/t.toml"), &text).map_err(|error| error.to_string())
    }

    #[test]
    fn reads_the_files_of_the_certificate() {
        assert_eq!(read("").unwrap().tls, None);
        let tls = read("[tls]\ncert = \"c.pem\"\nkey = \"/k.pem\"\nclient_ca = \"ca.pem\"\n");
        let tls = tls.unwrap().tls.unwrap();
        let files: Vec<_> = tls.files().collect();
        let expected = ["/etc/c.pem", "/k.pem", "/etc/ca.pem"].map(Path::new);
        assert_eq!(files, expected);
    }

    #[test]
    fn needs_both_the_certificate_and_its_key() {
        for (text, missing) in [("cert = \"c.pem\"", "key"), ("key = \"k.pem\"", "cert")] {
            let error = read(&format!("[tls]\n{text}\n")).unwrap_err();
            assert!(error.contains(missing), "{error}");
        }
    }
}
