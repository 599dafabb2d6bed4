//! `[proxy]`: reverse proxies and load balancers that name the client.

use super::reader::{ConfigWord, ExpandedText, Word};
use crate::proxy::{ProxyHeader, TrustedProxies};
use ipnet::IpNet;
use schemars::JsonSchema;
use serde::Deserialize;
use std::net::IpAddr;

/// Reverse proxies and load balancers in front of the listener.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ProxySection {
    /// Addresses and networks of the proxies. The gateway believes what these, and only these, say about their clients.
    #[schemars(example = ["10.0.0.0/8", "127.0.0.1"])]
    trusted: Vec<ProxyNetwork>,
    /// How the proxies name the client: with the headers `X-Forwarded-For` and `X-Forwarded-Proto`
    /// (`x-forwarded-for`), with the header `Forwarded` of RFC 7239 (`forwarded`), or with the PROXY protocol, version
    /// 1 or 2 (`proxy-protocol`). With the PROXY protocol, each connection of a proxy has to begin with its header.
    #[serde(default, with = "Word::<ProxyHeader>")]
    header: ProxyHeader,
}

impl ConfigWord for ProxyHeader {
    const WORDS: &'static [(&'static str, ProxyHeader)] = &[
        ("x-forwarded-for", ProxyHeader::XForwardedFor),
        ("forwarded", ProxyHeader::Forwarded),
        ("proxy-protocol", ProxyHeader::ProxyProtocol),
    ];
}

impl From<ProxySection> for TrustedProxies {
    fn from(section: ProxySection) -> TrustedProxies {
        TrustedProxies {
            networks: section.trusted.into_iter().map(|one| one.0).collect(),
            header: section.header,
        }
    }
}

/// IP address or network in CIDR notation.
#[derive(Deserialize, JsonSchema)]
#[serde(try_from = "ExpandedText")]
#[schemars(inline, title = "network")]
struct ProxyNetwork(#[schemars(with = "String")] IpNet);

impl TryFrom<ExpandedText> for ProxyNetwork {
    type Error = String;

    fn try_from(network: ExpandedText) -> Result<ProxyNetwork, String> {
        let address = network.text.parse::<IpAddr>().map(IpNet::from);
        let parsed = address.or_else(|_| network.text.parse::<IpNet>());
        let parsed = parsed.map_err(|_| {
            format!(
                "has {:?}, which is not an IP address or a network; write an address such as \"10.0.0.5\", or a network such as \"10.0.0.0/8\"",
                network.written
            )
        })?;
        match parsed.prefix_len() {
            0 => Err(format!(
                "has {:?}, which contains every address, so any client could name another address; write the networks of your proxies",
                network.written
            )),
            _ => Ok(ProxyNetwork(parsed.trunc())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use std::path::Path;

    fn read(text: &str) -> Result<TrustedProxies, String> {
        let text = format!("{text}\n[server.a]\ncommand = [\"a\"]\n");
        let config = Config::parse(Path::new("/etc/t.toml"), &text);
        config
            .map(|config| config.proxies)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn reads_addresses_and_networks() {
        assert_eq!(read("").unwrap(), TrustedProxies::default());
        let proxies = read("[proxy]\ntrusted = [\"10.1.2.3/8\", \"::1\"]\n").unwrap();
        assert_eq!(proxies.header, ProxyHeader::XForwardedFor);
        let networks: Vec<String> = proxies.networks.iter().map(IpNet::to_string).collect();
        assert_eq!(networks, ["10.0.0.0/8", "::1/128"]);
        for (word, header) in ProxyHeader::WORDS {
            let proxies = read(&format!("[proxy]\ntrusted = []\nheader = \"{word}\"\n"));
            assert_eq!(proxies.unwrap().header, *header);
        }
    }

    #[test]
    fn rejects_what_is_no_network() {
        for (line, reason) in [
            (
                "trusted = [\"10.0.0.0/33\"]",
                "is not an IP address or a network",
            ),
            (
                "trusted = [\"proxy.example.com\"]",
                "is not an IP address or a network",
            ),
            ("trusted = [\"0.0.0.0/0\"]", "contains every address"),
            ("trusted = [\"::/0\"]", "contains every address"),
            ("trusted = []\nheader = \"x-real-ip\"", "x-forwarded-for"),
            ("header = \"forwarded\"", "trusted"),
        ] {
            let error = read(&format!("[proxy]\n{line}\n")).unwrap_err();
            assert!(error.contains(reason), "{line}: {error}");
        }
    }
}
