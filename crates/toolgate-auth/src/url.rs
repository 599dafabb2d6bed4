//! Absolute HTTP(S) URLs with a strict parser.

use http::Uri;
use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// Maximum length of a URL in bytes.
const MAX_URL_BYTES: usize = 4096;

/// Absolute `https` or `http` URL with a host, without user name and fragment. It keeps its text unchanged because
/// issuers and resources are compared byte for byte.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Url {
    text: String,
    uri: Uri,
}

/// Error of a text that is not a valid [`Url`]. Its text does not quote the URL, which may contain a secret.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct InvalidUrl(&'static str);

impl fmt::Display for InvalidUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for InvalidUrl {}

impl Url {
    /// Parses an absolute `https` or `http` URL.
    ///
    /// # Errors
    /// [`InvalidUrl`]: too long, another scheme, no host, a user name, a fragment, or forbidden characters.
    pub fn parse(text: &str) -> Result<Url, InvalidUrl> {
        if text.len() > MAX_URL_BYTES {
            return Err(InvalidUrl("it is longer than 4096 bytes"));
        }
        let plain = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte);
        if !text.bytes().all(plain) {
            return Err(InvalidUrl(
                "it contains a character that is not allowed in a URL; percent-encode it",
            ));
        }
        if text.contains('#') {
            return Err(InvalidUrl("it has a fragment (#…); remove the fragment"));
        }
        let uri: Uri = text
            .parse()
            .map_err(|_| InvalidUrl("it is not a valid URL"))?;
        if !matches!(uri.scheme_str(), Some("https" | "http")) {
            return Err(InvalidUrl("it does not begin with https:// or http://"));
        }
        let Some(authority) = uri.authority().filter(|a| !a.host().is_empty()) else {
            return Err(InvalidUrl("it has no host"));
        };
        // The http crate accepts any text in brackets, and none.
        let in_brackets = authority.host().strip_prefix('[');
        let address = in_brackets.map(|rest| rest.trim_end_matches(']').parse::<Ipv6Addr>());
        if address.is_some_and(|address| address.is_err()) {
            return Err(InvalidUrl("its host in brackets is not an IPv6 address"));
        }
        if authority.as_str().contains('@') {
            return Err(InvalidUrl(
                "it has a user name before the host (…@); remove the user name",
            ));
        }
        if authority.port().is_none() && authority.as_str().len() != authority.host().len() {
            return Err(InvalidUrl("its port is invalid"));
        }
        Ok(Url {
            text: text.to_owned(),
            uri,
        })
    }

    /// Returns the text of the URL exactly as it was parsed.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether the scheme of the URL is `https`.
    pub fn is_https(&self) -> bool {
        self.uri.scheme_str() == Some("https")
    }

    /// Returns the host of the URL, without brackets if it is an IPv6 address.
    pub fn host(&self) -> &str {
        let host = self.uri.host().unwrap_or_default();
        host.trim_start_matches('[').trim_end_matches(']')
    }

    /// Returns the host (an IPv6 address in brackets) and the port if the URL contains one.
    pub fn authority(&self) -> &str {
        self.uri.authority().map_or("", |a| a.as_str())
    }

    /// Returns the port of the URL; the default port of the scheme (443 or 80) if the URL contains none.
    pub fn port(&self) -> u16 {
        let usual = if self.is_https() { 443 } else { 80 };
        self.uri.port_u16().unwrap_or(usual)
    }

    /// Returns the path of the URL; `/` if the URL contains none.
    pub fn path(&self) -> &str {
        self.uri.path()
    }

    /// Returns the path and query of the URL, as in an HTTP request target.
    pub fn request_target(&self) -> &str {
        self.uri.path_and_query().map_or("/", |p| p.as_str())
    }

    /// Returns the query of the URL without its `?`.
    pub fn query(&self) -> Option<&str> {
        self.uri.query()
    }

    /// Returns the host of the URL as an IP address, if it is one.
    pub fn ip(&self) -> Option<IpAddr> {
        let host = self.host();
        let v4 = host.parse::<Ipv4Addr>().map(IpAddr::V4);
        v4.or_else(|_| host.parse::<Ipv6Addr>().map(IpAddr::V6))
            .ok()
    }

    /// Returns whether the host of the URL is `localhost` or a loopback IP address.
    pub fn is_loopback(&self) -> bool {
        self.host().eq_ignore_ascii_case("localhost")
            || self.ip().is_some_and(|ip| ip.is_loopback())
    }

    /// Returns whether both URLs have the same origin: scheme, host and port.
    pub fn same_origin(&self, other: &Url) -> bool {
        self.is_https() == other.is_https()
            && self.host().eq_ignore_ascii_case(other.host())
            && self.port() == other.port()
    }

    /// Returns the origin of the URL: scheme, host, and the port if the URL contains one.
    pub fn origin(&self) -> String {
        let scheme = if self.is_https() { "https" } else { "http" };
        format!("{scheme}://{}", self.authority())
    }

    /// Returns the URL of another path on the same origin. The path must begin with `/`.
    ///
    /// # Errors
    /// [`InvalidUrl`]: the resulting URL is invalid.
    pub fn with_path(&self, path: &str) -> Result<Url, InvalidUrl> {
        Url::parse(&format!("{}{path}", self.origin()))
    }

    /// Returns the URL with additional form-encoded query parameters.
    ///
    /// # Errors
    /// [`InvalidUrl`]: the result is too long.
    pub fn with_query<'a>(
        &self,
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Url, InvalidUrl> {
        let mut text = self.text.clone();
        text.push(if self.query().is_some() { '&' } else { '?' });
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(pairs);
        text.push_str(&query.finish());
        Url::parse(&text)
    }

    /// Resolves a URI reference, such as a `Location` header, against this URL. It drops the fragment.
    ///
    /// # Errors
    /// [`InvalidUrl`]: the reference does not resolve to a valid URL.
    pub fn resolve(&self, reference: &str) -> Result<Url, InvalidUrl> {
        let reference = reference.split('#').next().unwrap_or_default();
        let scheme = if self.is_https() { "https" } else { "http" };
        let end = reference.find(['/', '?']).unwrap_or(reference.len());
        if reference[..end].contains(':') {
            return Url::parse(reference);
        }
        if reference.starts_with("//") {
            return Url::parse(&format!("{scheme}:{reference}"));
        }
        if reference.starts_with('/') {
            return self.with_path(reference);
        }
        if reference.starts_with('?') {
            return self.with_path(&format!("{}{reference}", self.path()));
        }
        let folder = self.path().rfind('/').map_or("/", |at| &self.path()[..=at]);
        self.with_path(&format!("{folder}{reference}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_invalid_urls() {
        for wrong in [
            "",
            "a.test",
            "ftp://a.test/",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "http://",
            "https:///x",
            "https://u@a.test/",
            "https://u:p@a.test/",
            "https://a.test/#x",
            "https://[]/",
            "https://[v1.x]/",
            "https://a.test/ x",
            "https://a.test/\r\nx",
            "https://a.test\\@b.test/",
            "https://a.test:99999/",
            "https://a.test:/",
            "https://ä.test/",
            "https://a.test/`x`",
            "-https://a.test/",
        ] {
            assert!(Url::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn preserves_the_text_of_a_url() {
        let url = Url::parse("HTTPS://A.test:443/x?y=1").unwrap();
        assert_eq!(url.as_str(), "HTTPS://A.test:443/x?y=1");
        assert!(url.is_https() && url.port() == 443 && url.path() == "/x");
        assert!(url.same_origin(&Url::parse("https://a.test").unwrap()));
        assert!(!url.same_origin(&Url::parse("http://a.test:443").unwrap()));
        let url = Url::parse("http://[::1]:8080/mcp").unwrap();
        assert!(url.is_loopback() && url.host() == "::1" && url.authority() == "[::1]:8080");
        assert_eq!(url.origin(), "http://[::1]:8080");
    }

    #[test]
    fn encodes_added_query_parameters() {
        let url = Url::parse("https://a.test/authorize?k=1").unwrap();
        let url = url
            .with_query([("scope", "a b&c"), ("resource", "https://b.test/")])
            .unwrap();
        let expected =
            "https://a.test/authorize?k=1&scope=a+b%26c&resource=https%3A%2F%2Fb.test%2F";
        assert_eq!(url.as_str(), expected);
    }

    #[test]
    fn resolves_references() {
        let base = Url::parse("https://a.test/x/y?k=1").unwrap();
        for (reference, expected) in [
            ("/m?s=1", "https://a.test/m?s=1"),
            ("m", "https://a.test/x/m"),
            ("?s=1", "https://a.test/x/y?s=1"),
            ("//b.test/m", "https://b.test/m"),
            ("http://b.test/m#f", "http://b.test/m"),
        ] {
            assert_eq!(
                base.resolve(reference).unwrap().as_str(),
                expected,
                "{reference}"
            );
        }
        assert!(base.resolve("file:///etc/passwd").is_err());
    }
}
