//! Listen address, allowed hosts and allowed origins.

use super::{
    error::ConfigError,
    expand,
    section::{ConfigField, ConfigSection},
};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Default listen address.
pub(super) const DEFAULT_LISTEN_ADDRESS: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8665);

/// Reads `listen`.
pub(super) fn read_listen(top: &ConfigSection<'_>) -> Result<SocketAddr, ConfigError> {
    let Some(field) = top.get("listen") else {
        return Ok(DEFAULT_LISTEN_ADDRESS);
    };
    let written = field.text()?;
    let wrong = |_| {
        field.key_error(format!(
            "is {written:?}; write an IP address and a port, such as \"{DEFAULT_LISTEN_ADDRESS}\""
        ))
    };
    field.expanded()?.parse().map_err(wrong)
}

/// Rejects a non-loopback address if anonymous access is allowed.
pub(super) fn check_listen(listen: SocketAddr, closed: bool) -> Result<(), String> {
    if closed || listen.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    Err(format!(
        "{listen} can be reached from other machines, so anyone could call; set token, or required = true in [auth]"
    ))
}

/// Reads `allowed_hosts`: lower case names with or without a port.
pub(super) fn read_allowed_hosts(top: &ConfigSection<'_>) -> Result<Vec<String>, ConfigError> {
    let write = "is not a host name; write it as a browser shows it, such as \"tools.example.com\" or \"tools.example.com:8665\"";
    read_names(
        top.get("allowed_hosts"),
        "an array such as [\"tools.example.com\"]",
        write,
        is_host,
    )
}

/// Reads `allowed_origins`: `scheme://host` or `scheme://host:port`.
pub(super) fn read_allowed_origins(top: &ConfigSection<'_>) -> Result<Vec<String>, ConfigError> {
    let write = "is not an origin; write scheme and host without a path, such as \"https://app.example.com\"";
    read_names(
        top.get("allowed_origins"),
        "an array such as [\"https://app.example.com\"]",
        write,
        is_origin,
    )
}

fn read_names(
    field: Option<ConfigField<'_>>,
    list: &str,
    write: &str,
    fits: fn(&str) -> bool,
) -> Result<Vec<String>, ConfigError> {
    let Some(field) = field else {
        return Ok(Vec::new());
    };
    let name = |item: ConfigField<'_>| {
        let written = item.text()?.to_ascii_lowercase();
        let name = item.expanded()?.to_ascii_lowercase();
        match fits(&name) {
            true => Ok(name),
            false if expand::has_reference(&written) => {
                Err(item.error(format!("{:?} {write}", item.text()?)))
            }
            false => Err(item.error(format!("{written:?} {write}"))),
        }
    };
    field.list(list)?.into_iter().map(name).collect()
}

fn is_host(text: &str) -> bool {
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (text, None),
    };
    let digits = |port: &str| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    let port_fits =
        port.is_none_or(|port| digits(port) && port.parse::<u16>().is_ok_and(|port| port > 0));
    let v6 = name
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    port_fits
        && v6.map_or_else(
            || is_name(name),
            |v6| v6.parse::<std::net::Ipv6Addr>().is_ok(),
        )
}

fn is_name(name: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    name.len() <= 253 && name.split('.').all(label)
}

fn is_origin(text: &str) -> bool {
    let scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    text.split_once("://")
        .is_some_and(|(name, host)| !name.is_empty() && name.chars().all(scheme) && is_host(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_hosts() {
        for host in [
            "localhost",
            "127.0.0.1",
            "[::1]",
            "[::1]:80",
            "tools.example.com:8665",
            "a_b",
        ] {
            assert!(is_host(host), "{host}");
        }
        for host in [
            "",
            "*",
            "*.example.com",
            "http://a",
            "a/b",
            "a:",
            "a:0",
            "a:+1",
            "a:65536",
            "::1",
            "a..b",
            "a b",
            "[x]",
        ] {
            assert!(!is_host(host), "{host}");
        }
    }

    #[test]
    fn origins_have_no_path() {
        for origin in [
            "https://app.example.com",
            "http://localhost:3000",
            "vscode-webview://abc",
        ] {
            assert!(is_origin(origin), "{origin}");
        }
        for origin in [
            "null",
            "*",
            "https://",
            "https://a/",
            "https://*.a",
            "a.example.com",
            "://a",
        ] {
            assert!(!is_origin(origin), "{origin}");
        }
    }

    /// Holds: SEC-07
    #[test]
    fn other_machines_need_a_token() {
        let check = |address: &str, token| check_listen(address.parse().unwrap(), token).is_ok();
        for loopback in [
            "127.0.0.1:1",
            "127.9.9.9:1",
            "[::1]:1",
            "[::ffff:127.0.0.1]:1",
        ] {
            assert!(check(loopback, false), "{loopback}");
        }
        for open in ["0.0.0.0:1", "[::]:1", "192.0.2.1:1"] {
            assert!(!check(open, false), "{open}");
            assert!(check(open, true), "{open}");
        }
    }
}
