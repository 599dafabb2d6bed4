//! Report of a verification, for programs and people.

use super::terms::ChainTerms;
use std::fmt;
use std::path::{Path, PathBuf};
use toolgate_protocol::plural::count_of;

/// Verification report about all chains of an audit log directory.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AuditReport {
    /// Reports of the individual chains, oldest first.
    pub chains: Vec<ChainReport>,
    /// True if a checkpoint mirror was compared with the log.
    pub has_mirror: bool,
    /// Number of unreadable lines in the checkpoint mirrors, as a crash leaves them.
    pub unreadable_lines: u64,
    /// Number of lines in the checkpoint mirrors that are not checkpoints signed by the key.
    pub foreign_lines: u64,
    /// True if the key file `mac.key` was exchanged: no chain states its digest. `None` if there is none to compare.
    pub mac_key_exchanged: Option<bool>,
}

/// Verdict of an audit log verification: intact, broken, or undecidable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuditVerdict {
    /// No damage was found, and each chain states how much of it is signed.
    Intact,
    /// A record, a checkpoint or a key of the log is wrong.
    Broken,
    /// No damage was found, but evidence that could reveal damage is missing.
    CannotTell,
}

/// Evidence that is missing about a chain without detected damage.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissingEvidence {
    /// Records follow the last checkpoint, and no signed record limits their number.
    Unbounded {
        /// Number of records after the last checkpoint.
        records: u64,
    },
    /// No checkpoint mirror has a checkpoint of the chain.
    NoMirror {
        /// Path of the checkpoint mirror that the chain itself states.
        named: Option<PathBuf>,
    },
    /// No public key is available to verify the checkpoint signatures.
    NoKey,
}

impl fmt::Display for MissingEvidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unbounded { records } => write!(
                f,
                "{} after the last checkpoint {} no signature, and the log does not state how many may lack one, so checkpoints may have been removed",
                count_of(*records, "record"),
                if *records == 1 { "has" } else { "have" }
            ),
            Self::NoMirror { named: Some(named) } => write!(
                f,
                "the chain names the checkpoint mirror {}, but no mirror has a checkpoint of the chain: the mirror was removed, or it is elsewhere; pass its path with --checkpoints",
                named.display()
            ),
            Self::NoMirror { named: None } => f.write_str(
                "the checkpoint mirror has no checkpoint of the chain: the checkpoint was removed, or the chain has another mirror; pass the path of that mirror with --checkpoints",
            ),
            Self::NoKey => f.write_str(
                "there is no public key to verify the signatures with; pass one with --key",
            ),
        }
    }
}

impl AuditReport {
    /// Returns true if the log is intact as far as it is signed, and no evidence is missing.
    pub fn is_intact(&self) -> bool {
        self.verdict() == AuditVerdict::Intact
    }

    /// Returns the verdict for all chains of the audit log.
    pub fn verdict(&self) -> AuditVerdict {
        let bad = self.chains.iter().any(|chain| chain.first_fault.is_some());
        if bad || self.foreign_lines > 0 || self.mac_key_exchanged == Some(true) {
            AuditVerdict::Broken
        } else if self.chains.is_empty()
            || self.chains.iter().any(|c| !c.missing_evidence.is_empty())
        {
            AuditVerdict::CannotTell
        } else {
            AuditVerdict::Intact
        }
    }
}

/// Verification report about one hash chain of an audit log.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ChainReport {
    /// Id of the hash chain, which is the name of its directory.
    pub chain: String,
    /// True if a running process is writing the chain. Calls may be in flight then, and the last line may be
    /// incomplete.
    pub live: bool,
    /// Number of the last segment of the chain that was read.
    pub segments: u64,
    /// Sequence number of the last record before the first fault, including retired records.
    pub records: u64,
    /// Sequence number of the first record that exists, if older ones were retired.
    pub first_record: u64,
    /// Number of the last segment that retention removed; 0 if there is none.
    pub last_retired_segment: u64,
    /// Number of valid signed checkpoints in the chain.
    pub checkpoints: u64,
    /// Sequence number of the last record that a valid signed checkpoint covers.
    pub signed: u64,
    /// Sequence number of the last record that a mirrored checkpoint covers and confirms.
    pub mirrored: Option<u64>,
    /// Hash of the last good record of the chain. Compare it with one that you stored earlier.
    pub head: Option<String>,
    /// Position of the first fault in the chain. Everything after it proves nothing and is not read.
    pub first_fault: Option<FaultPosition>,
    /// Calls that neither ended nor were closed as unknown, in order of their beginning.
    pub open_calls: Vec<OpenCall>,
    /// Number of calls that were closed as unknown after a crash.
    pub unknown_calls: u64,
    /// Size in bytes of the partial writes after crashes, which later starts set aside.
    pub torn_bytes: u64,
    /// Evidence that is missing about the chain, if no damage was detected.
    pub missing_evidence: Vec<MissingEvidence>,
    /// Number of records after the last signed checkpoint.
    pub unsigned: u64,
    /// True if no signed record states how many of these may exist.
    pub(crate) unbounded: bool,
    /// True if a checkpoint mirror has a checkpoint of the chain.
    pub(crate) covered: bool,
    /// Terms that the chain states about itself.
    pub(crate) terms: Option<ChainTerms>,
    /// Number of the last segment and the end of its good part, for recovery.
    pub(crate) end: (u64, u64),
}

