//! Connections with SSRF protection: resolves a name once, checks every address, and connects to a checked address.

use super::{AddressPolicy, FetchError, FetchErrorKind};
use crate::Url;
use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, OnceLock},
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

/// DNS resolver.
#[derive(Clone)]
pub(super) enum DnsResolver {
    /// Resolver of the operating system.
    System,
    /// Test resolver, with a callback for each connection.
    #[cfg(test)]
    Test(TestLookup, TestConnect),
}

#[cfg(test)]
type TestLookup = Arc<dyn Fn(&str) -> Vec<IpAddr> + Send + Sync>;

#[cfg(test)]
type TestConnect = Arc<dyn Fn(IpAddr) + Send + Sync>;

impl DnsResolver {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<IpAddr>> {
        match self {
            DnsResolver::System => {
                let found = tokio::net::lookup_host((host, port)).await?;
                Ok(found.map(|address| address.ip()).collect())
            }
            #[cfg(test)]
            DnsResolver::Test(tell, _) => Ok(tell(host)),
        }
    }

    /// Connects to an address after checking it against the policy.
    pub(super) async fn connect(
        &self,
        url: &Url,
        reach: &AddressPolicy,
    ) -> Result<TcpStream, FetchError> {
        let refused = |words: &str| FetchError::new(url, FetchErrorKind::Forbidden, words);
        reach.check_scheme(url).map_err(refused)?;
        let ips = match url.ip() {
            Some(ip) => vec![ip],
            None => self
                .resolve(url.host(), url.port())
                .await
                .map_err(|error| {
                    let words =
                        format!("the host name cannot be resolved: {error}; check the host name");
                    FetchError::new(url, FetchErrorKind::Unreachable, words)
                })?,
        };
        for ip in &ips {
            // One forbidden address rejects the name: a name with public and private addresses indicates DNS rebinding.
            reach.check_address(*ip).map_err(refused)?;
            if !url.is_https() && !ip.is_loopback() {
                return Err(refused(
                    "the URL does not use https, and its host is not this machine",
                ));
            }
        }
        let mut last = io::Error::other("the host name has no address");
        for ip in ips {
            #[cfg(test)]
            if let DnsResolver::Test(_, heard) = self {
                heard(ip);
            }
            match TcpStream::connect(SocketAddr::new(ip, url.port())).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        let words =
            format!("cannot be reached: {last}; check the URL, and whether the server is running");
        Err(FetchError::new(url, FetchErrorKind::Unreachable, words))
    }
}

/// Starts TLS with the host of a URL.
pub(super) async fn start_tls(
    url: &Url,
    tcp: TcpStream,
) -> Result<TlsStream<TcpStream>, FetchError> {
    let broken = |words: String| FetchError::new(url, FetchErrorKind::Unreachable, words);
    let config = tls_config().clone().map_err(&broken)?;
    let name = ServerName::try_from(url.host().to_owned());
    let name =
        name.map_err(|_| broken("the host name is not valid in a TLS certificate".to_owned()))?;
    let stream = TlsConnector::from(config).connect(name, tcp).await;
    stream.map_err(|error| {
        broken(format!(
            "the TLS handshake failed: {error}; check the certificate of the server"
        ))
    })
}

/// Returns the TLS configuration with the root certificates of the system, loaded once.
fn tls_config() -> &'static Result<Arc<ClientConfig>, String> {
    static TLS_CONFIG: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
    TLS_CONFIG.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            return Err("the system has no trusted root certificates; install them (often the package ca-certificates)".to_owned());
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let config = config.with_root_certificates(roots).with_no_client_auth();
        Ok(Arc::new(config))
    })
}
