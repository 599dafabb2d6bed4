//! Trusted proxies: the client behind a reverse proxy or a load balancer.
//!
//! - [`TrustedProxies`]: networks whose connections and headers name the client.
//! - `forwarded`: the headers `Forwarded` and `X-Forwarded-For`.
//! - `proxy_protocol`: the header of the PROXY protocol, before the first byte of a connection.

mod forwarded;
mod proxy_protocol;

pub(crate) use proxy_protocol::{InvalidProxyHeader, read_header as read_proxy_header};

use forwarded::{ForwardedHops, Hop};
use http::HeaderMap;
use ipnet::IpNet;
use std::net::IpAddr;

/// Source of the client's address, behind a trusted proxy.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum ProxyHeader {
    /// The headers `X-Forwarded-For` and `X-Forwarded-Proto`.
    #[default]
    XForwardedFor,
    /// The header `Forwarded` (RFC 7239).
    Forwarded,
    /// The header of the PROXY protocol, version 1 or 2, at the start of each connection.
    ProxyProtocol,
}

/// Trusted proxies: networks, and the header with which they name the client.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct TrustedProxies {
    pub(crate) networks: Vec<IpNet>,
    pub(crate) header: ProxyHeader,
}

/// Client of a connection or a request: its address, and whether it uses TLS.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct ClientConnection {
    pub(crate) address: IpAddr,
    /// True if the client's connection is encrypted, at the gateway or at a trusted proxy.
    pub(crate) is_https: bool,
}

