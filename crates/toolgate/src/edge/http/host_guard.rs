//! Host and Origin checks, for every route.

use http::{HeaderMap, HeaderName, Request, header};

/// Allowlists of `Host` and `Origin` header values for an HTTP listener, against DNS rebinding and cross-site requests.
///
/// Host and Origin are checked separately, each against an exact list. The Host check rejects DNS rebinding, where a
/// web page resolves its own name to this machine. The Origin check rejects pages of other sites.
///
/// Specification: [security of Streamable HTTP](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http).
#[derive(Clone, Debug)]
pub struct HostGuard {
    hosts: Vec<String>,
    origins: Vec<String>,
    /// The port of the listener; `None` allows any port.
    port: Option<u16>,
    /// True if the listener serves HTTPS, so that its own origin begins with `https://`.
    is_https: bool,
}

/// Reason why [`HostGuard`] rejects an HTTP request: its `Host` or its `Origin`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum HostGuardError {
    /// The `Host` header is not allowed, or there is not exactly one.
    Host,
    /// The `Origin` header is not allowed, or there are several.
    Origin,
}

impl HostGuardError {
    /// Returns the reason as a message for the response and the audit log.
    pub fn reason(self) -> &'static str {
        match self {
            HostGuardError::Host => {
                "this Host is not allowed here; add it to allowed_hosts in the config if it is yours"
            }
            HostGuardError::Origin => {
                "this Origin is not allowed here; add it to allowed_origins in the config if it is yours"
            }
        }
    }
}

impl HostGuard {
    /// Creates a guard that allows only loopback `Host` values, on `port`.
    pub fn loopback(port: u16) -> HostGuard {
        HostGuard::with_port(Some(port))
    }

    /// Creates a guard that allows only loopback `Host` values, on any port. For a service in a program that has its
    /// own listener.
    pub fn loopback_on_any_port() -> HostGuard {
        HostGuard::with_port(None)
    }

    fn with_port(port: Option<u16>) -> HostGuard {
        let hosts = ["127.0.0.1", "localhost", "[::1]"]
            .map(str::to_owned)
            .to_vec();
        HostGuard {
            hosts,
            origins: Vec::new(),
            port,
            is_https: false,
        }
    }

    /// Expects TLS on the listener: its own `Origin` is then `https://…` instead of `http://…`.
    ///
    /// ```
    /// use http::Request;
    /// use toolgate::edge::http::HostGuard;
    ///
    /// let guard = HostGuard::loopback(8443).over_https();
    /// let own = Request::builder()
    ///     .header("Host", "localhost:8443")
    ///     .header("Origin", "https://localhost:8443");
    /// assert!(guard.check(&own.body(())?).is_ok());
    /// # Ok::<(), http::Error>(())
    /// ```
    pub fn over_https(mut self) -> HostGuard {
        self.is_https = true;
        self
    }

