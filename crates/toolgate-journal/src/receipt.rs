//! Receipt of a durable record.

use std::fmt;
use std::sync::Arc;

/// Receipt of an audit record that is on disk: its position in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditReceipt {
    /// Id of the hash chain that contains the record.
    pub chain: Arc<str>,
    /// Sequence number of the record in its hash chain, from 1.
    pub seq: u64,
}

impl fmt::Display for AuditReceipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.chain, self.seq)
    }
}
