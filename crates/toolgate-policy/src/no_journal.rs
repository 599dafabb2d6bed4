//! The journal of builds without one: a type without values, so that the recorder can only write to the program's log.

use futures_util::future::Ready;
use toolgate_journal::{AuditEntry, Error, RejectedEntry, Urgency};

/// Hash-chained journal of audit records; it has no value in a build without the feature `audit`, or on another system
/// than Unix.
pub enum AuditJournal {}

impl AuditJournal {
    pub(crate) fn keyed_digest(&self, _: &[u8]) -> String {
        match *self {}
    }

    pub(crate) fn keyed_digest_of_parts(&self, _: impl FnOnce(&mut dyn FnMut(&[u8]))) -> String {
        match *self {}
    }

    pub(crate) fn try_append(
        &self,
        _: AuditEntry,
        _: Urgency,
    ) -> Result<Ready<Result<(), Error>>, Box<RejectedEntry>> {
        match *self {}
    }

    pub(crate) fn enqueue(&self, _: AuditEntry) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn try_enqueue(&self, _: AuditEntry) -> Result<(), Box<RejectedEntry>> {
        match *self {}
    }

    pub(crate) fn initial_chain(&self) -> &str {
        match *self {}
    }
}
