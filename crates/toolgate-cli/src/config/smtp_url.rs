//! Address of a mail server.

use super::reader::{ExpandedText, inline_schema};
use schemars::json_schema;
use serde::Deserialize;
use std::net::IpAddr;

/// Mail server: host, port and TLS.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct SmtpServer {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) tls: SmtpTls,
}

/// TLS of the connection to a mail server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum SmtpTls {
    /// TLS from the beginning (RFC 8314).
    Implicit,
    /// Required `STARTTLS` (RFC 3207).
    StartTls,
    /// None, on this machine only.
    None,
}

/// URL of a mail server, `smtps://HOST:PORT` or `smtp://HOST:PORT`.
#[derive(Clone, Deserialize)]
#[serde(try_from = "ExpandedText")]
pub(super) struct SmtpUrl(pub(super) SmtpServer);

inline_schema!(
    SmtpUrl,
    |_| json_schema!({"type": "string", "title": "URL"})
);

impl TryFrom<ExpandedText> for SmtpUrl {
    type Error = String;

    fn try_from(expanded: ExpandedText) -> Result<SmtpUrl, String> {
        let wrong = || {
            "is not the address of a mail server; write \"smtps://HOST\" or \"smtp://HOST\", with a port if it is another than 465 or 587; the user and the password have keys of their own"
                .to_owned()
        };
        let (scheme, rest) = expanded.text.split_once("://").ok_or_else(wrong)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, Some(port.parse().map_err(|_| wrong())?))
            }
            _ => (rest, None),
        };
        let host = host.strip_prefix('[').unwrap_or(host);
        let host = host.strip_suffix(']').unwrap_or(host);
        let plain = |c: char| c.is_ascii_alphanumeric() || ".-_:".contains(c);
        if host.is_empty() || !host.chars().all(plain) || port == Some(0) {
            return Err(wrong());
        }
        let (tls, default_port) = match scheme {
            "smtps" => (SmtpTls::Implicit, 465),
            "smtp" if is_loopback(host) => (SmtpTls::None, 587),
            "smtp" => (SmtpTls::StartTls, 587),
            _ => return Err(wrong()),
        };
        Ok(SmtpUrl(SmtpServer {
            host: host.to_owned(),
            port: port.unwrap_or(default_port),
            tls,
        }))
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
