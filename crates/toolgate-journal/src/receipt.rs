//! Receipt of a durable record.

use std::fmt;
use std::sync::Arc;

/// Position of a durable record; proof that the record is on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditReceipt {
    /// Id of the chain.
    pub chain: Arc<str>,
    /// Sequence number of the record in the chain, from 1.
    pub seq: u64,
}

impl fmt::Display for AuditReceipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.chain, self.seq)
    }
}
