//! Address of the database: a `postgres://` URL, and the certificates that TLS accepts.

use super::tls::VerifiedTls;
use crate::StoreError;
use percent_encoding::percent_decode_str;
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, pem::PemObject};
use std::{fmt, net::IpAddr, path::Path};
use tokio_postgres::config::{Config, Host, SslMode, TargetSessionAttrs};

/// Address of a PostgreSQL database with its user, password and TLS settings.
///
/// `Display` shows hosts and the name of the database, never the password.
#[derive(Clone)]
pub struct PostgresAddress {
    pub(super) config: Config,
    /// `None` for a connection without TLS.
    pub(super) tls: Option<VerifiedTls>,
    hosts: String,
}

impl PostgresAddress {
    /// Reads a URL such as `postgres://USER:PASSWORD@HOST/DATABASE?sslrootcert=FILE`. Connections to other machines use
    /// TLS with a verified certificate, unless `allow_plaintext` permits `sslmode=disable`.
    ///
    /// # Errors
    /// The URL or its certificate file cannot be used; the message says why, without the password.
    pub fn parse(url: &str, allow_plaintext: bool) -> Result<PostgresAddress, String> {
        if !["postgres://", "postgresql://"]
            .iter()
            .any(|scheme| url.starts_with(scheme))
        {
            return Err(
                "is not the URL of a database; write postgres://USER:PASSWORD@HOST/DATABASE"
                    .to_owned(),
            );
        }
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut mode, mut roots, mut rest) = (None, None, Vec::new());
        for part in query.split('&').filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value.to_owned()),
                Some(("sslrootcert", value)) => {
                    roots = Some(percent_decode_str(value).decode_utf8_lossy().into_owned());
                }
                _ => rest.push(part),
            }
        }
        let url = match rest.is_empty() {
            true => base.to_owned(),
            false => format!("{base}?{}", rest.join("&")),
        };
        let config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            format!(
                "is not the URL of a database: {}",
                cause.unwrap_or_else(|| error.to_string())
            )
        })?;
        Self::with_tls(config, mode.as_deref(), roots.as_deref(), allow_plaintext)
    }

    fn with_tls(
        mut config: Config,
        mode: Option<&str>,
        roots: Option<&str>,
        allow_plaintext: bool,
    ) -> Result<PostgresAddress, String> {
        if config.get_user().is_none() {
            return Err("has no user; write postgres://USER:PASSWORD@HOST/DATABASE".to_owned());
        }
        let is_local = config.get_hosts().iter().all(is_local) && config.get_hostaddrs().is_empty();
        let encrypts = match mode {
            None => !is_local || roots.is_some(),
            Some("disable") if is_local || allow_plaintext => false,
            Some("disable") => {
                return Err(
                    "disables TLS to another machine; remove sslmode, or set danger_plaintext = true"
                        .to_owned(),
                );
            }
            Some("require" | "verify-ca" | "verify-full") => true,
            Some(other) => {
                return Err(format!(
                    "has an unknown sslmode, {other}; use verify-full or disable"
                ));
            }
        };
        config.application_name("toolgate");
        // A standby cannot store anything. With several hosts, the primary is chosen.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        config.ssl_mode(match encrypts {
            true => SslMode::Require,
            false => SslMode::Disable,
        });
        let tls = match encrypts {
            true => Some(VerifiedTls::new(root_certificates(roots)?).map_err(|e| {
                format!("cannot be used with TLS: {e}; check the certificates of sslrootcert")
            })?),
            false => None,
        };
        Ok(PostgresAddress {
            hosts: describe(&config),
            config,
            tls,
        })
    }

    /// Wraps a failure to connect.
    pub(super) fn away(&self, reason: impl fmt::Display) -> StoreError {
        StoreError::Away(format!("{self}: {reason}").into())
    }
}

impl fmt::Display for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgreSQL at {}", self.hosts)
    }
}

impl fmt::Debug for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresAddress").field(&self.hosts).finish()
    }
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
        }
    }
}

fn describe(config: &Config) -> String {
    let ports = config.get_ports();
    let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(5432);
    let hosts = config.get_hosts().iter().enumerate();
    let hosts = hosts.map(|(at, host)| match host {
        Host::Tcp(name) => format!("{name}:{}", port(at)),
        Host::Unix(path) => path.display().to_string(),
    });
    hosts.collect::<Vec<_>>().join(", ")
}

/// Reads the trusted certificates from a file, or those that the system trusts.
fn root_certificates(file: Option<&str>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    match file {
        Some(file) if file != "system" => {
            let wrong = |e: &dyn fmt::Display| {
                format!("names an sslrootcert that cannot be read: {file}: {e}")
            };
            let found = CertificateDer::pem_file_iter(Path::new(file)).map_err(|e| wrong(&e))?;
            for certificate in found {
                let certificate = certificate.map_err(|e| wrong(&e))?;
                roots.add(certificate).map_err(|e| wrong(&e))?;
            }
            if roots.is_empty() {
                return Err(wrong(&"it has no certificate in PEM format"));
            }
        }
        _ => {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
        }
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(url: &str) -> String {
        PostgresAddress::parse(url, false).unwrap_err()
    }

    #[test]
    fn another_machine_needs_tls_and_a_loopback_address_does_not() {
        let remote = PostgresAddress::parse("postgres://u:p@db.example.com/t", false).unwrap();
        assert!(remote.tls.is_some());
        for url in [
            "postgres://u@127.0.0.1:5433/t",
            "postgres://u@localhost/t",
            "postgres://u@%2Frun%2Fpostgresql/t",
        ] {
            let local = PostgresAddress::parse(url, false).unwrap();
            assert!(local.tls.is_none(), "{url}");
        }
        let plain = "postgres://u:p@db.example.com/t?sslmode=disable";
        assert!(error(plain).contains("danger_plaintext"));
        assert!(PostgresAddress::parse(plain, true).unwrap().tls.is_none());
    }

    #[test]
    fn no_text_has_the_password() {
        let address = PostgresAddress::parse(
            "postgres://u:open-sesame@db.example.com:5433,10.0.0.2/t",
            false,
        );
        let address = address.unwrap();
        assert_eq!(
            address.to_string(),
            "PostgreSQL at db.example.com:5433, 10.0.0.2:5432"
        );
        for text in [
            format!("{address:?}"),
            error("postgres://u:open-sesame@db.example.com:x/t"),
            error("postgres://u:open-sesame@db.example.com/t?sslmode=maybe"),
            error("postgres://u:open-sesame@db.example.com/t?unknown=1"),
            error("mysql://u:open-sesame@db.example.com/t"),
        ] {
            assert!(!text.contains("open-sesame"), "{text}");
        }
    }

    #[test]
    fn names_a_certificate_file_that_cannot_be_read() {
        let text = error("postgres://u:p@db.example.com/t?sslrootcert=%2Fnone%2Fca.pem");
        assert!(text.contains("/none/ca.pem"), "{text}");
    }
}
