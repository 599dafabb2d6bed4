//! Errors that several modules construct.

use crate::client::OpenError;
use toolgate_core::{Error, ErrorKind, SchemaViolation};

/// Returns the error for arguments that cannot be sent.
pub(super) fn invalid_arguments(expected: &str, got: impl Into<String>) -> Error {
    let got = got.into();
    let text = format!("the arguments cannot be sent: expected {expected}, got {got}");
    let problem = SchemaViolation::new("", expected, got);
    Error::new(ErrorKind::InvalidArguments(vec![problem]), text)
}

/// Returns the error for an invalid setting of the application.
pub(super) fn unusable_setting(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidArguments(Vec::new()), text.into())
}

/// Returns the error for a server that cannot be opened.
pub(super) fn open_failure(server: &str, error: OpenError) -> Error {
    let kind = match error {
        OpenError::Late(_) => ErrorKind::TimedOut,
        _ => ErrorKind::Upstream,
    };
    Error::new(
        kind,
        format!("the server {server} could not be opened: {error}"),
    )
    .with_source(error)
}
