//! A certificate authority for tests, and a client that trusts it.

use super::{Response, SOON, http::parse};
use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion,
    crypto::ring::default_provider,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName},
    version::{TLS12, TLS13},
};
use std::{
    fs,
    io::{self, Read, Write},
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

/// An authority that issues certificates.
pub(crate) struct TestAuthority {
    issuer: Issuer<'static, KeyPair>,
    root: CertificateDer<'static>,
}

/// A certificate and its private key.
pub(crate) struct Issued {
    pub(crate) certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl TestAuthority {
    pub(crate) fn new() -> TestAuthority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params
            .distinguished_name
            .push(DnType::CommonName, "an authority of tests");
        let key = KeyPair::generate().unwrap();
        let root = params.self_signed(&key).unwrap();
        TestAuthority {
            root: root.der().clone(),
            issuer: Issuer::new(params, key),
        }
    }

    /// Issues a certificate for these names, valid for 30 days.
    pub(crate) fn issue(&self, names: &[&str]) -> Issued {
        self.issue_until(
            names,
            SystemTime::now() + Duration::from_secs(30 * 24 * 3600),
        )
    }

    /// Issues a certificate that is valid until then.
    pub(crate) fn issue_until(&self, names: &[&str], end: SystemTime) -> Issued {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_after = end.into();
        let key = KeyPair::generate().unwrap();
        let issued = params.signed_by(&key, &self.issuer).unwrap();
        Issued {
            certificate: issued.der().clone(),
            key: key.serialize_der(),
        }
    }

    /// Writes the certificate of the authority.
    pub(crate) fn write_root(&self, file: &Path) {
        write(file, &pem("CERTIFICATE", &self.root), 0o644);
    }

    /// Returns a client that trusts the authority.
    pub(crate) fn client(&self) -> TlsClient {
        TlsClient {
            root: self.root.clone(),
            versions: vec![&TLS13],
            identity: None,
        }
    }
}

impl Issued {
    /// Writes `cert.pem` and `key.pem` into a directory, each in one step.
    pub(crate) fn write(&self, directory: &Path) -> (PathBuf, PathBuf) {
        let files = (directory.join("cert.pem"), directory.join("key.pem"));
        write(&files.0, &pem("CERTIFICATE", &self.certificate), 0o644);
        self.write_key(&files.1);
        files
    }

    /// Writes the private key.
    pub(crate) fn write_key(&self, file: &Path) {
        write(file, &pem("PRIVATE KEY", &self.key), 0o600);
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> = text
        .as_bytes()
        .chunks(64)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    format!(
        "-----BEGIN {label}-----\n{}\n-----END {label}-----\n",
        lines.join("\n")
    )
}

fn write(file: &Path, text: &str, mode: u32) {
    let new = file.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::set_permissions(&new, fs::Permissions::from_mode(mode)).unwrap();
    fs::rename(new, file).unwrap();
}

/// A client over TLS that trusts one authority.
pub(crate) struct TlsClient {
    root: CertificateDer<'static>,
    versions: Vec<&'static SupportedProtocolVersion>,
    identity: Option<(CertificateDer<'static>, Vec<u8>)>,
}

impl TlsClient {
    /// Limits the client to TLS 1.2.
    pub(crate) fn tls12(mut self) -> TlsClient {
        self.versions = vec![&TLS12];
        self
    }

    /// Gives the client a certificate of its own.
    pub(crate) fn with_identity(mut self, issued: &Issued) -> TlsClient {
        self.identity = Some((issued.certificate.clone(), issued.key.clone()));
        self
    }

    /// Connects to that name at a port of this machine, and performs the handshake.
    pub(crate) fn connect(
        &self,
        port: u16,
        name: &str,
    ) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.root.clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&self.versions)
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match &self.identity {
            None => config.with_no_client_auth(),
            Some((certificate, key)) => {
                let key = PrivateKeyDer::Pkcs8(key.clone().into());
                config
                    .with_client_auth_cert(vec![certificate.clone()], key)
                    .unwrap()
            }
        };
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let mut connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(SOON))?;
        while connection.is_handshaking() {
            connection.complete_io(&mut stream)?;
        }
        Ok(StreamOwned::new(connection, stream))
    }

    /// Sends a request to the port and reads the answer to its end.
    pub(crate) fn send(&self, port: u16, bytes: &[u8]) -> io::Result<Response> {
        tls_send(&mut self.connect(port, "127.0.0.1")?, bytes)
    }
}

/// Sends a request on a connection and reads the answer until the gateway closes the connection.
pub(crate) fn tls_send(
    stream: &mut StreamOwned<ClientConnection, TcpStream>,
    bytes: &[u8],
) -> io::Result<Response> {
    stream.write_all(bytes)?;
    let mut all = Vec::new();
    stream.read_to_end(&mut all)?;
    parse(&all).ok_or_else(|| io::Error::other(String::from_utf8_lossy(&all).into_owned()))
}
