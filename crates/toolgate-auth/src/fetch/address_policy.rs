//! Address policy: which network addresses a fetch may connect to.

use crate::Url;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Network addresses that a [`PeerFetcher`](super::PeerFetcher) may connect to, against SSRF. The default permits only
/// public addresses, by `https`.
///
/// ```
/// use toolgate_auth::{Url, fetch::AddressPolicy};
///
/// // A public server may name only public addresses; a server on this machine may name loopback addresses too.
/// let far = Url::parse("https://tools.example.com/mcp")?;
/// let near = Url::parse("http://127.0.0.1:8080/mcp")?;
/// assert_eq!(AddressPolicy::for_server(&far), AddressPolicy::public());
/// assert_eq!(AddressPolicy::for_server(&near), AddressPolicy::public().and_loopback());
/// # Ok::<(), toolgate_auth::InvalidUrl>(())
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct AddressPolicy {
    loopback: bool,
    private: bool,
    special: bool,
}

impl AddressPolicy {
    /// Creates an address policy that permits only public addresses, by `https`.
    pub fn public() -> AddressPolicy {
        AddressPolicy::default()
    }

    /// Creates the address policy for URLs that a server names: public addresses, and loopback if the server is there.
    pub fn for_server(server: &Url) -> AddressPolicy {
        AddressPolicy {
            loopback: server.is_loopback(),
            ..AddressPolicy::default()
        }
    }

    /// Permits every address, for URLs of the operator. The URL must still be `https` or on this machine.
    pub(super) fn permit_all(self) -> AddressPolicy {
        AddressPolicy {
            loopback: true,
            private: true,
            special: true,
        }
    }

    /// Returns the address policy that also permits loopback addresses, with `http`.
    #[must_use]
    pub fn and_loopback(self) -> AddressPolicy {
        AddressPolicy {
            loopback: true,
            ..self
        }
    }

    /// Returns the address policy that also permits private networks. These are 10.0.0.0/8, 172.16.0.0/12,
    /// 192.168.0.0/16, 100.64.0.0/10 and fc00::/7. A server can then make this client send requests to machines that
    /// the server itself cannot reach. Link-local addresses, which include cloud metadata services, stay forbidden.
    #[must_use]
    pub fn danger_and_private(self) -> AddressPolicy {
        AddressPolicy {
            private: true,
            ..self
        }
    }

    /// Checks the scheme of a URL.
    pub(crate) fn check_scheme(self, url: &Url) -> Result<(), &'static str> {
        if url.is_https() {
            return Ok(());
        }
        if !url.is_loopback() {
            return Err("the URL does not use https");
        }
        if !self.loopback {
            return Err(LOOPBACK_REJECTED);
        }
        Ok(())
    }

    /// Checks an IP address before a connection.
    pub(super) fn check_address(self, ip: IpAddr) -> Result<(), &'static str> {
        match kind(ip) {
            AddressKind::Public => Ok(()),
            AddressKind::Loopback if self.loopback => Ok(()),
            AddressKind::Private if self.private => Ok(()),
            AddressKind::Special if self.special => Ok(()),
            AddressKind::Loopback => Err(LOOPBACK_REJECTED),
            AddressKind::Private => {
                Err("the URL leads to a private network, which the configuration does not permit")
            }
            AddressKind::Special => {
                Err("the URL leads to an address that is not a public unicast address")
            }
        }
    }
}

const LOOPBACK_REJECTED: &str =
    "the URL leads to this machine, which only a server on this machine may name";

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum AddressKind {
    Loopback,
    Private,
    Public,
    /// Link-local, multicast, documentation and reserved addresses, which no peer has a reason to name.
    Special,
}

fn kind(ip: IpAddr) -> AddressKind {
    match ip {
        IpAddr::V4(v4) => kind_v4(v4),
        IpAddr::V6(v6) => kind_v6(v6),
    }
}

fn kind_v4(ip: Ipv4Addr) -> AddressKind {
    let [a, b, c, _] = ip.octets();
    match (a, b, c) {
        (127, ..) => AddressKind::Loopback,
        (10, ..) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) => AddressKind::Private,
        // This network, link-local, protocol assignments, documentation, 6to4 relays, benchmarks, multicast, reserved.
        (0, ..)
        | (169, 254, _)
        | (192, 0, 0 | 2)
        | (192, 88, 99)
        | (198, 18..=19, _)
        | (198, 51, 100)
        | (203, 0, 113)
        | (224.., ..) => AddressKind::Special,
        _ => AddressKind::Public,
    }
}

fn kind_v6(ip: Ipv6Addr) -> AddressKind {
    if let Some(v4) = embedded_ipv4(ip) {
        // An IPv6 address that embeds an IPv4 address is classified by it, but never as loopback or private.
        return match kind_v4(v4) {
            AddressKind::Public => AddressKind::Public,
            _ => AddressKind::Special,
        };
    }
    let [a, b, c, ..] = ip.segments();
    match (a, b, c) {
        _ if ip.is_loopback() => AddressKind::Loopback,
        (0xfc00..=0xfdff, ..) => AddressKind::Private,
        // Only 2000::/3 is allocated; these parts of it are for special purposes and documentation.
        (0x2001, 0..=0x01ff, _)
        | (0x2001, 0x0db8, _)
        | (0x3fff, 0..=0x0fff, _)
        | (0x2620, 0x4f, 0x8000) => AddressKind::Special,
        (0x2000..=0x3fff, ..) => AddressKind::Public,
        _ => AddressKind::Special,
    }
}

/// Returns the IPv4 address that an IPv6 address embeds: mapped, compatible, translated, NAT64 (64:ff9b::/96), 6to4.
fn embedded_ipv4(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let s = ip.segments();
    let of = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match s {
        [0, 0, 0, 0, 0, 0xffff, high, low] => Some(of(high, low)),
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0, high, low] => Some(of(high, low)),
        [0, 0, 0, 0, 0xffff, 0, high, low] => Some(of(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(of(high, low)),
        [0x2002, high, low, ..] => Some(of(high, low)),
        _ => None,
    }
}
