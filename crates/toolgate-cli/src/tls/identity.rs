//! A certificate chain with its private key, read from PEM files and checked.

use super::CertificateSummary;
use crate::config::TlsSettings;
use ring::digest;
use rustls::{
    RootCertStore, ServerConfig,
    crypto::{CryptoProvider, ring::default_provider},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
    version::{TLS12, TLS13},
};
use std::{fmt::Display, path::Path, sync::Arc};

/// Maximum number of certificates in one file.
const MAX_CERTIFICATES: usize = 256;

/// A certificate chain with its private key, ready for connections.
pub(crate) struct TlsIdentity {
    pub(super) config: Arc<ServerConfig>,
    /// Summary of the gateway's certificate.
    pub(crate) certificate: CertificateSummary,
    /// Digest of all certificates and the key, by which a change of the files is detected.
    pub(super) digest: Vec<u8>,
}

impl TlsIdentity {
    /// Reads the files of the settings, and checks that they fit together. It does not check the dates.
    ///
    /// # Errors
    /// A file cannot be read or used; the message names it, and says what to do.
    pub(crate) fn load(settings: &TlsSettings) -> Result<TlsIdentity, String> {
        let chain = read_certificates("cert", &settings.cert)?;
        let first = chain.first().cloned().unwrap_or_else(|| Vec::new().into());
        let certificate =
            CertificateSummary::of(&first).map_err(|why| about("cert", &settings.cert, why))?;
        let key = read_key(settings)?;
        let authorities = match &settings.client_ca {
            Some(file) => read_certificates("client_ca", file)?,
            None => Vec::new(),
        };
        let digest = digest_of(&chain, &key, &authorities);
        let provider = Arc::new(default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&TLS13, &TLS12])
            .map_err(|error| format!("TLS cannot be used: {error}"))?;
        let builder = match &settings.client_ca {
            None => builder.with_no_client_auth(),
            Some(file) => {
                let verifier = client_verifier(authorities, provider);
                let verifier = verifier.map_err(|why| about("client_ca", file, why))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder.with_single_cert(chain, key).map_err(|error| {
            let why = match error {
                rustls::Error::InconsistentKeys(_) => {
                    format!("is not the private key of the certificate in {}; write the key with which that certificate was requested", settings.cert.display())
                }
                error => format!("cannot be used with the certificate in {}: {error}", settings.cert.display()),
            };
            about("key", &settings.key, why)
        })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsIdentity {
            config: Arc::new(config),
            certificate,
            digest,
        })
    }
}

/// Returns a digest of the parts of an identity, each with its length.
fn digest_of(
    chain: &[CertificateDer<'_>],
    key: &PrivateKeyDer<'_>,
    authorities: &[CertificateDer<'_>],
) -> Vec<u8> {
    let mut context = digest::Context::new(&digest::SHA256);
    let chain = chain.iter().map(|one| &**one);
    let authorities = authorities.iter().map(|one| &**one);
    for part in chain.chain([key.secret_der()]).chain(authorities) {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    context.finish().as_ref().to_vec()
}

fn read_certificates(key: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let text = TlsSettings::read_certificates(path).map_err(|why| about(key, path, why))?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes())
        .take(MAX_CERTIFICATES)
        .collect();
    match certificates {
        Ok(certificates) if certificates.is_empty() => Err(about(
            key,
            path,
            "has no certificate; write it in PEM, beginning with -----BEGIN CERTIFICATE-----",
        )),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(about(key, path, format!("is not valid PEM: {error}"))),
    }
}

fn read_key(settings: &TlsSettings) -> Result<PrivateKeyDer<'static>, String> {
    let text = settings.read_key();
    let text = text.map_err(|why| about("key", &settings.key, why))?;
    PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|_| {
        let why = match text.contains("ENCRYPTED") {
            true => "is encrypted with a passphrase; store it without one: openssl pkey -in KEY -out NEW",
            false => "has no private key; write it in PEM, beginning with -----BEGIN PRIVATE KEY-----",
        };
        about("key", &settings.key, why)
    })
}

fn client_verifier(
    authorities: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in authorities {
        let added = roots.add(certificate);
        added.map_err(|error| format!("has a certificate that cannot be used: {error}"))?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| format!("cannot be used: {error}"))
}

fn about(key: &str, path: &Path, why: impl Display) -> String {
    format!("{key} in [tls]: {} {why}", path.display())
}
