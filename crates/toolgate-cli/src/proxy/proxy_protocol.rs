//! The PROXY protocol of HAProxy, versions 1 and 2: the client's address, before the first byte of a connection.
//!
//! The header is required of each trusted proxy, and never expected of others, as its specification demands.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};
use tokio::io::{AsyncRead, AsyncReadExt};

/// First bytes of a header of version 2.
const V2_SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// First bytes of a header of version 1.
const V1_SIGNATURE: &[u8] = b"PROXY ";
/// Bytes that the shortest header of version 1 has: `PROXY UNKNOWN` with its line end.
const MIN_V1_BYTES: usize = 15;
/// Maximum length of a header of version 1 with its line end, as its specification states.
const MAX_V1_BYTES: usize = 107;
/// Length of a header of version 2 without addresses.
const V2_HEAD_BYTES: usize = 16;
/// Maximum length of the addresses and extensions of version 2 that are accepted.
const MAX_V2_BODY_BYTES: usize = 4096;

/// A header of the PROXY protocol that cannot be used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct InvalidProxyHeader(&'static str);

impl fmt::Display for InvalidProxyHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Reads the header from a connection, and nothing behind it. Returns the client's address; `None` if the proxy speaks
/// for itself, as in a health check.
///
/// # Errors
/// The header is missing, malformed or too long, or the connection ended.
pub(crate) async fn read_header(
    stream: &mut (impl AsyncRead + Unpin),
) -> Result<Option<IpAddr>, InvalidProxyHeader> {
    let ended = |_| InvalidProxyHeader("the connection ended before the end of its PROXY header");
    let mut header = [0; MAX_V1_BYTES];
    let first = &mut header[..MIN_V1_BYTES];
    stream.read_exact(first).await.map_err(ended)?;
    if first.starts_with(&V2_SIGNATURE) {
        let last = &mut header[MIN_V1_BYTES..V2_HEAD_BYTES];
        stream.read_exact(last).await.map_err(ended)?;
        let head = V2Head::parse(&header[..V2_HEAD_BYTES])?;
        let mut body = vec![0; head.body_bytes];
        stream.read_exact(&mut body).await.map_err(ended)?;
        return head.client(&body);
    }
    if !first.starts_with(V1_SIGNATURE) {
        return Err(InvalidProxyHeader("it has no PROXY header"));
    }
    let mut length = MIN_V1_BYTES;
    // Byte by byte, because the bytes behind the line end belong to the next protocol.
    while !header[..length].ends_with(b"\r\n") {
        let Some(next) = header.get_mut(length..=length) else {
            return Err(InvalidProxyHeader("its PROXY header is too long"));
        };
        stream.read_exact(next).await.map_err(ended)?;
        length += 1;
    }
    parse_v1(&header[..length])
}

/// Parses a line of version 1 with its line end.
fn parse_v1(line: &[u8]) -> Result<Option<IpAddr>, InvalidProxyHeader> {
    let malformed = InvalidProxyHeader("its PROXY header is malformed");
    let text = std::str::from_utf8(line).map_err(|_| malformed)?;
    let text = text.strip_suffix("\r\n").ok_or(malformed)?;
    let mut words = text.split(' ');
    if words.next() != Some("PROXY") {
        return Err(malformed);
    }
    let is_v4 = match words.next() {
        // Everything behind this word is ignored, as the specification demands.
        Some("UNKNOWN") => return Ok(None),
        Some("TCP4") => true,
        Some("TCP6") => false,
        _ => return Err(malformed),
    };
    let mut address = || -> Option<IpAddr> {
        let word = words.next()?;
        match is_v4 {
            true => word.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
            false => word.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        }
    };
    let (source, destination) = (address(), address());
    let is_port = |word: Option<&str>| {
        word.is_some_and(|word| {
            word.bytes().all(|b| b.is_ascii_digit()) && word.parse::<u16>().is_ok()
        })
    };
    let ports = is_port(words.next()) && is_port(words.next());
    match (source, destination, ports, words.next()) {
        (Some(source), Some(_), true, None) => Ok(Some(source)),
        _ => Err(malformed),
    }
}

/// First 16 bytes of a header of version 2.
struct V2Head {
    is_local: bool,
    family: u8,
    body_bytes: usize,
}

impl V2Head {
    fn parse(head: &[u8]) -> Result<V2Head, InvalidProxyHeader> {
        let malformed = InvalidProxyHeader("its PROXY header is malformed");
        let (signature, rest) = head.split_at_checked(V2_SIGNATURE.len()).ok_or(malformed)?;
        let &[version_and_command, family, high, low] = rest else {
            return Err(malformed);
        };
        let is_local = match version_and_command {
            0x20 => true,
            0x21 => false,
            _ => return Err(malformed),
        };
        let body_bytes = usize::from(u16::from_be_bytes([high, low]));
        match signature == V2_SIGNATURE {
            false => Err(malformed),
            true if body_bytes > MAX_V2_BODY_BYTES => {
                Err(InvalidProxyHeader("its PROXY header is too long"))
            }
            true => Ok(V2Head {
                is_local,
                family,
                body_bytes,
            }),
        }
    }

    /// Returns the source address in a body: source, destination, both ports, extensions.
    fn client(&self, body: &[u8]) -> Result<Option<IpAddr>, InvalidProxyHeader> {
        if self.is_local {
            return Ok(None);
        }
        let short = InvalidProxyHeader("its PROXY header is too short for its addresses");
        match self.family {
            0x11 | 0x12 => {
                let addresses: &[u8; 12] = body.first_chunk().ok_or(short)?;
                let [a, b, c, d, ..] = *addresses;
                Ok(Some(Ipv4Addr::new(a, b, c, d).into()))
            }
            0x21 | 0x22 => {
                let addresses: &[u8; 36] = body.first_chunk().ok_or(short)?;
                let source: [u8; 16] = *addresses.first_chunk().ok_or(short)?;
                Ok(Some(Ipv6Addr::from(source).into()))
            }
            // Unspecified, or a Unix socket: the proxy knows no address.
            0x00 | 0x31 | 0x32 => Ok(None),
            _ => Err(InvalidProxyHeader("its PROXY header is malformed")),
        }
    }
}

#[cfg(test)]
#[path = "proxy_protocol/tests.rs"]
mod tests;
