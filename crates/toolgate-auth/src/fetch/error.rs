//! Why nothing was fetched.

use crate::Url;
use std::fmt;

/// Why there is no answer. Its words name the origin, and nothing of a query, a header or a body.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FetchError {
    kind: FetchErrorKind,
    words: String,
}

/// The kinds of [`FetchError`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum FetchErrorKind {
    /// It is not allowed to go there.
    Refused,
    /// There is no connection, or it broke.
    Unreachable,
    /// It took too long.
    Late,
    /// The answer is over a limit.
    TooBig,
    /// It leads elsewhere.
    Redirect,
    /// The answer cannot be read.
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
            words: format!("{}: {words}", url.origin()),
        }
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> FetchErrorKind {
        self.kind
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl std::error::Error for FetchError {}
