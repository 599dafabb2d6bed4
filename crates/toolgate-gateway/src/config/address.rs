//! A server that is reached by its address: `url` and the headers that go along.

use super::{
    environment::check_env_name,
    error::ConfigError,
    section::{Field, Section},
};
use http::{Uri, uri::Scheme};
use std::fmt;
use toolgate::client::{HttpOptions, check_url};

/// Keys that only a server with a `url` has.
const KEYS: &[&str] = &["headers", "headers_env", "client_id", "client_secret_env"];
/// What a URL looks like.
const URL: &str = "\"https://mcp.example.com/mcp\"";

/// Where a server is, and what it wants to know of us.
#[derive(Clone, Eq, PartialEq)]
pub(crate) struct Address {
    /// `https://…`, or `http://…` on this machine.
    pub(crate) url: String,
    /// Names and values. The values may be secret.
    pub(crate) headers: Vec<(String, String)>,
    /// Names, and the variables of our own environment that have the values.
    pub(crate) headers_env: Vec<(String, String)>,
    /// Which client we are to its authorization server, where we do not register there by ourselves.
    pub(crate) client: Option<KnownClient>,
}

/// A client that was registered by other means.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct KnownClient {
    /// Its id, which is no secret.
    pub(crate) id: String,
    /// The variable of our own environment that has its secret, where it has one.
    pub(crate) secret_env: Option<String>,
}

/// Without the headers and without what may be a secret in the URL.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shown())
    }
}

impl Address {
    /// The address without its query, which may hold a secret.
    pub(crate) fn shown(&self) -> &str {
        self.url.split(['?', '#']).next().unwrap_or_default()
    }

    /// Reads `url` and its headers, where they are.
    pub(super) fn read(section: &Section<'_>, id: &str) -> Result<Option<Address>, ConfigError> {
        let Some(field) = section.get("url") else {
            return match KEYS.iter().find_map(|key| section.get(key)) {
                Some(field) => {
                    Err(field.is(format!("is for a server with a url; write url = {URL}")))
                }
                None => Ok(None),
            };
        };
        let url = field.text()?;
        check(url)
            .map_err(|reason| field.is(format!("cannot be used: {reason}; write url = {URL}")))?;
        let mut address = Address {
            url: url.to_owned(),
            headers: Vec::new(),
            headers_env: Vec::new(),
            client: KnownClient::read(section)?,
        };
        if let Some(field) = section.get("headers") {
            let name = format!("[server.{id}.headers]");
            let all = field.open_section(name, "{ Name = \"value\" }")?;
            for (name, at, value) in all.entries() {
                let text = value.text()?;
                check_header(name, text).map_err(|text| all.doc.error(at, text))?;
                address.headers.push((name.to_owned(), text.to_owned()));
            }
        }
        if let Some(field) = section.get("headers_env") {
            let name = format!("[server.{id}.headers_env]");
            let all = field.open_section(name, "{ Name = \"VARIABLE\" }")?;
            for (name, at, value) in all.entries() {
                check_header(name, "").map_err(|text| all.doc.error(at, text))?;
                let variable = value.text()?;
                check_env_name(variable).map_err(|text| value.wrong(text))?;
                if address.has(name) {
                    let text =
                        format!("{name:?} is in headers and in headers_env; keep one of the two");
                    return Err(all.doc.error(at, text));
                }
                address
                    .headers_env
                    .push((name.to_owned(), variable.to_owned()));
            }
        }
        Ok(Some(address))
    }

    fn has(&self, name: &str) -> bool {
        self.headers
            .iter()
            .any(|(set, _)| set.eq_ignore_ascii_case(name))
    }

    /// Whether the operator himself says who calls.
    pub(crate) fn has_authorization(&self) -> bool {
        let mut names = self.headers.iter().chain(&self.headers_env);
        names.any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
    }
}

impl KnownClient {
    fn read(section: &Section<'_>) -> Result<Option<KnownClient>, ConfigError> {
        let secret = section.get("client_secret_env");
        let Some(field) = section.get("client_id") else {
            return match secret {
                Some(field) => Err(field.is("is the secret of a client_id; write that too")),
                None => Ok(None),
            };
        };
        let id = field.text()?;
        if id.is_empty() {
            return Err(field.is("is empty; write the id that the authorization server gave"));
        }
        let variable = |field: &Field<'_>| {
            let name = field.text()?;
            let named = check_env_name(name).map_err(|_| {
                field.is("is no name of an environment variable; write its name, not the secret")
            });
            named.map(|()| name.to_owned())
        };
        Ok(Some(KnownClient {
            id: id.to_owned(),
            secret_env: secret.as_ref().map(variable).transpose()?,
        }))
    }
}

/// Whether a server may be reached there.
///
/// # Errors
/// Why not.
pub(super) fn check(url: &str) -> Result<(), String> {
    check_url(url)?;
    let uri: Uri = url.parse().map_err(|_| "it is no address")?;
    let open = uri.scheme() == Some(&Scheme::HTTP);
    if open && !uri.host().is_some_and(is_loopback) {
        return Err("http:// reaches only this machine, because everybody on the way could read and change it".to_owned());
    }
    Ok(())
}

/// Whether a header can go along.
pub(super) fn check_header(name: &str, value: &str) -> Result<(), String> {
    let checked = HttpOptions::default().header(name, value);
    checked
        .map(drop)
        .map_err(|bad| format!("the header {name:?} cannot be sent along: {bad}"))
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || bare
            .parse()
            .is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_reaches_only_this_machine() {
        for good in [
            "https://a.test/mcp",
            "https://10.0.0.1:8443/mcp",
            "http://localhost:80/mcp",
            "http://127.9.9.9/mcp",
            "http://[::1]:3000/mcp?k=1",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in [
            "http://a.test/mcp",
            "http://localhost.a.test/mcp",
            "http://127.0.0.1.a.test/",
            "http://10.0.0.1/",
            "HTTP://a.test/",
            "ws://a.test/",
            "https://u:p@a.test/",
            "https://",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
