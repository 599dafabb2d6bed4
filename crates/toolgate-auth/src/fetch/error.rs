//! Errors of HTTP requests to URLs that peers name.

use crate::Url;
use std::fmt;

/// Error of a [`PeerFetcher`](super::PeerFetcher) request, with a category. Its text names the origin and contains
/// nothing of the query, headers or body.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FetchError {
    kind: FetchErrorKind,
    message: String,
}

/// Category of a [`FetchError`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum FetchErrorKind {
    /// The address policy forbids the URL or its address.
    Forbidden,
    /// The server cannot be reached, or the connection broke.
    Unreachable,
    /// The timeout of the fetch expired.
    Timeout,
    /// The response exceeds a size limit of the fetch.
    TooLarge,
    /// The response is a redirect that is not followed.
    Redirect,
    /// The HTTP response or its content is malformed.
    Malformed,
}

impl FetchError {
    pub(crate) fn new(url: &Url, kind: FetchErrorKind, words: impl fmt::Display) -> FetchError {
        let words: String = words
            .to_string()
            .chars()
            .filter(|c| !c.is_control())
            .take(300)
            .collect();
        FetchError {
            kind,
            message: format!("{}: {words}", url.origin()),
        }
    }

    /// Returns the category of the fetch error.
    pub fn kind(&self) -> FetchErrorKind {
        self.kind
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for FetchError {}
