//! The headers `Forwarded` (RFC 7239) and `X-Forwarded-For`: hops from the nearest proxy to the client.

use http::{HeaderMap, HeaderName, header};
use std::net::{IpAddr, SocketAddr};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Commas that an element of `Forwarded` may have in quoted texts. It bounds the search for the start of an element.
const MAX_QUOTED_COMMAS: usize = 8;

/// One hop: the address from which a proxy got the request, and the scheme there.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Hop {
    /// `None` if it is hidden or cannot be read.
    pub(super) address: Option<IpAddr>,
    /// `None` if the proxy does not state it.
    pub(super) is_https: Option<bool>,
}

/// Hops of a request, the nearest first.
pub(super) struct ForwardedHops<'a> {
    /// Values of the header that are not read yet, in the order of the request.
    values: Vec<&'a str>,
    next: fn(&str) -> (Hop, &str),
}

impl ForwardedHops<'_> {
    /// Returns the hops of `X-Forwarded-For`.
    pub(super) fn x_forwarded_for(headers: &HeaderMap) -> ForwardedHops<'_> {
        ForwardedHops {
            values: values(headers, &X_FORWARDED_FOR),
            next: last_address,
        }
    }

    /// Returns the hops of `Forwarded`.
    pub(super) fn forwarded(headers: &HeaderMap) -> ForwardedHops<'_> {
        ForwardedHops {
            values: values(headers, &header::FORWARDED),
            next: last_element,
        }
    }
}

impl Iterator for ForwardedHops<'_> {
    type Item = Hop;

    fn next(&mut self) -> Option<Hop> {
        let value = self.values.pop()?;
        let (hop, rest) = (self.next)(value);
        if !rest.is_empty() {
            self.values.push(rest);
        }
        Some(hop)
    }
}

/// Returns the values of a header. A value that is not ASCII counts as unreadable.
fn values<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Vec<&'a str> {
    let values = headers.get_all(name).iter();
    values.map(|value| value.to_str().unwrap_or("-")).collect()
}

/// Returns whether the nearest proxy received the request over TLS, as `X-Forwarded-Proto` states it.
pub(super) fn x_forwarded_proto(headers: &HeaderMap) -> Option<bool> {
    let value = headers.get_all(X_FORWARDED_PROTO).iter().next_back()?;
    let value = value.to_str().ok()?;
    let last = value.rsplit(',').next().unwrap_or_default();
    is_https(last.trim())
}

fn is_https(scheme: &str) -> Option<bool> {
    match scheme {
        _ if scheme.eq_ignore_ascii_case("https") => Some(true),
        _ if scheme.eq_ignore_ascii_case("http") => Some(false),
        _ => None,
    }
}

/// Returns the last address of a list, and the text before it.
fn last_address(list: &str) -> (Hop, &str) {
    let (rest, last) = list.rsplit_once(',').unwrap_or(("", list));
    let address = node_address(last.trim());
    let hop = Hop {
        address,
        is_https: None,
    };
    (hop, rest)
}

/// Returns the last element of `Forwarded`, and the text before it.
///
/// The element is the shortest end of the list, after a comma, that is well-formed. A client can put an open quote into
/// its own part of the header, which must not swallow the element that the proxy appended.
fn last_element(list: &str) -> (Hop, &str) {
    let mut end = list;
    for _ in 0..=MAX_QUOTED_COMMAS {
        let (rest, start) = match end.rfind(',') {
            Some(comma) => (&list[..comma], comma + 1),
            None => ("", 0),
        };
        if let Some(hop) = element(&list[start..]) {
            return (hop, rest);
        }
        if start == 0 {
            break;
        }
        end = rest;
    }
    (Hop::default(), "")
}

/// Parses an element of `Forwarded`: `for=192.0.2.60;proto=http;by=203.0.113.43`. `None` if it is malformed.
fn element(text: &str) -> Option<Hop> {
    let mut hop = Hop::default();
    let (mut has_for, mut has_proto) = (false, false);
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=')?;
        if name.is_empty() || !name.bytes().all(is_token_byte) {
            return None;
        }
        let (value, after) = parameter_value(after)?;
        let twice = match () {
            () if name.eq_ignore_ascii_case("for") => {
                hop.address = node_address(&value);
                std::mem::replace(&mut has_for, true)
            }
            () if name.eq_ignore_ascii_case("proto") => {
                hop.is_https = is_https(&value);
                std::mem::replace(&mut has_proto, true)
            }
            () => false,
        };
        if twice {
            return None;
        }
        // White space around the semicolon is common, although the RFC has none.
        rest = match after.trim_start() {
            "" => "",
            more => more.strip_prefix(';')?.trim_start(),
        };
    }
    Some(hop)
}

/// Reads a token or a quoted string; returns it with the text behind.
fn parameter_value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.bytes().position(|b| !is_token_byte(b));
        let (value, rest) = text.split_at(end.unwrap_or(text.len()));
        return (!value.is_empty()).then(|| (value.to_owned(), rest));
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return Some((value, &quoted[at + 1..])),
            '\\' => value.push(characters.next()?.1),
            c => value.push(c),
        }
    }
    None
}

/// Returns whether a byte may be in a token (RFC 9110), or is one of the colons and brackets that some proxies do not
/// quote.
fn is_token_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:[]".contains(&b)
}

/// Parses a node: an IP address with an optional port, an IPv6 address in brackets or without.
fn node_address(node: &str) -> Option<IpAddr> {
    if let Ok(address) = node.parse::<IpAddr>() {
        return Some(address);
    }
    if let Ok(address) = node.parse::<SocketAddr>() {
        return Some(address.ip());
    }
    let bare = node.strip_prefix('[')?.strip_suffix(']')?;
    bare.parse().ok().map(IpAddr::V6)
}
