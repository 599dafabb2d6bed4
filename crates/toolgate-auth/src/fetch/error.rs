//! Errors of HTTP requests to URLs that peers name.

use crate::Url;
use std::fmt;

/// Error of a fetch. Its text names the origin and contains nothing of the query, headers or body.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FetchError {
    kind: FetchErrorKind,
    message: String,
}

/// Categories of [`FetchError`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum FetchErrorKind {
    /// The address policy forbids the request.
    Forbidden,
    /// No connection, or the connection broke.
    Unreachable,
    /// The timeout expired.
    Timeout,
    /// The response exceeds a size limit.
    TooLarge,
    /// A redirect that is not followed.
    Redirect,
    /// The response is malformed.
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

    /// Returns the category.
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