    /// Allows more `Host` values: `name`, on the listener's port, or `name:port`.
    pub fn allow_hosts<'a>(mut self, hosts: impl IntoIterator<Item = &'a str>) -> HostGuard {
        self.hosts
            .extend(hosts.into_iter().map(str::to_ascii_lowercase));
        self
    }

    /// Allows more `Origin` values: `scheme://host` or `scheme://host:port`.
    pub fn allow_origins<'a>(mut self, origins: impl IntoIterator<Item = &'a str>) -> HostGuard {
        self.origins
            .extend(origins.into_iter().map(normalize_origin));
        self
    }

    /// Checks the `Host` and `Origin` headers of an HTTP request.
    ///
    /// # Errors
    /// [`HostGuardError`] names the header that is not allowed.
    pub fn check<B>(&self, request: &Request<B>) -> Result<(), HostGuardError> {
        self.check_origin(request, |origin, host| self.allows_origin(origin, host))
    }

    /// Checks the `Host` and `Origin` headers of an HTTP request that a trusted proxy received over TLS.
    ///
    /// Its own origin is then `https://` with the value of `Host`, because the proxy has another port than the listener.
    ///
    /// # Errors
    /// [`HostGuardError`] names the header that is not allowed.
    pub fn check_behind_https_proxy<B>(&self, request: &Request<B>) -> Result<(), HostGuardError> {
        self.check_origin(request, |origin, host| {
            let own = origin.split_once("://").is_some_and(|(scheme, own)| {
                scheme.eq_ignore_ascii_case("https") && own.eq_ignore_ascii_case(host)
            });
            own || self.has_origin(origin)
        })
    }

    fn check_origin<B>(
        &self,
        request: &Request<B>,
        allows: impl FnOnce(&str, &str) -> bool,
    ) -> Result<(), HostGuardError> {
        let host = match (
            single_value(request.headers(), header::HOST),
            request.uri().authority(),
        ) {
            (Ok(Some(host)), None) => host,
            // A request target in absolute form must have the same host.
            (Ok(Some(host)), Some(authority)) if host.eq_ignore_ascii_case(authority.as_str()) => {
                host
            }
            // HTTP/2 has an authority instead of Host.
            (Ok(None), Some(authority)) => authority.as_str(),
            _ => return Err(HostGuardError::Host),
        };
        if !self.allows_host(host) {
            return Err(HostGuardError::Host);
        }
        match single_value(request.headers(), header::ORIGIN) {
            Ok(None) => Ok(()),
            Ok(Some(origin)) if allows(origin, host) => Ok(()),
            _ => Err(HostGuardError::Origin),
        }
    }

    fn allows_host(&self, host: &str) -> bool {
        let on = |port: &str| match self.port {
            Some(own) => port == own.to_string(),
            None => port.parse::<u16>().is_ok(),
        };
        let named = |allowed: &String| match host.split_at_checked(allowed.len()) {
            Some((name, port)) => {
                let port = port.strip_prefix(':');
                name.eq_ignore_ascii_case(allowed)
                    && (name.len() == host.len() || port.is_some_and(on))
            }
            None => false,
        };
        self.hosts.iter().any(named)
    }

    /// Returns whether an origin is the listener's own or in the list. `null` is neither.
    fn allows_origin(&self, given: &str, host: &str) -> bool {
        let given = given.to_ascii_lowercase();
        let scheme = if self.is_https { "https://" } else { "http://" };
        let own = given
            .strip_prefix(scheme)
            .is_some_and(|own| match self.port {
                Some(_) => self.is_own(own),
                None => own.eq_ignore_ascii_case(host),
            });
        own || self.has_origin(&given)
    }

    /// Returns whether the list of allowed origins contains the origin.
    pub(super) fn has_origin(&self, given: &str) -> bool {
        self.origins.contains(&normalize_origin(given))
    }

    fn is_own(&self, host: &str) -> bool {
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()),
            _ => (host, Some(if self.is_https { 443 } else { 80 })),
        };
        port == self.port && self.hosts.iter().any(|h| h == name || h == host)
    }
}

/// Returns the value of a header that may occur only once.
fn single_value(headers: &HeaderMap, name: HeaderName) -> Result<Option<&str>, ()> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| ()),
        _ => Err(()),
    }
}

