//! Certificates for gateways, from a private authority. For small teams and tests; a company uses its own authority.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use std::{
    fs::{self, OpenOptions},
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Lifetime of the certificates: five years.
const LIFETIME: Duration = Duration::from_secs(5 * 365 * 24 * 3600);
/// Time by which the clocks of gateways may differ.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(3600);
/// Name of the authority.
const AUTHORITY: &str = "Toolgate gateways";

/// Files that were written.
#[derive(Debug)]
pub(crate) struct PkiFiles {
    /// Certificate of the authority.
    pub(crate) ca: PathBuf,
    /// Certificate and key of each gateway.
    pub(crate) gateways: Vec<(PathBuf, PathBuf)>,
}

/// Creates certificates for gateways in a directory, for these host names or IP addresses. The authority is created if
/// the directory has none.
///
/// # Errors
/// A name is invalid, or a file exists or cannot be written; the message says which.
pub(crate) fn create(
    directory: &Path,
    hosts: &[String],
    now: SystemTime,
) -> Result<PkiFiles, String> {
    let cannot = |doing: &str, path: &Path, why: &dyn std::fmt::Display| {
        format!("cannot {doing} {}: {why}", path.display())
    };
    fs::create_dir_all(directory).map_err(|e| cannot("create", directory, &e))?;
    let (ca, ca_key) = (directory.join("ca.pem"), directory.join("ca.key"));
    let wrong = |e: rcgen::Error| format!("cannot create a certificate: {e}");
    let key = match fs::read_to_string(&ca_key) {
        Ok(text) => KeyPair::from_pem(&text).map_err(|e| cannot("read", &ca_key, &e))?,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => KeyPair::generate().map_err(wrong)?,
        Err(e) => return Err(cannot("read", &ca_key, &e)),
    };
    let mut authority = params(Vec::new(), now)?;
    authority
        .distinguished_name
        .push(DnType::CommonName, AUTHORITY);
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    if !ca.exists() {
        let certificate = authority.self_signed(&key).map_err(wrong)?;
        write(&ca_key, &key.serialize_pem(), 0o600).map_err(|e| cannot("write", &ca_key, &e))?;
        write(&ca, &certificate.pem(), 0o644).map_err(|e| cannot("write", &ca, &e))?;
    }
    let issuer = Issuer::new(authority, key);
    let mut gateways = Vec::new();
    for host in hosts {
        let own = KeyPair::generate().map_err(wrong)?;
        let mut gateway = params(vec![host.clone()], now)?;
        gateway
            .distinguished_name
            .push(DnType::CommonName, host.as_str());
        gateway.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let certificate = gateway.signed_by(&own, &issuer).map_err(wrong)?;
        let name: String = host
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') {
                    c
                } else {
                    '_'
                }
            })
            .collect();
        let (cert, key) = (
            directory.join(format!("{name}.pem")),
            directory.join(format!("{name}.key")),
        );
        write(&key, &own.serialize_pem(), 0o600).map_err(|e| cannot("write", &key, &e))?;
        write(&cert, &certificate.pem(), 0o644).map_err(|e| cannot("write", &cert, &e))?;
        gateways.push((cert, key));
    }
    Ok(PkiFiles { ca, gateways })
}

fn params(names: Vec<String>, now: SystemTime) -> Result<CertificateParams, String> {
    let mut params = CertificateParams::new(names.clone()).map_err(|e| {
        format!(
            "{} is not a host name or an IP address: {e}",
            names.join(", ")
        )
    })?;
    // A machine whose clock is a little behind accepts it too.
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + now.saturating_sub(CLOCK_TOLERANCE);
    params.not_after = epoch + now + LIFETIME;
    Ok(params)
}

/// Writes a new file; an existing one is never replaced.
fn write(path: &Path, text: &str, mode: u32) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode);
    options.open(path)?.write_all(text.as_bytes())
}
