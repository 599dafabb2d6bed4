//! Details of a failure that only the operator may read.

use std::fmt;

/// Details of a failure for the operator: paths, commands, addresses, messages of the operating system.
///
/// It has no `Display`, so it cannot be formatted into the text of an [`Error`](crate::Error), which callers and their
/// models read. It goes with the error by [`Error::with_detail`](crate::Error::with_detail).
///
/// ```
/// use toolgate_core::{Error, ErrorKind, OperatorDetail};
/// let detail = OperatorDetail::new("/srv/state is full");
/// let error = Error::new(ErrorKind::Bug, "the state cannot be written").with_detail(detail);
/// assert!(!format!("{error} {error:?}").contains("/srv"));
/// assert_eq!(error.detail().unwrap().for_operator(), "/srv/state is full");
/// ```
#[derive(Clone, Eq, PartialEq)]
pub struct OperatorDetail(String);

impl OperatorDetail {
    /// Creates operator details from one line of text without secrets.
    pub fn new(text: impl Into<String>) -> OperatorDetail {
        OperatorDetail(text.into())
    }

    /// Returns the details as text for standard error, the console or the operator's terminal.
    pub fn for_operator(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for OperatorDetail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OperatorDetail(..)")
    }
}
