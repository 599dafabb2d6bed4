//! Why an issuer cannot be used, for whoever has to mend it.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

/// How an issuer stands.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct IssuerStatus {
    /// Its short name.
    pub id: String,
    /// As tokens name it.
    pub url: String,
    /// Why it cannot be used, as it was found last; nothing of a token, a secret or a query.
    pub error: Option<String>,
    /// Since when that is so.
    pub since: Option<SystemTime>,
}

/// What went wrong last, until something goes well.
#[derive(Default)]
pub(super) struct Trouble(Mutex<Option<(String, SystemTime)>>);

impl Trouble {
    /// It cannot be used.
    pub(super) fn is(&self, words: String) {
        let mut last = self.last();
        let since = last.as_ref().map(|(_, since)| *since);
        *last = Some((words, since.unwrap_or_else(SystemTime::now)));
    }

    /// It can be used.
    pub(super) fn is_over(&self) {
        *self.last() = None;
    }

    /// Why it cannot be used, and since when.
    pub(super) fn told(&self) -> Option<(String, SystemTime)> {
        self.last().clone()
    }

    fn last(&self) -> MutexGuard<'_, Option<(String, SystemTime)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
