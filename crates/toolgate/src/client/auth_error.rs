//! Error of a token source, for builds without HTTP: no request needs a token there, so it has no value.

use std::fmt;
use toolgate_core::OperatorDetail;

/// Error of a token source; it has no value, because no transport of this build sends tokens.
#[derive(Clone, Debug)]
pub(super) enum AuthError {}

impl AuthError {
    pub(super) fn detail(&self) -> Option<&OperatorDetail> {
        match *self {}
    }
}

impl fmt::Display for AuthError {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

impl std::error::Error for AuthError {}
