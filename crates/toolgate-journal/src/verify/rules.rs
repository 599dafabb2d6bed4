//! Rules for each record, and the state of the chain that follows from it.

use super::chain_scan::ChainScan;
use super::checkpoints;
use super::record_line::RecordLine;
use super::report::RecordFault;
use ring::digest;
use toolgate_protocol::hex;

const DOMAIN: &[u8] = b"toolgate-journal-record-v1\n";

impl ChainScan {
    /// Verifies the journal's own records: checkpoints, seals and retirements.
    pub(super) fn check_own_record(&mut self, record: &RecordLine) -> Result<(), RecordFault> {
        let event = record.text("ev").unwrap_or_default();
        if self.current_segment.sealed {
            return Err(RecordFault::Seal(
                "a record follows the seal, so that record was added later",
            ));
        }
        let first_of_part = self.current_segment.first == self.report.records + 1;
        if first_of_part {
            self.current_segment.since = record.number("ts").unwrap_or(0);
        }
        if first_of_part && self.report.segments > 1 && event != "checkpoint" {
            return Err(RecordFault::Head(
                "the segment does not begin with a checkpoint: records were removed",
            ));
        }
        match event.as_str() {
            "checkpoint" => self.checkpoint(record),
            "segment.sealed" => self.seal(record),
            "segment.retired" => {
                self.retired(record);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn checkpoint(&mut self, record: &RecordLine) -> Result<(), RecordFault> {
        let mark = checkpoints::verify_checkpoint(record, &self.keys)?;
        if mark.last != self.report.records || mark.head != self.prev {
            return Err(RecordFault::Signature(
                "it covers other records than those before it",
            ));
        }
        if !self.keys.is_empty() {
            self.unsigned.check_signed()?;
        }
        self.report.checkpoints += 1;
        self.report.signed = mark.last;
        Ok(())
    }

    fn seal(&mut self, record: &RecordLine) -> Result<(), RecordFault> {
        let digest = self.current_segment.digest.clone().finish();
        let count = self.report.records + 1 - self.current_segment.first;
        let fits = record.text("sha256").as_ref() == Some(&hex::encode(digest.as_ref()))
            && record.number("bytes") == Some(self.current_segment.bytes)
            && record.number("count") == Some(count)
            && record.number("first") == Some(self.current_segment.first)
            && record.number("last") == Some(self.report.records);
        if !fits {
            return Err(RecordFault::Seal(
                "the seal does not match the records of the segment: they were changed",
            ));
        }
        self.current_segment.sealed = true;
        Ok(())
    }

    fn retired(&mut self, record: &RecordLine) {
        self.report.last_retired_segment = record.number("segment").unwrap_or(0);
        if let Some(claim) = &mut self.unproven_start
            && record.number("segment") == Some(claim.segment)
        {
            claim.confirmed = record.number("last") == Some(claim.last)
                && record.text("seal").as_ref() == Some(&claim.seal);
        }
    }

    /// Verifies the position of a record in the chain.
    pub(super) fn check_position(&mut self, record: &RecordLine) -> Result<(), RecordFault> {
        let seq = record
            .number("seq")
            .ok_or(RecordFault::Head("it has no sequence number (\"seq\")"))?;
        let expected = self.report.records + 1;
        let event = record
            .text("ev")
            .ok_or(RecordFault::Head("it has no event type (\"ev\")"))?;
        let stamped = ["ts", "mono"]
            .iter()
            .all(|name| record.number(name).is_some())
            && record.text("boot").is_some();
        if record.number("v") != Some(1) {
            return Err(RecordFault::Head(
                "its format version (\"v\") is unknown to this program; verify with the program version that wrote it",
            ));
        }
        if record.text("chain").as_deref() != Some(&self.report.chain) {
            return Err(RecordFault::Head(
                "it belongs to another chain: it was copied here",
            ));
        }
        if seq != expected {
            return Err(RecordFault::Gap { found: seq });
        }
        if record.number("seg") != Some(self.report.segments) {
            return Err(RecordFault::Head(
                "it belongs to another segment: it was moved",
            ));
        }
        if record.text("prev").as_ref() != Some(&self.prev) {
            return Err(RecordFault::Prev);
        }
        if (event == "genesis") != (seq == 1) {
            return Err(RecordFault::Head(
                "the first record of a chain, and no other, must be \"genesis\": records were removed or inserted",
            ));
        }
        if stamped {
            Ok(())
        } else {
            Err(RecordFault::Head(
                "it has no time (\"ts\", \"mono\" and \"boot\")",
            ))
        }
    }

    /// Updates the state of the chain by a record.
    pub(super) fn update(&mut self, record: &RecordLine) {
        self.report.records += 1;
        let event = record.text("ev").unwrap_or_default();
        let first = self.report.records == self.current_segment.first;
        self.unsigned.update(&event, record, first);
        let call = || record.text("call").unwrap_or_default();
        match event.as_str() {
            "call.begin" => {
                let place = (self.report.records, self.report.segments);
                self.open.entry(call()).or_insert(place);
            }
            "call.end" => {
                self.open.remove(&call());
            }
            "call.unknown" => {
                self.open.remove(&call());
                self.report.unknown_calls += 1;
            }
            "recovered" => self.report.torn_bytes += record.number("bytes").unwrap_or(0),
            _ => {}
        }
    }
}

/// Hashes the line without its field `h`, and compares.
pub(super) fn check_hash(record: &RecordLine) -> Result<String, RecordFault> {
    let stated = record
        .text("h")
        .ok_or(RecordFault::Head("it has no hash (\"h\")"))?;
    // `mono` always follows `h`; a record without it is malformed.
    if record.last_name().as_deref() == Some("h") {
        return Err(RecordFault::Head(
            "the field \"mono\" does not follow its hash (\"h\")",
        ));
    }
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(DOMAIN);
    context.update(record.without("h").as_str().as_bytes());
    let actual = hex::encode(context.finish().as_ref());
    if actual == stated {
        Ok(actual)
    } else {
        Err(RecordFault::Hash)
    }
}
