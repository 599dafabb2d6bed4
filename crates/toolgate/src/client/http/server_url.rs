//! URLs: validation of the configured URL, and of redirects and references from a server.

use http::{HeaderValue, Uri};
use toolgate_auth::Url;

/// Parses a configured URL.
///
/// # Errors
/// A description of the fault, without the URL, which may hold a secret.
pub(super) fn parse_url(text: &str) -> Result<Uri, &'static str> {
    let uri: Uri = text.parse().map_err(|_| "it is not a valid URL")?;
    let scheme = uri.scheme_str().unwrap_or_default();
    if scheme != "https" && scheme != "http" {
        return Err("it does not begin with https:// or http://");
    }
    let Some(authority) = uri.authority().filter(|a| !a.host().is_empty()) else {
        return Err("it has no host");
    };
    if authority.as_str().contains('@') {
        return Err("it contains a user name; put credentials into a header");
    }
    Ok(uri)
}

/// Returns the `Host` header of a URL: its host, and its port if that is not the default of the scheme.
pub(super) fn host_header(uri: &Uri) -> Option<HeaderValue> {
    let authority = uri.authority()?;
    let default = match uri.scheme_str() {
        Some("https") => 443,
        _ => 80,
    };
    let host = match authority.port_u16().filter(|port| *port != default) {
        Some(port) => format!("{}:{port}", authority.host()),
        None => authority.host().to_owned(),
    };
    HeaderValue::try_from(host).ok()
}

/// Resolves a reference of the server if it stays on the same origin. It uses the URL parser of the authorization
/// client.
pub(super) fn resolve(base: &Uri, reference: &str) -> Option<Uri> {
    let base = Url::parse(&base.to_string()).ok()?;
    let target = base.resolve(reference.trim()).ok()?;
    let stays = target.same_origin(&base);
    stays.then(|| parse_url(target.as_str()).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_header_has_no_default_port() {
        for (url, host) in [
            ("http://a.test/mcp", "a.test"),
            ("http://a.test:80/mcp", "a.test"),
            ("https://a.test:443", "a.test"),
            ("https://a.test:80", "a.test:80"),
            ("http://[::1]:8080/mcp", "[::1]:8080"),
        ] {
            assert_eq!(host_header(&url.parse().unwrap()).unwrap(), host, "{url}");
        }
    }

    #[test]
    fn a_reference_stays_on_its_origin() {
        let check = |base: &str, reference: &str, expected: Option<&str>| {
            let target = resolve(&base.parse().unwrap(), reference);
            let target = target.map(|target| target.to_string());
            assert_eq!(target.as_deref(), expected, "{reference} from {base}");
        };
        let base = "http://a.test/x/sse?k=1";
        check(base, "/m?s=1", Some("http://a.test/m?s=1"));
        check(base, "m?s=1", Some("http://a.test/x/m?s=1"));
        check(base, "?s=1", Some("http://a.test/x/sse?s=1"));
        check(base, "http://a.test/m", Some("http://a.test/m"));
        check(base, "http://A.TEST:80/m", Some("http://A.TEST:80/m"));
        check(base, "//a.test/m", Some("http://a.test/m"));
        check(
            base,
            "/m?to=http://b.test/",
            Some("http://a.test/m?to=http://b.test/"),
        );
        check(base, "https://a.test/m", None);
        check(base, "http://a.test:81/m", None);
        check(base, "http://b.test/m", None);
        check(base, "//b.test/m", None);
        check(base, "http://a.test@b.test/m", None);
        check(base, "http://u:p@a.test/m", None);
        check(base, "file:///etc/passwd", None);
        check(base, "", Some("http://a.test/x/"));
    }

    #[test]
    fn an_address_has_a_scheme_a_host_and_no_secret() {
        assert!(parse_url("https://a.test/mcp").is_ok());
        assert!(parse_url("http://127.0.0.1:1/mcp").is_ok());
        for wrong in [
            "a.test/mcp",
            "ftp://a.test",
            "http://",
            "/mcp",
            "https://u:p@a.test/",
            "",
        ] {
            assert!(parse_url(wrong).is_err(), "{wrong}");
        }
    }
}
