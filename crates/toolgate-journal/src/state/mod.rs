//! Types of a state store (entries, versions, preconditions), and the clock by which entries expire.

mod clock;
mod row;

pub use clock::StateClock;
pub use row::{ChangedKeys, StateRow, WriteOutcome, WritePrecondition};
