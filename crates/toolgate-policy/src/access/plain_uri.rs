//! Plain URIs, for builds without the feature `full-uri`: every URL parser reads them unchanged, so they have no other
//! spelling. All other URIs are rejected, because a rule might not recognize them.

/// Default ports, which URL parsers remove.
const DEFAULT_PORTS: [(&str, &str); 5] = [
    ("http", "80"),
    ("ws", "80"),
    ("https", "443"),
    ("wss", "443"),
    ("ftp", "21"),
];

/// Returns the readings of a URI by URL parsers other than its own text: none, as it is plain or rejected.
#[cfg(not(feature = "full-uri"))]
pub(crate) fn readings(_: &str) -> Vec<Vec<String>> {
    Vec::new()
}

/// The result of comparing a URI with its serialization.
#[cfg(not(feature = "full-uri"))]
pub(crate) enum UriForm {
    /// All parsers read the same resource.
    Canonical,
    /// URL parsers change it to this; never returned by this build.
    #[allow(dead_code, reason = "only a URL parser finds it")]
    Rewritten(String),
    /// URL parsers may change or reject it.
    Unparsable,
}

/// Compares a URI with its serialization.
#[cfg(not(feature = "full-uri"))]
pub(crate) fn classify_uri(uri: &str) -> UriForm {
    match is_supported(uri) {
        true => UriForm::Canonical,
        false => UriForm::Unparsable,
    }
}

/// Returns whether this build can tell how URL parsers read a URI: scheme and host in lower case, no user information,
/// no default port, no escapes except of spaces and non-ASCII letters, and no `.` segments.
pub(crate) fn is_supported(uri: &str) -> bool {
    let Some((scheme, rest)) = uri.split_once(':') else {
        return false;
    };
    let mut letters = scheme.bytes();
    if !letters.next().is_some_and(|b| b.is_ascii_lowercase())
        || !letters.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+-.".contains(&b))
    {
        return false;
    }
    let (path, query) = match rest.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (rest, None),
    };
    if query.is_some_and(|query| !query.bytes().all(is_query_byte)) {
        return false;
    }
    let special = scheme == "file" || DEFAULT_PORTS.iter().any(|(name, _)| *name == scheme);
    match path.strip_prefix("//") {
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            is_plain_authority(scheme, special, authority)
                && is_plain_path(path)
                && (!special || path.starts_with('/'))
        }
        // Parsers differ in the escapes of a path without segments.
        None => !special && !path.contains('%') && is_plain_path(path),
    }
}

fn is_plain_authority(scheme: &str, special: bool, authority: &str) -> bool {
    if scheme == "file" {
        return authority.is_empty();
    }
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    if port.is_some_and(|port| !is_plain_port(scheme, port)) {
        return false;
    }
    if !special {
        let letter = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
        // A host in upper case is another one for URL parsers, and the same for the rules.
        return host.bytes().all(|b| letter(b) && !b.is_ascii_uppercase())
            && !host.contains("xn--")
            && (port.is_none() || !host.is_empty());
    }
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.contains("--")
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    // A host that ends in a number is an IPv4 address, which has many spellings.
    let numeric = |last: &str| last.starts_with(|c: char| c.is_ascii_digit());
    host.len() <= 253 && host.split('.').all(label) && !host.rsplit('.').next().is_some_and(numeric)
}

fn is_plain_port(scheme: &str, port: &str) -> bool {
    let number = port.parse::<u16>().is_ok_and(|number| number > 0);
    number
        && port.bytes().all(|b| b.is_ascii_digit())
        && !port.starts_with('0')
        && !DEFAULT_PORTS.contains(&(scheme, port))
}

/// Returns whether a path has only segments that no parser changes.
fn is_plain_path(path: &str) -> bool {
    let dots = |segment: &str| matches!(segment, "." | "..");
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(&b);
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('%') {
        if !before.bytes().all(plain) {
            return false;
        }
        let Some((escape, after)) = after.split_at_checked(2) else {
            return false;
        };
        // URL parsers write escapes in upper case.
        if !escape
            .bytes()
            .all(|b| matches!(b, b'0'..=b'9' | b'A'..=b'F'))
        {
            return false;
        }
        let byte = u8::from_str_radix(escape, 16);
        // Escaped letters of ASCII are another spelling, and escaped delimiters another path.
        if !byte.is_ok_and(|byte| byte == b' ' || byte >= 0x80) {
            return false;
        }
        rest = after;
    }
    // Parsers trim spaces at the end.
    rest.bytes().all(plain)
        && !path.ends_with("%20")
        && !path.split('/').any(dots)
        && !path.contains("//")
}

fn is_query_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&()*+,;=:@/".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::is_supported;

    #[test]
    fn plain_uris_are_supported_and_other_spellings_are_not() {
        for plain in [
            "file:///srv/docs/a.txt",
            "file:///srv/a%20b",
            "https://example.com/a/b?x=1&y=2",
            "http://a.test:8080/",
            "memo://notes/1",
            "ui://app/a..b",
            "resource://greeting",
            "urn:isbn:0451450523",
        ] {
            assert!(is_supported(plain), "{plain}");
        }
        for odd in [
            "HTTPS://example.com/",
            "https://Example.com/",
            "https://example.com",
            "https://example.com:443/",
            "https://ann@example.com/",
            "https://127.1/",
            "https://0x7f.1/",
            "https://xn--mller-kva.de/",
            "https://example.com./",
            "https:example.com/a",
            "file:/a",
            "file://localhost/a",
            "file:///a/./b",
            "file:///a//b",
            "file:///a\\b",
            "file:///a%5cb",
            "file:///%41",
            "file:///C|/a",
            "file:///é",
            "memo://Notes/1",
            "memo://x/a#b",
            "no-scheme",
        ] {
            assert!(!is_supported(odd), "{odd}");
        }
    }

    #[cfg(feature = "full-uri")]
    mod differential {
        use super::*;
        use crate::access::{
            names::normalize_uri,
            whatwg::{UriForm, classify_uri, readings},
        };
        use proptest::prelude::*;

        proptest! {
            #![proptest_config(ProptestConfig::with_cases(4000))]
            /// The reduced build accepts only URIs whose every reading the rules already know by the text itself.
            #[test]
            fn a_supported_uri_has_no_other_reading(
                uri in "(https?|wss|ftp|file|memo|urn|HTTP)(:|:/|://|:///)[a-z0-9A-Z.:@/?%#&'|{}~+=_\\\\é-]{0,14}(%20|%C3%A9|%c3%a9|%FF|%2e|/\\./|//|--|xn--|0x1)?[a-z./0-9]{0,4}",
            ) {
                if is_supported(&uri) {
                    prop_assert_eq!(classify_uri(&uri), UriForm::Canonical, "{}", &uri);
                    let own = [uri.clone(), normalize_uri(&uri)];
                    for read in readings(&uri).concat() {
                        prop_assert!(own.contains(&read), "{} is read as {}", &uri, read);
                    }
                }
            }
        }
    }
}
