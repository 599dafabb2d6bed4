//! What was found, for programs and for people.

use std::fmt;
use std::path::{Path, PathBuf};

/// The findings about all chains of a folder.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// One for each chain, oldest first.
    pub chains: Vec<ChainReport>,
    /// Whether checkpoints of a second place were compared.
    pub second_place: bool,
    /// How many of their lines cannot be read, as a crash leaves them.
    pub unreadable: u64,
    /// How many of their lines are no checkpoints signed by the key.
    pub foreign: u64,
}

impl Report {
    /// Whether no chain has a bad record, and no foreign checkpoint is in the second place.
    pub fn is_intact(&self) -> bool {
        self.foreign == 0 && self.chains.iter().all(|chain| chain.bad.is_none())
    }
}

/// The findings about one chain.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ChainReport {
    /// Its name, which is the name of its folder.
    pub chain: String,
    /// Whether a process is writing it now. Calls may be in flight then, and the last line may be half written.
    pub live: bool,
    /// Number of the last segment that was read.
    pub segments: u64,
    /// Number of the last record before the first bad one; retired ones count, too.
    pub records: u64,
    /// Number of the first record that is there, where that is not the first of the chain.
    pub first: u64,
    /// The last segment that was retired; 0 if none was.
    pub retired: u64,
    /// How many checkpoints are signed as they should be.
    pub checkpoints: u64,
    /// Number of the last record that such a checkpoint covers.
    pub signed: u64,
    /// Number of the last record that a checkpoint in a second place covers and agrees with.
    pub kept: Option<u64>,
    /// The hash of the last good record. Whoever kept one from earlier can look for it.
    pub head: Option<String>,
    /// The first bad position. What follows it proves nothing and is not read.
    pub bad: Option<Bad>,
    /// Calls that began and neither ended nor were closed as unknown, by their beginning.
    pub open: Vec<OpenCall>,
    /// How many calls were closed as unknown after a crash.
    pub unknown: u64,
    /// How many bytes of torn lines earlier starts have set aside.
    pub set_aside: u64,
    /// Number of the last segment and the end of its good part, for whoever continues the chain.
    pub(crate) end: (u64, u64),
}

/// A call that began and did not end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenCall {
    /// The field `call`.
    pub call: String,
    /// Number of the `call.begin` record.
    pub seq: u64,
    /// Number of its segment.
    pub(crate) seg: u64,
}

/// A position where the chain breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bad {
    /// The segment.
    pub file: PathBuf,
    /// The line in it, from 1.
    pub line: u64,
    /// The number that the record at this place should have.
    pub seq: u64,
    /// What is wrong.
    pub what: Fault,
}

impl Bad {
    pub(super) fn of(file: &Path, line: u64, seq: u64, what: Fault) -> Self {
        let file = file.to_owned();
        Self {
            file,
            line,
            seq,
            what,
        }
    }
}

/// What is wrong with a record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The record is not what was hashed.
    Hash,
    /// The number is not the next one: records are missing, repeated or out of order.
    Gap {
        /// The number found.
        found: u64,
    },
    /// The record does not follow the one before it.
    Prev,
    /// The line is not a canonical record.
    Form(&'static str),
    /// The record belongs to another chain, segment or version, or a name that it needs is missing.
    Head(&'static str),
    /// The last write was cut short by a crash; the next start sets this aside.
    Torn {
        /// How many bytes.
        bytes: u64,
    },
    /// There is no record at all: they were removed, or a crash came before the first.
    Empty,
    /// A checkpoint is missing, not signed by the key, or signs something else.
    Signature(&'static str),
    /// The seal of a segment is missing or does not fit it.
    Seal(&'static str),
    /// The record is not the one that a checkpoint in a second place covers: the chain was written anew.
    Forked,
    /// A checkpoint in a second place covers more records than there are: the end was cut off.
    Cut {
        /// Number of the last record that it covers.
        kept: u64,
    },
    /// There are too many records that no checkpoint covers: the checkpoints were taken out.
    Unsigned,
    /// The file cannot be read.
    Unreadable(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hash => f.write_str("its hash does not fit its contents: the record was changed"),
            Self::Gap { found } => write!(
                f,
                "record {found} stands in its place: records were deleted, repeated or moved"
            ),
            Self::Prev => {
                f.write_str("it does not follow the record before it: that one was replaced")
            }
            Self::Form(flaw) => write!(f, "the line is not a canonical record: {flaw}"),
            Self::Head(flaw) => f.write_str(flaw),
            Self::Torn { bytes } => write!(
                f,
                "a write of {bytes} bytes was cut short; the next start sets it aside"
            ),
            Self::Empty => f.write_str(
                "the chain has no records: they were removed, or a crash came before the first",
            ),
            Self::Signature(flaw) => write!(f, "its checkpoint is wrong: {flaw}"),
            Self::Seal(flaw) => write!(f, "the seal of the segment is wrong: {flaw}"),
            Self::Forked => f.write_str("a checkpoint in the second place covers another record here: the chain was written anew"),
            Self::Cut { kept } => write!(f, "a checkpoint in the second place covers the records up to {kept}: the end was cut off"),
            Self::Unsigned => f.write_str("no checkpoint covers the records before it: they were taken out"),
            Self::Unreadable(cause) => write!(f, "the file cannot be read: {cause}"),
        }
    }
}

impl fmt::Display for ChainReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "chain {}: ", self.chain)?;
        match &self.bad {
            None => write!(f, "intact, {} records", self.records)?,
            Some(bad) => {
                write!(
                    f,
                    "BAD at record {} ({} line {}): {}; ",
                    bad.seq,
                    bad.file.display(),
                    bad.line,
                    bad.what
                )?;
                write!(f, "{} records before it are good", self.records)?;
            }
        }
        if self.live {
            write!(f, ", in use, {} calls in flight", self.open.len())?;
        } else if let Some(first) = self.open.first() {
            write!(
                f,
                ", {} calls without an outcome (first: {} at record {})",
                self.open.len(),
                first.call,
                first.seq
            )?;
        }
        if self.unknown > 0 {
            write!(f, ", {} calls closed as unknown", self.unknown)?;
        }
        if self.set_aside > 0 {
            write!(f, ", {} bytes set aside after crashes", self.set_aside)?;
        }
        if self.retired > 0 {
            write!(f, ", segments up to {} retired", self.retired)?;
        }
        write!(f, ", signed up to record {}", self.signed)?;
        if let Some(kept) = self.kept {
            write!(f, ", up to {kept} also by the second place")?;
        }
        match &self.head {
            Some(head) => write!(f, ", head {head}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chain in &self.chains {
            writeln!(f, "{chain}")?;
        }
        let bad = self
            .chains
            .iter()
            .filter(|chain| chain.bad.is_some())
            .count();
        match (self.chains.len(), bad) {
            (0, _) => f.write_str("no chains"),
            (_, 0) if self.foreign > 0 => write!(
                f,
                "NOT INTACT: {} lines of the second place are not signed by the key",
                self.foreign
            ),
            (all, 0) if self.second_place => write!(
                f,
                "intact: {all} chains, none cut off before the last checkpoint of the second place; what came after it cannot be seen from here"
            ),
            (all, 0) => write!(
                f,
                "intact: {all} chains; records cut off at an end, or whole chains removed, cannot be seen without checkpoints of a second place"
            ),
            (all, bad) => write!(f, "NOT INTACT: {bad} of {all} chains"),
        }
    }
}
