//! How a server is reached over HTTP.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::{fmt, sync::Arc, time::Duration};
use toolgate_auth::client::Credentials;

/// Names that are ours to set, or that would change what a message is.
const OURS: [HeaderName; 9] = [
    header::ACCEPT,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::HOST,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("last-event-id"),
];

/// The shortest part of a value that is kept from callers, in bytes; shorter ones stand in any text.
const SECRET: usize = 7;

/// How a server is reached over HTTP. Its `Debug` form has no values of headers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpOptions {
    /// Longest time until a connection stands, TLS included; 10 s.
    pub connect: Duration,
    /// Sent with every request, and only to the origin of the address.
    headers: HeaderMap,
    credentials: Who,
}

/// Who asks for tokens. Its `Debug` form says only whether somebody does.
#[derive(Clone, Default)]
struct Who(Option<Arc<dyn Credentials>>);

impl fmt::Debug for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "set" } else { "none" })
    }
}

/// A header that cannot be sent along.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum BadHeader {
    /// The name has signs that no header name has.
    Name,
    /// The value has signs that no header value has.
    Value,
    /// The name is one that the protocol sets.
    Ours,
}

impl fmt::Display for BadHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BadHeader::Name => "it is no name of a header",
            BadHeader::Value => "its value has signs that a header cannot carry",
            BadHeader::Ours => "the protocol itself sets this header",
        })
    }
}

impl std::error::Error for BadHeader {}

impl Default for HttpOptions {
    fn default() -> HttpOptions {
        HttpOptions {
            connect: Duration::from_secs(10),
            headers: HeaderMap::new(),
            credentials: Who::default(),
        }
    }
}

impl HttpOptions {
    /// The same with one more header; a second one of the same name replaces the first. The value is a secret:
    /// nothing prints it.
    ///
    /// # Errors
    /// [`BadHeader`]
    pub fn header(mut self, name: &str, value: &str) -> Result<HttpOptions, BadHeader> {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| BadHeader::Name)?;
        if OURS.contains(&name) || name.as_str().starts_with("mcp-") {
            return Err(BadHeader::Ours);
        }
        let mut value = HeaderValue::from_str(value).map_err(|_| BadHeader::Value)?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(self)
    }

    /// The same with somebody who has tokens for the server, and is asked before each request and after each refusal:
    /// most often a [`Login`](toolgate_auth::client::Login).
    #[must_use]
    pub fn credentials(mut self, credentials: impl Credentials) -> HttpOptions {
        self.credentials = Who(Some(Arc::new(credentials)));
        self
    }

    /// Whether the first request may wait for a person.
    pub(in super::super) fn may_wait(&self) -> bool {
        self.who().is_some_and(|who| who.may_wait())
    }

    pub(super) fn who(&self) -> Option<&Arc<dyn Credentials>> {
        self.credentials.0.as_ref()
    }

    /// Words of a server without the values that were sent to it, these and `more`: some repeat them, and callers read
    /// these words.
    pub(super) fn without_secrets(&self, words: &str, more: Option<&HeaderMap>) -> String {
        let values = self
            .headers
            .values()
            .chain(more.into_iter().flat_map(HeaderMap::values))
            .filter_map(|value| value.to_str().ok());
        // Of `Bearer abc` the second word is as much of a secret as the whole.
        let parts = values.flat_map(|value| std::iter::once(value).chain(value.split(' ')));
        let secrets = parts.filter(|part| part.len() >= SECRET);
        secrets.fold(words.to_owned(), |words, secret| words.replace(secret, "…"))
    }

    pub(super) fn headers(&self) -> &HeaderMap {
        &self.headers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_repeats_a_secret_is_not_quoted() {
        let options = HttpOptions::default();
        let options = options
            .header("Authorization", "Bearer s3cret-token")
            .unwrap();
        for said in [
            "invalid token s3cret-token",
            "got: Bearer s3cret-token, expired",
        ] {
            let kept = options.without_secrets(said, None);
            assert!(!kept.contains("s3cret") && kept.contains('…'), "{kept}");
        }
        assert_eq!(
            options.without_secrets("no Bearer here", None),
            "no Bearer here"
        );
    }

    #[test]
    fn a_value_is_never_printed_and_what_is_ours_stays_ours() {
        let options = HttpOptions::default()
            .header("Authorization", "Bearer s3cret")
            .unwrap();
        let shown = format!("{options:?}");
        assert!(!shown.contains("s3cret"), "{shown}");
        for (name, value, wrong) in [
            ("Host", "x", BadHeader::Ours),
            ("Mcp-Session-Id", "x", BadHeader::Ours),
            ("a b", "x", BadHeader::Name),
            ("x-a", "a\r\nb: c", BadHeader::Value),
        ] {
            let refused = HttpOptions::default().header(name, value);
            assert_eq!(refused.err(), Some(wrong), "{name}");
        }
    }
}
