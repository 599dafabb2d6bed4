//! TLS between gateways. Both sides show a certificate of the authority that the config names.

use crate::config::PeerSettings;
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use std::{fmt, path::Path, sync::Arc};

/// TLS settings of both directions.
#[derive(Clone)]
pub(crate) struct PeerTls {
    pub(super) client: Arc<ClientConfig>,
    pub(super) server: Arc<ServerConfig>,
}

impl PeerTls {
    /// Reads the certificates and the key.
    ///
    /// # Errors
    /// A file cannot be read, or they do not belong together; the message names the setting.
    pub(crate) fn read(settings: &PeerSettings) -> Result<PeerTls, String> {
        let wrong = |key: &str, path: &Path, why: &dyn fmt::Display| {
            format!(
                "the {key} of [store], {}, cannot be used: {why}; `toolgate store pki` creates certificates",
                path.display()
            )
        };
        let certificates = |key: &str, path: &Path| {
            let found = CertificateDer::pem_file_iter(path).map_err(|e| wrong(key, path, &e))?;
            let found: Result<Vec<_>, _> = found.collect();
            found.map_err(|e| wrong(key, path, &e))
        };
        let mut roots = RootCertStore::empty();
        for certificate in certificates("ca", &settings.ca)? {
            let added = roots.add(certificate);
            added.map_err(|e| wrong("ca", &settings.ca, &e))?;
        }
        let chain = certificates("cert", &settings.cert)?;
        let key = PrivateKeyDer::from_pem_file(&settings.key)
            .map_err(|e| wrong("key", &settings.key, &e))?;
        let provider = Arc::new(ring::default_provider());
        let roots = Arc::new(roots);
        let client = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|e| wrong("cert", &settings.cert, &e))?
            .with_root_certificates(roots.clone())
            .with_client_auth_cert(chain.clone(), key.clone_key())
            .map_err(|e| wrong("cert", &settings.cert, &e))?;
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider.clone())
            .build()
            .map_err(|e| wrong("ca", &settings.ca, &e))?;
        let server = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| wrong("cert", &settings.cert, &e))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .map_err(|e| wrong("cert", &settings.cert, &e))?;
        Ok(PeerTls {
            client: Arc::new(client),
            server: Arc::new(server),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::pki;
    use rustls::pki_types::ServerName;
    use std::time::SystemTime;
    use tokio_rustls::{TlsAcceptor, TlsConnector};

    /// TLS settings of a gateway whose authority is in a new directory.
    fn gateway(name: &str) -> (PeerTls, std::path::PathBuf) {
        let dir = std::env::temp_dir().join(format!("toolgate-pki-{name}-{}", std::process::id()));
        pki::create(&dir, &["127.0.0.1".to_owned()], SystemTime::now()).unwrap();
        let file = |name: &str| dir.join(name);
        let settings = PeerSettings::new(
            "127.0.0.1:7445",
            [file("ca.pem"), file("127.0.0.1.pem"), file("127.0.0.1.key")],
        );
        (PeerTls::read(&settings).unwrap(), dir)
    }

    async fn connect(client: &PeerTls, server: &PeerTls, without_certificate: bool) -> bool {
        let (one, other) = tokio::io::duplex(64 * 1024);
        let mut config = (*client.client).clone();
        if without_certificate {
            config.client_auth_cert_resolver = Arc::new(NoCertificate);
        }
        let connector = TlsConnector::from(Arc::new(config));
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let acceptor = TlsAcceptor::from(server.server.clone());
        let (_, accepted) = tokio::join!(connector.connect(name, one), acceptor.accept(other));
        accepted.is_ok()
    }

    #[derive(Debug)]
    struct NoCertificate;

    impl rustls::client::ResolvesClientCert for NoCertificate {
        fn resolve(
            &self,
            _: &[&[u8]],
            _: &[rustls::SignatureScheme],
        ) -> Option<Arc<rustls::sign::CertifiedKey>> {
            None
        }

        fn has_certs(&self) -> bool {
            false
        }
    }

    #[tokio::test]
    async fn only_gateways_of_the_same_authority_connect() {
        let (ours, one) = gateway("one");
        let (strangers, other) = gateway("other");
        assert!(connect(&ours, &ours, false).await);
        assert!(!connect(&strangers, &ours, false).await);
        assert!(!connect(&ours, &strangers, false).await);
        assert!(!connect(&ours, &ours, true).await);
        // A second call adds a gateway, and keeps the authority and all files.
        let more = pki::create(&one, &["gw.test".to_owned()], SystemTime::now()).unwrap();
        assert_eq!(more.gateways.len(), 1);
        let again = pki::create(&one, &["gw.test".to_owned()], SystemTime::now()).unwrap_err();
        assert!(again.contains("gw.test.key"), "{again}");
        for dir in [one, other] {
            std::fs::remove_dir_all(dir).unwrap();
        }
    }
}