/// Normalizes an origin: lower case, without the default port of its scheme.
fn normalize_origin(text: &str) -> String {
    let text = text.to_ascii_lowercase();
    let default = [("http://", ":80"), ("https://", ":443")]
        .into_iter()
        .find(|(scheme, _)| text.starts_with(scheme));
    match default.and_then(|(_, port)| text.strip_suffix(port)) {
        Some(short) => short.to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(host: &[&str], origins: &[&str], expected: Result<(), HostGuardError>) {
        let guard = HostGuard::loopback(8665)
            .allow_hosts(["gate.example"])
            .allow_origins(["https://app.example:443"]);
        let mut request = Request::new(());
        for h in host {
            request
                .headers_mut()
                .append(header::HOST, h.parse().unwrap());
        }
        for o in origins {
            request
                .headers_mut()
                .append(header::ORIGIN, o.parse().unwrap());
        }
        assert_eq!(guard.check(&request), expected, "{host:?} {origins:?}");
    }

    #[test]
    fn matches_hosts_exactly() {
        for good in [
            "127.0.0.1:8665",
            "localhost:8665",
            "LOCALHOST:8665",
            "[::1]:8665",
            "localhost",
            "gate.example:8665",
        ] {
            check(&[good], &[], Ok(()));
        }
        for bad in [
            "evil.test",
            "evil.test:8665",
            "127.0.0.1:80",
            "localhost.:8665",
            "localhost.evil.test",
            "user@localhost:8665",
            "localhost:8665:8665",
            "127.0.0.2:8665",
            "0.0.0.0:8665",
            "xn--lcalhost-9za:8665",
            "",
            "localhost:",
        ] {
            check(&[bad], &[], Err(HostGuardError::Host));
        }
        check(&[], &[], Err(HostGuardError::Host));
        check(
            &["localhost:8665", "localhost:8665"],
            &[],
            Err(HostGuardError::Host),
        );
    }

    #[test]
    fn its_own_origin_has_the_scheme_of_the_listener() {
        let check = |guard: &HostGuard, host: &str, origin: &str| {
            let request = Request::builder()
                .header(header::HOST, host)
                .header(header::ORIGIN, origin);
            guard.check(&request.body(()).unwrap()).is_ok()
        };
        let guard = HostGuard::loopback(8443)
            .allow_hosts(["gate.example"])
            .over_https();
        assert!(check(&guard, "localhost:8443", "https://localhost:8443"));
        assert!(check(
            &guard,
            "gate.example:8443",
            "https://gate.example:8443"
        ));
        assert!(!check(&guard, "localhost:8443", "http://localhost:8443"));
        assert!(!check(&guard, "localhost:8443", "https://localhost"));
        let standard = HostGuard::loopback(443).over_https();
        assert!(check(&standard, "localhost", "https://localhost"));
        assert!(!check(&standard, "localhost", "http://localhost"));
    }

    #[test]
    fn behind_a_proxy_with_tls_its_own_origin_is_the_host() {
        let guard = HostGuard::loopback(8665)
            .allow_hosts(["gate.example"])
            .allow_origins(["https://app.example"]);
        let check = |host: &str, origin: &str| {
            let request = Request::builder()
                .header(header::HOST, host)
                .header(header::ORIGIN, origin);
            guard.check_behind_https_proxy(&request.body(()).unwrap())
        };
        assert_eq!(check("gate.example", "https://gate.example"), Ok(()));
        assert_eq!(check("gate.example", "https://app.example"), Ok(()));
        for origin in [
            "http://gate.example",
            "https://evil.test",
            "https://localhost",
            "null",
        ] {
            assert_eq!(
                check("gate.example", origin),
                Err(HostGuardError::Origin),
                "{origin}"
            );
        }
        assert_eq!(
            check("evil.test", "https://evil.test"),
            Err(HostGuardError::Host)
        );
    }

    #[test]
    fn origins_are_exact() {
        let host = &["localhost:8665"];
        for good in [
            "http://localhost:8665",
            "http://127.0.0.1:8665",
            "http://[::1]:8665",
            "HTTP://LOCALHOST:8665",
            "https://app.example",
        ] {
            check(host, &[good], Ok(()));
        }
        for bad in [
            "null",
            "http://evil.test",
            "https://localhost:8665",
            "http://localhost",
            "http://localhost:80",
            "http://localhost:8665.evil.test",
            "http://localhost.:8665",
            "http://user@localhost:8665",
            "https://app.example:8443",
            "http://app.example",
            "file://",
            "",
            "http://xn--lcalhost-9za:8665",
        ] {
            check(host, &[bad], Err(HostGuardError::Origin));
        }
        check(
            host,
            &["http://localhost:8665", "http://localhost:8665"],
            Err(HostGuardError::Origin),
        );
    }
}