impl ChainReport {
    /// Returns the checkpoint mirror that the chain names.
    pub(super) fn named_mirror(&self) -> Option<PathBuf> {
        self.terms.as_ref().and_then(|terms| terms.mirror.clone())
    }
}

/// Call with a `call.begin` record and no record of its end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenCall {
    /// Id of the call, the field `call` of its records.
    pub call: String,
    /// Sequence number of the `call.begin` record.
    pub seq: u64,
    /// Number of its segment.
    pub(crate) seg: u64,
}

/// Position of the first fault in a hash chain of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaultPosition {
    /// Segment file that contains the fault.
    pub file: PathBuf,
    /// Number of the faulty line in the segment, from 1.
    pub line: u64,
    /// Sequence number that the record at this position should have.
    pub seq: u64,
    /// Fault of the record at this position.
    pub fault: RecordFault,
}

impl FaultPosition {
    pub(super) fn of(file: &Path, line: u64, seq: u64, what: RecordFault) -> Self {
        let file = file.to_owned();
        Self {
            file,
            line,
            seq,
            fault: what,
        }
    }
}

/// Fault of an audit record that verification found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordFault {
    /// The hash of the record does not match: the record was changed.
    Hash,
    /// The sequence number is not the next one: records are missing, repeated or out of order.
    Gap {
        /// Sequence number that the record has instead.
        found: u64,
    },
    /// The member `prev` is not the hash of the previous record.
    Prev,
    /// The line of the segment is not a canonical record.
    Form(&'static str),
    /// The record belongs to another chain, segment or version, or a required field is missing.
    Head(&'static str),
    /// A crash cut the last write short; the next start sets it aside.
    Torn {
        /// Size of the torn write in bytes.
        bytes: u64,
    },
    /// The chain has no records: they were removed, or a crash happened before the first.
    Empty,
    /// A checkpoint is missing, not signed by the key, or signs something else.
    Signature(&'static str),
    /// The seal of a segment is missing or does not match it.
    Seal(&'static str),
    /// A checkpoint of a mirror covers another record here: the chain was rewritten.
    Forked,
    /// A checkpoint of a mirror covers more records than exist: the end was cut off.
    Cut {
        /// Sequence number of the last record that the mirrored checkpoint covers.
        kept: u64,
    },
    /// Too many records have no checkpoint: the checkpoints were removed.
    Unsigned,
    /// The segment file cannot be read.
    Unreadable(String),
}

impl fmt::Display for RecordFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hash => f.write_str("its hash does not match its contents: the record was changed"),
            Self::Gap { found } => write!(
                f,
                "record {found} is in its place: records were deleted, repeated or moved"
            ),
            Self::Prev => {
                f.write_str("its prev hash does not match the record before it: that record was replaced")
            }
            Self::Form(flaw) => write!(f, "the line is not a record in canonical JSON: {flaw}"),
            Self::Head(flaw) => f.write_str(flaw),
            Self::Torn { bytes } => write!(
                f,
                "a write of {bytes} bytes was cut short by a crash; the next start sets it aside"
            ),
            Self::Empty => f.write_str(
                "the chain has no records: they were removed, or a crash happened before the first",
            ),
            Self::Signature(flaw) => write!(f, "the checkpoint is invalid: {flaw}"),
            Self::Seal(flaw) => write!(f, "the seal of the segment is invalid: {flaw}"),
            Self::Forked => f.write_str("a checkpoint in the mirror covers another record here: the chain was rewritten"),
            Self::Cut { kept } => write!(f, "a checkpoint in the mirror covers the records up to {kept}: the end was cut off"),
            Self::Unsigned => f.write_str("more records than the settings of the log allow have no signed checkpoint: checkpoints were removed"),
            Self::Unreadable(cause) => write!(f, "the file cannot be read: {cause}"),
        }
    }
}

