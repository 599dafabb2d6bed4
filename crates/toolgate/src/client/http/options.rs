//! Options for HTTP connections.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::{fmt, sync::Arc, time::Duration};
use toolgate_auth::client::CredentialProvider;

/// Headers that the protocol sets, or that would change the meaning of a message.
const RESERVED_HEADERS: [HeaderName; 9] = [
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

/// Minimum length of a header value, or of a word in it, that is redacted from server text, in bytes. Shorter ones
/// occur in ordinary text.
const MIN_REDACTED_BYTES: usize = 7;

/// Options for a client's HTTP connections to an MCP server: time-out, headers and credentials. The `Debug` output
/// contains no header values.
///
/// Specification: [Streamable HTTP](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http).
///
/// ```
/// use toolgate::{Client, client::{HeaderError, HttpOptions}};
///
/// /// Sends an API key with each request.
/// fn with_key(key: &str) -> Result<HttpOptions, HeaderError> {
///     HttpOptions::default().header("x-api-key", key)
/// }
///
/// # async fn f(key: &str) -> Result<(), Box<dyn std::error::Error>> {
/// let options = with_key(key)?;
/// let client = Client::builder().http(options).connect("https://maps.example.com/mcp").await?;
/// # drop(client);
/// # Ok(())
/// # }
/// assert_eq!(HttpOptions::default().header("host", "other").unwrap_err(), HeaderError::Reserved);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpOptions {
    /// Time-out of connecting to the server, TLS included. Default: 10 s.
    pub connect_timeout: Duration,
    /// Headers that are sent with every request, and only to the origin of the URL.
    headers: HeaderMap,
    credentials: CredentialSource,
    /// Unix socket of the server; otherwise the URL names its host.
    #[cfg(unix)]
    socket_path: Option<Arc<std::path::Path>>,
}

/// Source of access tokens. The `Debug` output says only whether it is set.
#[derive(Clone, Default)]
struct CredentialSource(Option<Arc<dyn CredentialProvider>>);

impl fmt::Debug for CredentialSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "set" } else { "none" })
    }
}

/// Error for a custom HTTP header that cannot be added to the requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum HeaderError {
    /// The header's name has invalid characters.
    Name,
    /// The header's value has invalid characters.
    Value,
    /// The header is one that the protocol itself sets.
    Reserved,
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HeaderError::Name => "it is not a valid header name; use letters, digits and \"-\"",
            HeaderError::Value => {
                "its value has characters that are not allowed in a header; remove them"
            }
            HeaderError::Reserved => "the protocol itself sets it; remove it",
        })
    }
}

impl std::error::Error for HeaderError {}

impl Default for HttpOptions {
    fn default() -> HttpOptions {
        HttpOptions {
            connect_timeout: Duration::from_secs(10),
            headers: HeaderMap::new(),
            credentials: CredentialSource::default(),
            #[cfg(unix)]
            socket_path: None,
        }
    }
}

impl HttpOptions {
    /// Adds an HTTP header to every request; it replaces an earlier one of the same name. The value is treated as a
    /// secret and never printed.
    ///
    /// # Errors
    /// [`HeaderError`] if the name or value is invalid, or if the protocol sets the header.
    pub fn header(mut self, name: &str, value: &str) -> Result<HttpOptions, HeaderError> {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| HeaderError::Name)?;
        if RESERVED_HEADERS.contains(&name) || name.as_str().starts_with("mcp-") {
            return Err(HeaderError::Reserved);
        }
        let mut value = HeaderValue::from_str(value).map_err(|_| HeaderError::Value)?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(self)
    }

    /// Sets the source of access tokens (OAuth 2.1), which is asked before each request and after each 401 or 403;
    /// usually an [`OAuthClient`](toolgate_auth::client::OAuthClient).
    #[cfg(feature = "auth")]
    #[must_use]
    pub fn credentials(mut self, credentials: impl CredentialProvider) -> HttpOptions {
        self.credentials = CredentialSource(Some(Arc::new(credentials)));
        self
    }

    /// Connects to the server at a Unix socket. The URL is then used for the `Host` header and the path only, for
    /// example `http://localhost/mcp`.
    #[cfg(unix)]
    #[must_use]
    pub fn unix_socket(mut self, path: impl AsRef<std::path::Path>) -> HttpOptions {
        self.socket_path = Some(path.as_ref().into());
        self
    }

    #[cfg(unix)]
    pub(super) fn socket_path(&self) -> Option<&Arc<std::path::Path>> {
        self.socket_path.as_ref()
    }

    /// Returns whether the first request may wait for a person to sign in.
    pub(in super::super) fn may_wait_for_sign_in(&self) -> bool {
        self.credential_source()
            .is_some_and(|who| who.may_wait_for_user())
    }

    pub(super) fn credential_source(&self) -> Option<&Arc<dyn CredentialProvider>> {
        self.credentials.0.as_ref()
    }

    /// Redacts the header values that were sent, our own and `more`, from server text: some servers repeat them, and
    /// callers see the text.
    pub(super) fn without_secrets(&self, words: &str, more: Option<&HeaderMap>) -> String {
        let values = self
            .headers
            .values()
            .chain(more.into_iter().flat_map(HeaderMap::values))
            .filter_map(|value| value.to_str().ok());
        // In `Bearer abc`, the second word alone is a secret as well.
        let parts = values.flat_map(|value| std::iter::once(value).chain(value.split(' ')));
        let secrets = parts.filter(|part| part.len() >= MIN_REDACTED_BYTES);
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
            ("Host", "x", HeaderError::Reserved),
            ("Mcp-Session-Id", "x", HeaderError::Reserved),
            ("a b", "x", HeaderError::Name),
            ("x-a", "a\r\nb: c", HeaderError::Value),
        ] {
            let refused = HttpOptions::default().header(name, value);
            assert_eq!(refused.err(), Some(wrong), "{name}");
        }
    }
}