impl TrustedProxies {
    /// Returns whether an address belongs to a trusted proxy.
    pub(crate) fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.networks
            .iter()
            .any(|network| network.contains(&address))
    }

    /// Returns whether a connection from an address begins with a header of the PROXY protocol.
    pub(crate) fn sends_proxy_header(&self, address: IpAddr) -> bool {
        self.header == ProxyHeader::ProxyProtocol && self.trusts(address)
    }

    /// Returns the client of a request on a connection. Headers count only if a trusted proxy sent them.
    pub(crate) fn client_of(
        &self,
        peer: ClientConnection,
        headers: &HeaderMap,
    ) -> ClientConnection {
        if self.networks.is_empty() || !self.trusts(peer.address) {
            return peer;
        }
        match self.header {
            ProxyHeader::ProxyProtocol => peer,
            ProxyHeader::XForwardedFor => {
                let client = self.first_untrusted(peer, ForwardedHops::x_forwarded_for(headers));
                let is_https = forwarded::x_forwarded_proto(headers).unwrap_or(peer.is_https);
                ClientConnection { is_https, ..client }
            }
            ProxyHeader::Forwarded => self.first_untrusted(peer, ForwardedHops::forwarded(headers)),
        }
    }

    /// Follows the hops from the nearest proxy to the first address that is not trusted. A hop that cannot be read ends
    /// the search: the client is then the last hop that is known.
    fn first_untrusted(
        &self,
        peer: ClientConnection,
        hops: impl Iterator<Item = Hop>,
    ) -> ClientConnection {
        let mut client = peer;
        for hop in hops {
            if let Some(is_https) = hop.is_https {
                client.is_https = is_https;
            }
            let Some(address) = hop.address else { break };
            client.address = address;
            if !self.trusts(address) {
                break;
            }
        }
        client
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    fn proxies(header: ProxyHeader) -> TrustedProxies {
        TrustedProxies {
            networks: vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()],
            header,
        }
    }

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        lines
            .iter()
            .map(|(name, value)| {
                let name = HeaderName::from_static(name);
                (name, HeaderValue::from_str(value).unwrap())
            })
            .collect()
    }

    fn client(header: ProxyHeader, peer: &str, lines: &[(&'static str, &str)]) -> (String, bool) {
        let peer = ClientConnection {
            address: peer.parse().unwrap(),
            is_https: false,
        };
        let client = proxies(header).client_of(peer, &headers(lines));
        (client.address.to_string(), client.is_https)
    }

    #[test]
    fn ignores_headers_of_others() {
        let lines = &[
            ("x-forwarded-for", "192.0.2.1"),
            ("x-forwarded-proto", "https"),
            ("forwarded", "for=192.0.2.1;proto=https"),
        ];
        for header in [ProxyHeader::XForwardedFor, ProxyHeader::Forwarded] {
            let expected = ("203.0.113.9".to_owned(), false);
            assert_eq!(client(header, "203.0.113.9", lines), expected);
        }
        let expected = ("10.0.0.1".to_owned(), false);
        assert_eq!(
            client(ProxyHeader::ProxyProtocol, "10.0.0.1", lines),
            expected
        );
    }

    #[test]
    fn the_client_is_the_last_hop_that_is_not_trusted() {
        let of = |value: &str| {
            let lines = &[("x-forwarded-for", value)];
            client(ProxyHeader::XForwardedFor, "10.0.0.1", lines).0
        };
        assert_eq!(of("192.0.2.1"), "192.0.2.1");
        assert_eq!(
            of("6.6.6.6, 192.0.2.1"),
            "192.0.2.1",
            "the first one is the client's own"
        );
        assert_eq!(
            of("192.0.2.1, 10.0.0.2"),
            "192.0.2.1",
            "through two proxies"
        );
        assert_eq!(of("10.0.0.3, 10.0.0.2"), "10.0.0.3", "all trusted");
        assert_eq!(of("192.0.2.1, unknown"), "10.0.0.1", "an unreadable hop");
        assert_eq!(of("[2001:db8::1]:443, fd00::2"), "2001:db8::1");
        assert_eq!(of("192.0.2.1:4711"), "192.0.2.1");
        assert_eq!(
            of("::ffff:10.0.0.9"),
            "::ffff:10.0.0.9",
            "trusted in the other spelling"
        );
        assert_eq!(of(""), "10.0.0.1");
    }

    #[test]
    fn the_last_line_of_a_header_is_the_nearest_proxy() {
        let lines = &[
            ("x-forwarded-for", "6.6.6.6"),
            ("x-forwarded-for", "192.0.2.1, 10.0.0.2"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-proto", "http"),
        ];
        let expected = ("192.0.2.1".to_owned(), false);
        assert_eq!(
            client(ProxyHeader::XForwardedFor, "10.0.0.1", lines),
            expected
        );
    }

    #[test]
    fn forwarded_names_the_address_and_the_scheme() {
        let of = |value: &str| client(ProxyHeader::Forwarded, "10.0.0.1", &[("forwarded", value)]);
        let is = |address: &str, https| (address.to_owned(), https);
        assert_eq!(of("for=192.0.2.1;proto=https"), is("192.0.2.1", true));
        assert_eq!(
            of("For=\"[2001:db8:cafe::17]:4711\"; Proto=http"),
            is("2001:db8:cafe::17", false)
        );
        assert_eq!(
            of("for=192.0.2.1;proto=https, for=10.0.0.2;proto=http"),
            is("192.0.2.1", true),
            "the scheme at the outermost proxy"
        );
        assert_eq!(of("for=_hidden, for=10.0.0.2"), is("10.0.0.2", false));
        assert_eq!(of("for=unknown"), is("10.0.0.1", false));
        assert_eq!(
            of("for=\", for=192.0.2.1"),
            is("192.0.2.1", false),
            "an open quote of the client does not hide the proxy's own element"
        );
        assert_eq!(of("for=192.0.2.1;ext=\"a,b\""), is("192.0.2.1", false));
        assert_eq!(
            of("for=192.0.2.1;for=6.6.6.6"),
            is("10.0.0.1", false),
            "twice"
        );
    }

    #[test]
    fn mapped_addresses_of_proxies_are_trusted() {
        let proxies = proxies(ProxyHeader::XForwardedFor);
        assert!(proxies.trusts("::ffff:10.1.2.3".parse().unwrap()));
        assert!(!proxies.trusts("11.0.0.1".parse().unwrap()));
    }
}
