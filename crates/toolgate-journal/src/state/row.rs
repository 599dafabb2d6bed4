//! Entries of a state table, and conditional writes to them.

use serde_json::Value;

/// Entry of a state table: key, JSON value and version.
#[derive(Clone, Debug, PartialEq)]
pub struct StateRow {
    /// Key of the entry in its table.
    pub key: String,
    /// JSON value of the entry.
    pub value: Value,
    /// Version of the entry: number of the change that wrote it, which grows with each change in the directory.
    pub version: u64,
}

/// Changes of a state table since an earlier question.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ChangedKeys {
    /// Number of changes that this process knows. The next question asks from here.
    pub count: u64,
    /// Keys whose entries changed or were removed, the newest change first. A key occurs once for each of its changes.
    /// `None` if the changes are no longer known, so that the table has to be read as a whole.
    pub keys: Option<Vec<String>>,
}

/// Precondition of a write to a state table (compare-and-set).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WritePrecondition {
    /// No precondition: the write always happens.
    Any,
    /// The key must not exist.
    Absent,
    /// The key must exist with this version.
    Version(u64),
}

/// Outcome of a conditional write to a state table.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WriteOutcome {
    /// The change is on disk; with the new version of the entry.
    Done(u64),
    /// The precondition failed, and nothing was written.
    Conflict,
}
