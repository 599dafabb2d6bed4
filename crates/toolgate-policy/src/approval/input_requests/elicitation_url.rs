//! Validation of elicitation URLs.

use std::net::IpAddr;

/// A valid elicitation URL.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct ElicitationUrl {
    /// Host, in lower case.
    pub(super) host: String,
    /// True if the host may be confusable: it has non-ASCII letters, possibly as Punycode.
    pub(super) is_confusable: bool,
}

impl ElicitationUrl {
    /// Parses a URL. Browsers are lenient, so a URL that two of them could read differently is rejected.
    ///
    /// With `loopback` it may use `http` if the host is a literal loopback address: a name such as `localhost` can
    /// resolve to another one.
    ///
    /// # Errors
    /// The reason why the URL is rejected.
    pub(super) fn read(url: &str, loopback: bool) -> Result<ElicitationUrl, &'static str> {
        let odd = |c: char| c.is_whitespace() || c.is_control() || c == '\\';
        if url.chars().any(odd) {
            return Err("it contains white space, control characters or backslashes");
        }
        let (scheme, rest) = url.split_once("://").ok_or("it is not an https URL")?;
        let plain = scheme.eq_ignore_ascii_case("http");
        if !plain && !scheme.eq_ignore_ascii_case("https") {
            return Err("it is not an https URL");
        }
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err("it has a user name before the host");
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => rest.split_once(']').ok_or("it has no host")?,
            None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
        };
        let digits = port.strip_prefix(':').unwrap_or("");
        if port.len() != digits.len() + usize::from(!port.is_empty())
            || digits.parse::<u16>().is_err() && !port.is_empty()
        {
            return Err("its port is invalid");
        }
        let fits = |c: char| {
            c.is_alphanumeric()
                || matches!(c, '-' | '.' | '_')
                || (c == ':' && authority.starts_with('['))
        };
        if host.trim_matches('.').is_empty() {
            return Err("it has no host");
        }
        if !host.chars().all(fits) {
            return Err("its host has characters that cannot be displayed safely");
        }
        let is_loopback = || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        if plain && !(loopback && is_loopback()) {
            return Err("it is not an https URL");
        }
        let host = host.to_lowercase();
        let alike = !host.is_ascii() || host.split('.').any(|label| label.starts_with("xn--"));
        Ok(ElicitationUrl {
            host,
            is_confusable: alike,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t51_only_https_pages_with_a_plain_host() {
        for (url, host, alike) in [
            ("https://bank.example/login?x=1#y", "bank.example", false),
            ("HTTPS://Bank.Example:8443", "bank.example", false),
            ("https://[::1]:8443/x", "::1", false),
            ("https://127.0.0.1/x", "127.0.0.1", false),
            ("https://xn--bnk-5cd.example/", "xn--bnk-5cd.example", true),
            (
                "https://login.XN--bnk-5cd.example",
                "login.xn--bnk-5cd.example",
                true,
            ),
            ("https://bаnk.example/", "bаnk.example", true),
        ] {
            let page = ElicitationUrl::read(url, false).unwrap();
            assert_eq!(
                (page.host.as_str(), page.is_confusable),
                (host, alike),
                "{url}"
            );
        }
        for url in [
            "http://bank.example/",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "data:text/html,x",
            "bank.example",
            "",
            "https://",
            "https:///x",
            "https://?x",
            "https://bank.example@evil.example/",
            "https://bank.example%40evil.example/",
            "https://bank.example\\@evil.example/",
            "https://bank.example\\.evil.example",
            "https://bank.example:x/",
            "https://a:99999/",
            "https:bank.example",
            "ftp://bank.example",
            "https://a b.example/",
            "https://a\tb.example/",
            "https://./",
            "https://[::1",
            "https://bank.example:/",
        ] {
            let page = ElicitationUrl::read(url, true);
            assert!(page.is_err(), "{url:?}: {page:?}");
        }
    }

    #[test]
    fn t51_http_is_for_loopback_addresses_and_where_it_is_wanted() {
        for url in [
            "http://127.0.0.1:8080/done",
            "HTTP://127.9.9.9/",
            "http://[::1]:8080/done",
        ] {
            assert!(ElicitationUrl::read(url, true).is_ok(), "{url}");
            assert!(ElicitationUrl::read(url, false).is_err(), "{url}");
        }
        for url in [
            "http://localhost/",
            "http://127.1/",
            "http://0177.0.0.1/",
            "http://2130706433/",
            "http://0.0.0.0/",
            "http://127.0.0.1.evil.example/",
            "http://evil.example:80/127.0.0.1",
            "http://127.0.0.1@evil.example/",
            "http://evil.example#@127.0.0.1",
            "http://10.0.0.1/",
            "http://[::]/",
        ] {
            assert!(ElicitationUrl::read(url, true).is_err(), "{url}");
        }
    }
}
