//! Comparison of a certificate with the host names under which clients reach the gateway.

use super::CertificateSummary;
use crate::config::Config;

/// Returns a note for each host name under which clients reach the gateway, and for which the certificate is not valid.
///
/// These are the names of `allowed_hosts` or, without any, the listen address, unless it means all addresses.
pub(crate) fn host_mismatches(config: &Config, certificate: &CertificateSummary) -> Vec<String> {
    let listen = config.listen.ip();
    let hosts = match config.allowed_hosts.is_empty() {
        false => config.allowed_hosts.iter().map(|host| bare(host)).collect(),
        true if listen.is_unspecified() => Vec::new(),
        true => vec![listen.to_string()],
    };
    let mut hosts: Vec<_> = hosts
        .into_iter()
        .filter(|host| !certificate.is_valid_for(host))
        .collect();
    hosts.dedup();
    let names = match certificate.names.is_empty() {
        true => "no names".to_owned(),
        false => certificate.names.join(", "),
    };
    let note = |host: String| {
        format!(
            "the certificate is not valid for {host}, so clients that connect to this name reject it; it has {names}; write a certificate for {host}, or name another host in allowed_hosts"
        )
    };
    hosts.into_iter().map(note).collect()
}

/// Returns a host name without its port and without brackets.
fn bare(host: &str) -> String {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => name,
        _ => host,
    };
    name.trim_matches(['[', ']']).to_owned()
}
