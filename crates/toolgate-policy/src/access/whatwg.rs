//! URI spellings as parsed by the URL Standard of the WHATWG.
//!
//! Node, browsers and pydantic use that algorithm, so it decides which resource most servers read. It treats a
//! backslash as a slash, maps full-width letters of a host, and drops default ports. A rule that only compares texts
//! would miss all of these. Source: <https://url.spec.whatwg.org/#url-parsing>.

use crate::access::names::normalize_uri;
use url::Url;

/// Returns the readings of a URI by servers that parse it, each as a list of spellings. The readings are the
/// serialization, and the serialization without user information and the dot at the end of the host. The spellings of
/// each are: unchanged, without escapes, and with the host in Unicode. Empty if the text is not a URL.
pub(crate) fn readings(uri: &str) -> Vec<Vec<String>> {
    // Some servers decode escapes before they parse.
    let urls = [uri, &normalize_uri(uri)].map(parse);
    let mut all: Vec<Vec<String>> = Vec::new();
    for url in urls.iter().flatten() {
        for url in [Some(url), without_decoration(url).as_ref()]
            .into_iter()
            .flatten()
        {
            let texts = texts(url);
            if !all.contains(&texts) {
                all.push(texts);
            }
        }
    }
    all
}

/// Returns whether this build can tell how URL parsers read a URI: always.
pub(crate) fn is_supported(_: &str) -> bool {
    true
}

/// Parses a text as a URL.
fn parse(text: &str) -> Option<Url> {
    let mut url = Url::parse(text).ok()?;
    // The standard reads `/C|/` at the start of a file path as `/C:/`; the `url` crate keeps it.
    if url.scheme() == "file"
        && let [b'/', drive, b'|', rest @ ..] = url.path().as_bytes()
        && drive.is_ascii_alphabetic()
        && rest.first().is_none_or(|byte| *byte == b'/')
    {
        let path = url.path().replacen('|', ":", 1);
        url.set_path(&path);
    }
    Some(url)
}

/// Returns the spellings of one URL.
fn texts(url: &Url) -> Vec<String> {
    let mut texts = Vec::new();
    for form in [Some(url.to_string()), with_unicode_host(url)]
        .into_iter()
        .flatten()
    {
        let plain = normalize_uri(&form);
        for text in [form, plain] {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
    }
    texts
}

/// Returns the URL without user information and without the dot of a fully qualified host: all lead to the same host.
fn without_decoration(url: &Url) -> Option<Url> {
    let host = url.host_str()?;
    let short = host.trim_end_matches('.');
    let qualified = url.is_special() && !short.is_empty() && short.len() < host.len();
    if !qualified && url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let mut bare = url.clone();
    if qualified {
        bare.set_host(Some(short)).ok()?;
    }
    // A URL without a host has neither; the check above found one.
    let _ = bare.set_username("");
    let _ = bare.set_password(None);
    Some(bare)
}

fn with_unicode_host(url: &Url) -> Option<String> {
    let host = url.host_str().filter(|host| host.contains("xn--"))?;
    let (unicode, valid) = idna::domain_to_unicode(host);
    valid.ok()?;
    Some(url.as_str().replacen(host, &unicode, 1))
}

/// The result of comparing a URI with its serialization.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum UriForm {
    /// All parsers read the same resource.
    Canonical,
    /// URL parsers change it to this.
    Rewritten(String),
    /// URL parsers reject it, although the URL Standard defines its scheme.
    Unparsable,
}

/// Compares a URI with its serialization, except for differences that all parsers read alike.
///
/// These are escapes, the case of scheme and host, a default port, the slash of an empty path, the ASCII form of a
/// host, and `file:/a` for `file:///a`.
pub(crate) fn classify_uri(uri: &str) -> UriForm {
    let Some(url) = parse(uri) else {
        // The URL Standard defines the structure of these schemes only. Others, such as `urn:`, have rules of their
        // own.
        return match uri
            .split_once(':')
            .is_some_and(|(scheme, _)| is_special(scheme))
        {
            true => UriForm::Unparsable,
            false => UriForm::Canonical,
        };
    };
    let same = match url.is_special() {
        true => canonical(uri, &url)
            .is_some_and(|text| normalize_uri(&text) == normalize_uri(url.as_str())),
        false => normalize_uri(uri) == normalize_uri(url.as_str()),
    };
    match same {
        true => UriForm::Canonical,
        false => UriForm::Rewritten(url.into()),
    }
}

/// Returns whether the URL Standard has special rules for the scheme.
fn is_special(scheme: &str) -> bool {
    let schemes = ["http", "https", "ws", "wss", "ftp", "file"];
    schemes
        .iter()
        .any(|special| scheme.eq_ignore_ascii_case(special))
}

