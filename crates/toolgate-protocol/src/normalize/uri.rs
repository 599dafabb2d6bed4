//! Syntax of URIs (RFC 3986) and of URI templates (RFC 6570), as the official schemas require it.

/// Returns true for a URI with a scheme (`URI` of [RFC 3986], with or without a fragment): only permitted characters,
/// and complete escapes.
///
/// [RFC 3986]: https://www.rfc-editor.org/rfc/rfc3986
pub fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let (rest, fragment) = match rest.split_once('#') {
        Some((rest, fragment)) => (rest, fragment),
        None => (rest, ""),
    };
    let (path, query) = match rest.split_once('?') {
        Some((path, query)) => (path, query),
        None => (rest, ""),
    };
    let path_is_good = match path.strip_prefix("//") {
        Some(rest) => {
            let end = rest.find('/').unwrap_or(rest.len());
            let (authority, path) = rest.split_at(end);
            is_authority(authority) && is_made_of(path, b"/:@")
        }
        None => is_made_of(path, b"/:@"),
    };
    is_scheme(scheme) && path_is_good && is_made_of(query, b"/:@?") && is_made_of(fragment, b"/:@?")
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
}

fn is_authority(text: &str) -> bool {
    let (user, host) = text.rsplit_once('@').unwrap_or(("", text));
    let (host, port) = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, after)) if address.parse::<std::net::Ipv6Addr>().is_ok() => {
                ("", after.strip_prefix(':').unwrap_or(after))
            }
            _ => return false,
        },
        None => host.rsplit_once(':').unwrap_or((host, "")),
    };
    is_made_of(user, b":") && is_made_of(host, b"") && port.bytes().all(|b| b.is_ascii_digit())
}

/// Returns true if a text has only unreserved characters, sub-delimiters, complete escapes and the bytes of `more`.
fn is_made_of(text: &str, more: &[u8]) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let good = match byte {
            b'%' => {
                let hex = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_hexdigit());
                hex(bytes.next()) && hex(bytes.next())
            }
            byte => {
                byte.is_ascii_alphanumeric()
                    || b"-._~!$&'()*+,;=".contains(&byte)
                    || more.contains(&byte)
            }
        };
        if !good {
            return false;
        }
    }
    true
}

/// Returns true for a URI template ([RFC 6570]): valid literals, and expressions with names.
///
/// [RFC 6570]: https://www.rfc-editor.org/rfc/rfc6570
pub fn is_uri_template(text: &str) -> bool {
    let mut rest = text;
    while let Some((literal, after)) = rest.split_once('{') {
        let Some((expression, after)) = after.split_once('}') else {
            return false;
        };
        if !is_literal(literal) || !is_expression(expression) {
            return false;
        }
        rest = after;
    }
    is_literal(rest)
}

fn is_literal(text: &str) -> bool {
    let escaped = text.match_indices('%').all(|(at, _)| {
        let hex = text.as_bytes().get(at + 1..at + 3);
        hex.is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit))
    });
    escaped && !text.contains(|c: char| c <= ' ' || c == '\u{7f}' || "\"'<>\\^`{|}".contains(c))
}

fn is_expression(text: &str) -> bool {
    let names = text.strip_prefix(['+', '#', '.', '/', ';', '?', '&', '=', ',', '!', '@', '|']);
    names.unwrap_or(text).split(',').all(|name| {
        let name = match name.split_once(':') {
            Some((name, length)) => {
                let digits = length.bytes().all(|b| b.is_ascii_digit());
                if !digits || length.starts_with('0') || !(1..=4).contains(&length.len()) {
                    return false;
                }
                name
            }
            None => name.strip_suffix('*').unwrap_or(name),
        };
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'.';
        !name.is_empty() && name.split('.').all(|part| !part.is_empty()) && is_name(name, plain)
    })
}

fn is_name(name: &str, plain: impl Fn(u8) -> bool) -> bool {
    name.bytes().all(|b| plain(b) || b == b'%') && is_literal(name)
}

/// Percent-encodes the invalid characters of a URI; `None` if the result is still invalid.
pub(super) fn percent_encoded(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        let allowed = byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=/:@?#%[]".contains(&byte);
        match allowed {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    is_uri(&out).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_has_a_scheme_and_only_characters_of_uris() {
        for good in [
            "resource://a/b",
            "file:///srv/a%20b",
            "urn:isbn:1",
            "data:text/plain,hi",
            "http://[::1]:80/a?b=c/?#d?",
            "a+b-c.1:",
            "http://u:p@h:1/",
        ] {
            assert!(is_uri(good), "{good}");
        }
        for bad in [
            "",
            "notes",
            "/a",
            "1a:b",
            "a b:c",
            "a:b c",
            "a:é",
            "a:%2",
            "a:%zz",
            "a:b#c#d",
            "http://[::1",
            "http://h:x/",
            "a:\\b",
            "a:{b}",
            ":a",
        ] {
            assert!(!is_uri(bad), "{bad}");
        }
        assert_eq!(
            percent_encoded("a:b c/é").as_deref(),
            Some("a:b%20c/%C3%A9")
        );
        assert_eq!(percent_encoded("notes"), None);
    }

    #[test]
    fn a_template_has_names_in_braces() {
        for good in [
            "file:///{path}",
            "{+uri}",
            "a:{/b*}{?c,d:30}",
            "a",
            "a:{x.y}",
            "ö:{a}",
        ] {
            assert!(is_uri_template(good), "{good}");
        }
        for bad in [
            "a:{", "a:}", "a:{}", "a:{b c}", "a:{b:0}", "a b", "a:{a,}", "a:{{b}}", "a:%2",
        ] {
            assert!(!is_uri_template(bad), "{bad}");
        }
    }
}