impl fmt::Display for ChainReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "chain {}: ", self.chain)?;
        match &self.first_fault {
            None if self.missing_evidence.is_empty() => {
                write!(f, "intact, {}", count_of(self.records, "record"))?
            }
            None => write!(f, "CANNOT TELL, {}", count_of(self.records, "record"))?,
            Some(bad) => {
                write!(
                    f,
                    "BAD at record {} ({} line {}): {}; ",
                    bad.seq,
                    bad.file.display(),
                    bad.line,
                    bad.fault
                )?;
                write!(f, "good before it: {}", count_of(self.records, "record"))?;
            }
        }
        if self.live {
            write!(
                f,
                ", in use, {} in flight",
                count_of(self.open_calls.len() as u64, "call")
            )?;
        } else if let Some(first) = self.open_calls.first() {
            write!(
                f,
                ", {} without an outcome (first: {} at record {})",
                count_of(self.open_calls.len() as u64, "call"),
                first.call,
                first.seq
            )?;
        }
        if self.unknown_calls > 0 {
            write!(
                f,
                ", {} closed as unknown",
                count_of(self.unknown_calls, "call")
            )?;
        }
        if self.torn_bytes > 0 {
            write!(f, ", {} bytes set aside after crashes", self.torn_bytes)?;
        }
        if self.last_retired_segment > 0 {
            write!(f, ", segments up to {} retired", self.last_retired_segment)?;
        }
        write!(f, ", signed up to record {}", self.signed)?;
        if self.unsigned > 0 {
            write!(
                f,
                ", {} after the last checkpoint unsigned",
                count_of(self.unsigned, "record")
            )?;
        }
        if let Some(kept) = self.mirrored {
            write!(f, ", up to record {kept} also in a checkpoint mirror")?;
        }
        if let Some(head) = &self.head {
            write!(f, ", head {head}")?;
        }
        self.missing_evidence
            .iter()
            .try_for_each(|doubt| write!(f, "; {doubt}"))
    }
}

impl fmt::Display for AuditReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chain in &self.chains {
            writeln!(f, "{chain}")?;
        }
        let chains = self.chains.len();
        if self.mac_key_exchanged == Some(true) {
            writeln!(f, "mac.key was replaced: the records name another key")?;
        }
        if self.foreign_lines > 0 {
            let lines = count_of(self.foreign_lines, "line");
            let (are, they) = match self.foreign_lines {
                1 => ("is", "it was changed, or belongs"),
                _ => ("are", "they were changed, or belong"),
            };
            writeln!(
                f,
                "{lines} in the checkpoint mirror {are} not signed with the key of this log: {they} to another log"
            )?;
        }
        let bad = self
            .chains
            .iter()
            .filter(|chain| chain.first_fault.is_some());
        match self.verdict() {
            AuditVerdict::Broken => write!(
                f,
                "NOT INTACT: {} of {}",
                bad.count(),
                count_of(chains as u64, "chain")
            ),
            AuditVerdict::CannotTell if chains == 0 => {
                f.write_str("CANNOT TELL: there are no chains to verify")
            }
            AuditVerdict::CannotTell => {
                let unclear = self
                    .chains
                    .iter()
                    .filter(|c| !c.missing_evidence.is_empty())
                    .count();
                write!(
                    f,
                    "CANNOT TELL: {unclear} of {}",
                    count_of(chains as u64, "chain")
                )
            }
            AuditVerdict::Intact => self.write_signed_range(f),
        }
    }
}

impl AuditReport {
    /// Writes what "intact" covers: the signed part of each chain.
    fn write_signed_range(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.chains.as_slice() {
            [one] => write!(f, "intact: signed up to record {}", one.signed)?,
            all => {
                write!(f, "intact: {} chains, signed up to record", all.len())?;
                for (at, chain) in all.iter().enumerate() {
                    let comma = if at > 0 { "," } else { "" };
                    write!(f, "{comma} {}", chain.signed)?;
                }
            }
        }
        f.write_str("; later records can be changed or cut off without detection")?;
        if self.has_mirror {
            return Ok(());
        }
        f.write_str("; without a checkpoint mirror, removal of the end of a chain, or of a whole chain, is not detected either")
    }
}
