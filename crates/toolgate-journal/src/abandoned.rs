//! Open calls of an abandoned chain, which are closed in another chain.

use crate::chain::{self, LockedChain};
use crate::entry::{AuditEntry, AuditEvent};
use crate::error::Error;
use crate::verify::{self, OpenCall};
use std::path::Path;

/// Abandoned chain, to which nothing is appended any more.
#[derive(Debug)]
pub(crate) struct AbandonedChain {
    chain: LockedChain,
    records: u64,
    head: String,
    open: Vec<OpenCall>,
}

impl AbandonedChain {
    /// Reads an abandoned chain.
    pub(crate) fn read(chain: LockedChain, key: &str) -> Self {
        let report = verify::resume(&chain.dir, key, &[]).report;
        Self {
            chain,
            records: report.records,
            head: report.head.unwrap_or_default(),
            open: report.open_calls,
        }
    }

    /// Returns the abandoned chains of a directory that no process uses and whose open calls no other chain has closed.
    pub(crate) fn find_abandoned(dir: &Path, key: &str) -> Result<Vec<Self>, Error> {
        let mut all = Vec::new();
        for id in chain::ids(dir).map_err(|e| Error::open("list", dir, e))? {
            if !chain::awaits_closing(&dir.join(&id)) {
                continue;
            }
            if let Some(chain) = LockedChain::lock_existing(dir, &id)?
                && chain::awaits_closing(&chain.dir)
            {
                all.push(Self::read(chain, key));
            }
        }
        Ok(all)
    }

    /// Returns the `genesis` record of the chain that follows.
    pub(crate) fn genesis(&self) -> AuditEntry {
        AuditEntry::new(AuditEvent::GENESIS)
            .with("after", self.chain.id.as_str())
            .with("after_seq", self.records)
            .with("after_head", self.head.as_str())
    }

    /// Returns a `call.begin` for each open call, so that it can end in the chain that follows.
    pub(crate) fn reopened_calls(&self) -> impl Iterator<Item = AuditEntry> {
        self.open
            .iter()
            .map(|call| self.about(AuditEvent::CALL_BEGIN, call))
    }

    /// Returns a `call.unknown` for each open call; the process that ran it is gone.
    pub(crate) fn closed_calls(&self) -> impl Iterator<Item = AuditEntry> {
        self.open
            .iter()
            .map(|call| self.about(AuditEvent::CALL_UNKNOWN, call))
    }

    /// Records that all open calls are durable in another chain.
    pub(crate) fn mark_closed(&self) {
        chain::mark_closed(&self.chain.dir);
    }

    fn about(&self, event: AuditEvent, call: &OpenCall) -> AuditEntry {
        AuditEntry::new(event)
            .with("call", call.call.as_str())
            .with("begin", call.seq)
            .with("begin_chain", self.chain.id.as_str())
    }
}
