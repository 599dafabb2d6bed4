//! Errors of the guardian.

use std::fmt;

/// Error of starting a child process.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The child's program was rejected or could not be run; the text contains the reason and the remedy.
    Refused(String),
    /// The guardian process has died; no child process can be started until a new one runs.
    Died,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => f.write_str(why),
            Self::Died => f.write_str(
                "the guardian process has ended, so no program can be started; \
                 restart this program",
            ),
        }
    }
}

impl std::error::Error for Error {}
