//! Calls that are open in a chain that ended for good: they are closed in another one.

use crate::chain::{self, Chain};
use crate::entry::{Entry, Event};
use crate::error::Error;
use crate::verify::{self, OpenCall};
use std::path::Path;

/// A chain to which nothing is appended any more, as it lies on the disk.
#[derive(Debug)]
pub(crate) struct Left {
    chain: Chain,
    records: u64,
    head: String,
    open: Vec<OpenCall>,
}

impl Left {
    /// Reads the chain back.
    pub(crate) fn read(chain: Chain, key: &str) -> Self {
        let report = verify::resume(&chain.dir, key, &[]).report;
        Self {
            chain,
            records: report.records,
            head: report.head.unwrap_or_default(),
            open: report.open,
        }
    }

    /// Those of a folder that failed, that nobody uses, and whose calls no other chain took over.
    pub(crate) fn behind(dir: &Path, key: &str) -> Result<Vec<Self>, Error> {
        let mut all = Vec::new();
        for id in chain::ids(dir).map_err(|e| Error::open("list", dir, e))? {
            if !chain::awaits_closing(&dir.join(&id)) {
                continue;
            }
            if let Some(chain) = Chain::take(dir, &id)?
                && chain::awaits_closing(&chain.dir)
            {
                all.push(Self::read(chain, key));
            }
        }
        Ok(all)
    }

    /// The first record of the chain that comes after it.
    pub(crate) fn genesis(&self) -> Entry {
        Entry::new(Event::GENESIS)
            .with("after", self.chain.id.as_str())
            .with("after_seq", self.records)
            .with("after_head", self.head.as_str())
    }

    /// Its open calls begin once more where they will end.
    pub(crate) fn begins(&self) -> impl Iterator<Item = Entry> {
        self.open
            .iter()
            .map(|call| self.about(Event::CALL_BEGIN, call))
    }

    /// Its open calls end as unknown: whoever ran them is gone.
    pub(crate) fn ends(&self) -> impl Iterator<Item = Entry> {
        self.open
            .iter()
            .map(|call| self.about(Event::CALL_UNKNOWN, call))
    }

    /// All of them stand in another chain now, durable.
    pub(crate) fn is_closed(&self) {
        chain::mark_closed(&self.chain.dir);
    }

    fn about(&self, event: Event, call: &OpenCall) -> Entry {
        Entry::new(event)
            .with("call", call.call.as_str())
            .with("begin", call.seq)
            .with("begin_chain", self.chain.id.as_str())
    }
}
