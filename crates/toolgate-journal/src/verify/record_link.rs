//! Link of one record to the record before it, for programs that copy a chain.

use super::record_line::RecordLine;
use super::report::RecordFault;
use super::rules::check_hash;

/// Place of a record in its hash chain, from a line whose hash was verified.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RecordLink {
    /// Id of the chain.
    pub chain: String,
    /// Number of the segment.
    pub segment: u64,
    /// Sequence number of the record in the chain.
    pub seq: u64,
    /// Hash of the record before it.
    pub prev: String,
    /// Hash of the record.
    pub hash: String,
    /// Number of the segment that this record retires, if it is such a record.
    pub retires: Option<u64>,
    /// True for a signed checkpoint. Its signature is not verified.
    pub is_checkpoint: bool,
}

impl RecordLink {
    /// Reads a line without its newline, and verifies the hash of the record.
    ///
    /// # Errors
    /// The line is not a canonical record, or its hash is wrong.
    pub fn read(line: &[u8]) -> Result<RecordLink, RecordFault> {
        let record = RecordLine::parse(line).map_err(RecordFault::Form)?;
        let hash = check_hash(&record)?;
        let missing = RecordFault::Head("it has no place in a chain");
        let place = (|| {
            let event = record.text("ev")?;
            let retires = (event == "segment.retired").then(|| record.number("segment"));
            Some(RecordLink {
                chain: record.text("chain")?,
                segment: record.number("seg")?,
                seq: record.number("seq")?,
                prev: record.text("prev")?,
                hash,
                retires: retires.flatten(),
                is_checkpoint: event == "checkpoint",
            })
        })();
        place.ok_or(missing)
    }
}
