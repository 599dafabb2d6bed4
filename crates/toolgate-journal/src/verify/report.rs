//! What was found, for programs and for people.

use std::fmt;
use std::path::PathBuf;

/// The findings about all chains of a folder.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// One for each chain, oldest first.
    pub chains: Vec<ChainReport>,
}

impl Report {
    /// Whether no chain has a bad record.
    pub fn is_intact(&self) -> bool {
        self.chains.iter().all(|chain| chain.bad.is_none())
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
    /// How many segments were read.
    pub segments: u64,
    /// How many records are good, up to the first bad one.
    pub records: u64,
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
            (all, 0) => write!(
                f,
                "intact: {all} chains; records cut off at an end, or whole chains removed, cannot be seen from here"
            ),
            (all, bad) => write!(f, "NOT INTACT: {bad} of {all} chains"),
        }
    }
}
