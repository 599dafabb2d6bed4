//! Dates and names of a certificate.

use ring::digest::{SHA256, digest};
use rustls::{
    client::verify_server_name,
    pki_types::{CertificateDer, ServerName},
    server::ParsedCertificate,
};
use std::{
    net::IpAddr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use toolgate_protocol::hex;
use x509_cert::{
    Certificate,
    der::Decode,
    ext::pkix::{SubjectAltName, name::GeneralName},
};

/// Remaining validity below which the operator is warned about a certificate.
const EXPIRY_WARNING: Duration = Duration::from_secs(14 * 24 * 3600);
const DAY_SECONDS: u64 = 24 * 3600;

/// Dates and names of a certificate.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct CertificateSummary {
    /// DNS names and IP addresses for which the certificate is valid.
    pub(crate) names: Vec<String>,
    pub(crate) not_before: SystemTime,
    pub(crate) not_after: SystemTime,
    /// SHA-256 of the certificate in DER, in hexadecimal.
    pub(crate) fingerprint: String,
    der: CertificateDer<'static>,
}

impl CertificateSummary {
    /// Reads the summary of a certificate.
    ///
    /// # Errors
    /// The certificate is malformed; the message says why.
    pub(super) fn of(der: &CertificateDer<'static>) -> Result<CertificateSummary, String> {
        let malformed = |error| format!("its first certificate is malformed: {error}");
        let parsed = Certificate::from_der(der).map_err(malformed)?;
        let parsed = parsed.tbs_certificate();
        let names = parsed
            .get_extension::<SubjectAltName>()
            .map_err(malformed)?;
        let names = names.map(|(_, names)| names.0).unwrap_or_default();
        Ok(CertificateSummary {
            names: names.iter().filter_map(name_text).collect(),
            not_before: UNIX_EPOCH + parsed.validity().not_before.to_unix_duration(),
            not_after: UNIX_EPOCH + parsed.validity().not_after.to_unix_duration(),
            fingerprint: hex::encode(digest(&SHA256, der).as_ref()),
            der: der.clone(),
        })
    }

    /// Returns why clients reject the certificate at that time; `None` if it is valid.
    pub(crate) fn date_error(&self, now: SystemTime) -> Option<String> {
        if let Ok(past) = now.duration_since(self.not_after) {
            return Some(format!("its certificate expired {} ago", days(past)));
        }
        let ahead = self.not_before.duration_since(now).ok()?;
        (!ahead.is_zero()).then(|| {
            format!(
                "its certificate becomes valid in {}; check the clock of this machine",
                days(ahead)
            )
        })
    }

    /// Returns a warning if the certificate is invalid, or expires soon.
    pub(crate) fn expiry_warning(&self, now: SystemTime) -> Option<String> {
        if let Some(error) = self.date_error(now) {
            return Some(format!("{error}; clients reject it"));
        }
        let left = self.not_after.duration_since(now).unwrap_or_default();
        (left < EXPIRY_WARNING).then(|| format!("its certificate expires in {}", days(left)))
    }

    /// Returns whether the certificate is valid for a host name or an IP address, without a port.
    pub(crate) fn is_valid_for(&self, host: &str) -> bool {
        let bare = host
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        let name = ServerName::try_from(bare.unwrap_or(host));
        let parsed = ParsedCertificate::try_from(&self.der);
        match (name, parsed) {
            (Ok(name), Ok(parsed)) => verify_server_name(&parsed, &name).is_ok(),
            _ => false,
        }
    }
}

fn name_text(name: &GeneralName) -> Option<String> {
    match name {
        GeneralName::DnsName(name) => Some(name.as_str().to_owned()),
        GeneralName::IpAddress(address) => {
            let bytes = address.as_bytes();
            let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
            let v6 = || <[u8; 16]>::try_from(bytes).map(IpAddr::from);
            Some(v4.or_else(|_| v6()).ok()?.to_string())
        }
        _ => None,
    }
}

/// Formats a duration in days, or in hours below two days.
fn days(time: Duration) -> String {
    match time.as_secs() {
        short if short < 2 * DAY_SECONDS => format!("{} h", short / 3600),
        long => format!("{} days", long / DAY_SECONDS),
    }
}
