//! Listen address, allowed hosts and allowed origins.

use super::reader::{ExpandedText, inline_schema};
use schemars::{JsonSchema, json_schema};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Default listen address.
pub(super) const DEFAULT_LISTEN_ADDRESS: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8665);

/// Listen address.
#[derive(Deserialize, Serialize)]
#[serde(try_from = "ExpandedText")]
pub(super) struct ListenAddress(pub(super) SocketAddr);

inline_schema!(
    ListenAddress,
    |_| json_schema!({"type": "string", "title": "address"})
);

impl Default for ListenAddress {
    fn default() -> ListenAddress {
        ListenAddress(DEFAULT_LISTEN_ADDRESS)
    }
}

impl TryFrom<ExpandedText> for ListenAddress {
    type Error = String;

    fn try_from(address: ExpandedText) -> Result<ListenAddress, String> {
        address.text.parse().map(ListenAddress).map_err(|_| {
            format!(
                "is {:?}; write an IP address and a port, such as \"{DEFAULT_LISTEN_ADDRESS}\"",
                address.written
            )
        })
    }
}

/// Host name in lower case, with or without a port.
#[derive(Deserialize, JsonSchema)]
#[serde(try_from = "ExpandedText")]
#[schemars(inline, title = "host name")]
pub(super) struct HostName(pub(super) String);

impl TryFrom<ExpandedText> for HostName {
    type Error = String;

    fn try_from(name: ExpandedText) -> Result<HostName, String> {
        let lower = name.text.to_ascii_lowercase();
        match is_host(&lower) {
            true => Ok(HostName(lower)),
            false => Err(format!(
                "has {:?}, which is not a host name; write it as a browser shows it, such as \"tools.example.com\" or \"tools.example.com:8665\"",
                name.written
            )),
        }
    }
}

/// Origin in lower case: `scheme://host` or `scheme://host:port`.
#[derive(Deserialize, JsonSchema)]
#[serde(try_from = "ExpandedText")]
#[schemars(inline, title = "origin")]
pub(super) struct OriginName(pub(super) String);

impl TryFrom<ExpandedText> for OriginName {
    type Error = String;

    fn try_from(name: ExpandedText) -> Result<OriginName, String> {
        let lower = name.text.to_ascii_lowercase();
        match is_origin(&lower) {
            true => Ok(OriginName(lower)),
            false => Err(format!(
                "has {:?}, which is not an origin; write the scheme and the host without a path, such as \"https://app.example.com\"",
                name.written
            )),
        }
    }
}

/// Rejects a non-loopback address if anonymous access is allowed.
pub(super) fn check_listen(listen: SocketAddr, closed: bool) -> Result<(), String> {
    if closed || listen.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    Err(format!(
        "other machines can reach {listen}, so anyone could call the tools; set token, or required = true in [auth]"
    ))
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
