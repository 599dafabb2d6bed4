//! Health of an issuer, for operators.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

/// Health of a trusted issuer, for operators.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct IssuerStatus {
    /// Short id of the issuer, the prefix of its callers' names.
    pub id: String,
    /// Issuer identifier, as in the tokens.
    pub url: String,
    /// Last error at the issuer, without tokens, secrets and queries; `None` if the issuer is usable.
    pub error: Option<String>,
    /// Time of the first error since the issuer last worked.
    pub since: Option<SystemTime>,
}

/// Last error of an issuer, until a request succeeds.
#[derive(Default)]
pub(super) struct IssuerHealth(Mutex<Option<(String, SystemTime)>>);

impl IssuerHealth {
    /// Records an error. Keeps the time of the first one.
    pub(super) fn record_failure(&self, words: String) {
        let mut last = self.last();
        let since = last.as_ref().map(|(_, since)| *since);
        *last = Some((words, since.unwrap_or_else(SystemTime::now)));
    }

    /// Clears the error after a success.
    pub(super) fn record_success(&self) {
        *self.last() = None;
    }

    /// Returns the last error and the time of the first one.
    pub(super) fn failure(&self) -> Option<(String, SystemTime)> {
        self.last().clone()
    }

    fn last(&self) -> MutexGuard<'_, Option<(String, SystemTime)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