/// Returns the URI with harmless differences from `url` removed; `None` if its structure differs.
fn canonical(uri: &str, url: &Url) -> Option<String> {
    let (_, rest) = uri.split_once(':')?;
    let scheme = url.scheme();
    // RFC 8089 allows a local file URI without the empty authority.
    if scheme == "file" && rest.starts_with('/') && !rest.starts_with("//") {
        return Some(format!("file://{rest}"));
    }
    let rest = rest.strip_prefix("//")?;
    let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (format!("{user}@"), host),
        None => (String::new(), authority),
    };
    let default = match scheme {
        "http" | "ws" => ":80",
        "https" | "wss" => ":443",
        "ftp" => ":21",
        _ => "",
    };
    let host = host.strip_suffix(default).unwrap_or(host);
    let host = ascii_host(host, url).unwrap_or_else(|| host.to_owned());
    let slash = if rest.starts_with('/') { "" } else { "/" };
    Some(format!("{scheme}://{user}{host}{slash}{rest}"))
}

/// Returns the ASCII form of a Unicode host if only its case was mapped.
fn ascii_host(host: &str, url: &Url) -> Option<String> {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) => (name, format!(":{port}")),
        None => (host, String::new()),
    };
    let ascii = url.host_str().filter(|ascii| ascii.contains("xn--"))?;
    let (unicode, valid) = idna::domain_to_unicode(ascii);
    (valid.is_ok() && name.to_lowercase() == unicode).then(|| format!("{ascii}{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_what_every_reader_takes_for_the_same() {
        for uri in [
            "file:///srv/docs/a.txt",
            "file:/home/me/a.txt",
            "FILE:///srv/a",
            "file://localhost/srv/a",
            "file:///C:/a",
            "file:///srv/a/./.",
            "file:///srv/%C3%A9t\u{e9}/a%20b",
            "https://example.com",
            "https://example.com?x=1",
            "HTTPS://Example.com:443/A/%7eb?q='x'#f",
            "https://ann:pw@example.com./",
            "https://m\u{fc}ller.de/x",
            "https://M\u{dc}LLER.de/x",
            "https://xn--mller-kva.de/x",
            "http://[::1]:8080/",
            "resource://greeting",
            "resource://Greeting/{x}",
            "data://config",
            "demo:note/1",
            "urn:isbn:0451450523",
            "docker://image:latest/layer",
            "memo://<odd>/a|b",
            "ui://app/a..b/...",
        ] {
            assert_eq!(classify_uri(uri), UriForm::Canonical, "{uri}");
        }
    }

    #[test]
    fn finds_what_url_parsers_rewrite() {
        for (uri, read) in [
            ("file:///srv\\private\\k", "file:///srv/private/k"),
            ("file:srv/k", "file:///srv/k"),
            ("file:///C|/a", "file:///C:/a"),
            ("https:example.com/a", "https://example.com/a"),
            ("https:///example.com/a", "https://example.com/a"),
            ("https:\\\\example.com\\a", "https://example.com/a"),
            ("https://example.com:0443/a", "https://example.com/a"),
            (
                "https://\u{ff45}xample\u{3002}com/a",
                "https://example.com/a",
            ),
            ("http://127.1/", "http://127.0.0.1/"),
            ("http://0x7f000001/", "http://127.0.0.1/"),
            ("https://example.com/a/../b", "https://example.com/b"),
            ("demo://x/a/../b", "demo://x/b"),
        ] {
            assert_eq!(
                classify_uri(uri),
                UriForm::Rewritten(read.to_owned()),
                "{uri}"
            );
        }
        for uri in [
            "https://exa<mple.com/",
            "http://[fe80::1%25eth0]/",
            "file://a b/x",
        ] {
            assert_eq!(classify_uri(uri), UriForm::Unparsable, "{uri}");
        }
    }

    #[test]
    fn names_every_reading() {
        for (uri, read) in [
            (
                "https://ann:pw@Example.com.:8443/a",
                "https://example.com:8443/a",
            ),
            ("https://m\u{fc}ller.de/a", "https://xn--mller-kva.de/a"),
            ("https://xn--mller-kva.de/a", "https://m\u{fc}ller.de/a"),
            ("file:///srv%5cprivate/k", "file:///srv/private/k"),
            ("file:///srv/\u{e9}", "file:///srv/%C3%A9"),
            ("https://example.com?x", "https://example.com/?x"),
        ] {
            let all = readings(uri).concat();
            assert!(all.iter().any(|one| one == read), "{uri}: {all:?}");
        }
    }
}
