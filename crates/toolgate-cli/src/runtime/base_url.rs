//! Base URL of the gateway's own listener, for everything that the gateway prints.

use crate::config::Config;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// Default port of `https`.
const HTTPS_PORT: u16 = 443;

/// Base URL of the gateway's own listener: scheme, host and port.
///
/// With TLS, the host is the first one of `allowed_hosts`, because a certificate is rarely valid for an address.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct BaseUrl {
    origin: String,
}

impl BaseUrl {
    /// Returns the base URL of a listener at that address.
    pub(crate) fn new(config: &Config, address: SocketAddr) -> BaseUrl {
        let connectable = connectable(address);
        let origin = match (&config.tls, config.allowed_hosts.first()) {
            (None, _) => format!("http://{connectable}"),
            (Some(_), None) => format!("https://{connectable}"),
            (Some(_), Some(host)) if has_port(host) || address.port() == HTTPS_PORT => {
                format!("https://{host}")
            }
            (Some(_), Some(host)) => format!("https://{host}:{}", address.port()),
        };
        BaseUrl { origin }
    }

    /// Returns the URL of a path, which begins with a slash.
    pub(crate) fn with_path(&self, path: &str) -> String {
        format!("{}{path}", self.origin)
    }

    /// Returns the URL of the MCP endpoint.
    pub(crate) fn endpoint(&self) -> String {
        self.with_path("/mcp")
    }

    /// Returns the URL of the console.
    pub(crate) fn console(&self) -> String {
        self.with_path("/")
    }
}

/// Returns whether an allowed host names a port. An IPv6 address is in brackets.
fn has_port(host: &str) -> bool {
    host.rsplit_once(':')
        .is_some_and(|(_, port)| !port.ends_with(']'))
}

/// Returns an address to which a program on this machine can connect.
fn connectable(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(a) if a.ip().is_unspecified() => (Ipv4Addr::LOCALHOST, a.port()).into(),
        SocketAddr::V6(a) if a.ip().is_unspecified() => (Ipv6Addr::LOCALHOST, a.port()).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn base(text: &str, address: &str) -> String {
        let text = format!("{text}\n[server.a]\ncommand = [\"a\"]\n");
        let config = Config::parse(Path::new("/etc/t.toml"), &text).unwrap();
        BaseUrl::new(&config, address.parse().unwrap()).console()
    }

    #[test]
    fn names_the_address_without_tls() {
        let hosts = "allowed_hosts = [\"tools.example.com\"]";
        assert_eq!(base(hosts, "127.0.0.1:8665"), "http://127.0.0.1:8665/");
        assert_eq!(base(hosts, "0.0.0.0:80"), "http://127.0.0.1:80/");
        assert_eq!(base(hosts, "[::]:80"), "http://[::1]:80/");
    }

    #[test]
    fn names_the_first_allowed_host_with_tls() {
        let tls = "[tls]\ncert = \"c\"\nkey = \"k\"";
        assert_eq!(base(tls, "127.0.0.1:8665"), "https://127.0.0.1:8665/");
        let of = |host: &str| format!("allowed_hosts = [\"{host}\", \"b\"]\n{tls}");
        for (host, port, expected) in [
            ("a.test", 8665, "https://a.test:8665/"),
            ("a.test", 443, "https://a.test/"),
            ("a.test:8443", 8665, "https://a.test:8443/"),
            ("[::1]", 8665, "https://[::1]:8665/"),
        ] {
            assert_eq!(base(&of(host), &format!("0.0.0.0:{port}")), expected);
        }
    }
}
