//! Durable, tamper-evident audit log: JSON lines in hash-chained segments, one chain per process.
//!
//! [`AuditJournal::append`] resolves once the record is on disk, so a response that waits for it is never released
//! unrecorded. Concurrent callers share one write and one sync (group commit). The crate is independent of any
//! protocol.
//!
//! ```
//! use toolgate_journal::{AuditEntry, AuditEvent, AuditJournal, JournalOptions, verify};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = std::env::temp_dir().join(format!("toolgate-journal-doc-{}", std::process::id()));
//! let journal = AuditJournal::open(JournalOptions::new(&dir))?;
//! let args = journal.keyed_digest(b"{\"path\":\"/etc/hosts\"}");
//! journal.enqueue(AuditEntry::new(AuditEvent::DENY).with("name", "files.read").with("args_mac", args))?;
//! journal.close();
//! assert!(verify::verify(&dir)?.is_intact());
//! # std::fs::remove_dir_all(&dir)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Files
//!
//! ```text
//! DIR/mac.key                                 key of the keyed digests, 64 hexadecimal digits, mode 0600
//! DIR/checkpoint.key                          Ed25519 seed that signs checkpoints, in the same form
//! DIR/CHAIN/lock                              locked (flock) by the process that writes the chain
//! DIR/CHAIN/seg-00000001.jsonl                audit records
//! DIR/CHAIN/seg-00000001.torn-OFFSET-N        torn write that recovery cut off at OFFSET
//! DIR/CHAIN.damaged                           damage found at a start or a checkpoint; renamed to .acknowledged later
//! DIR/hold                                    suspends retention while it exists
//! DIR/CHAIN/failed                            marks a failed sync: nothing is appended any more
//! DIR/CHAIN/closed                            marks that the open calls of the chain are closed in another one
//! ```
//!
//! `CHAIN` is the start time in milliseconds as 12 hexadecimal digits, a dash and 16 random digits. The last record of
//! a segment that has a successor is its seal. The first record of the successor is a checkpoint. A start reads from
//! the last seal on, and from further back only if a call is open from there.
//!
//! # Record
//!
//! A record is one JSON object in the canonical form of RFC 8785, followed by a newline. Numbers are integers within
//! 2^53; there are no fractions and no `null`. The size limit is [`JournalOptions::max_record_bytes`].
//! Values that do not fit, the fields `args`, `res` and `text` first, are replaced by `"[omitted: N bytes]"`.
//!
//! | field | value |
//! | --- | --- |
//! | `v` | version of this format, 1 |
//! | `chain` | id of the chain |
//! | `seg` | number of the segment, from 1 |
//! | `seq` | sequence number of the record in the chain, from 1 across all segments, without gaps |
//! | `prev` | `h` of the previous record, across segments too; 64 zeros in the first |
//! | `h` | SHA-256 of `toolgate-journal-record-v1`, a newline, and the record without `h`; hexadecimal |
//! | `ts` | write time in UTC, microseconds since the Unix epoch |
//! | `mono` | microseconds of the monotonic clock of the machine |
//! | `boot` | id of the boot that `mono` counts from |
//! | `ev` | event type |
//! | others | fields of the event |
//!
//! The journal itself writes `genesis` (first record of a chain) and `recovered` (a process continues a chain), both
//! with `product`, `config_hash`, `key_id` and `pid`. `recovered` also has `bytes` (size of the torn write) and `calls`
//! (number of calls that it closes as unknown). `call.unknown` with `call` and `begin` (a `seq`) closes a `call.begin`
//! without `call.end`.
//!
//! Both also state `batch_records`, `checkpoint_records`, `checkpoint_seconds`, `checkpoint_mirror` (if there is one)
//! and `mac_key` (its digest), and so does the first checkpoint of each segment. A `genesis` after a damaged chain has
//! `after`, `after_seq`, `after_head` and `cause`.
//!
//! After a failed sync, the open calls of the abandoned chain are closed in another chain, with `begin_chain` beside
//! `begin`. The chain that follows repeats the `call.begin` of each call and later records its end. If the process
//! stops before it starts that chain, the next process writes `call.unknown`.
//!
//! The other records of the journal are:
//!
//! - `checkpoint`, with `last` and `head` (sequence number and hash of the previous record), `count` (records so far),
//!   `at` (microseconds since the Unix epoch), `key` (public key) and `sig`. `sig` is an Ed25519 signature over
//!   `toolgate-journal-checkpoint-v1`, the chain, `last`, `head`, `count` and `at`, each followed by a newline.
//! - `segment.sealed`, with `first`, `last`, `count`, `bytes` and `sha256` of the segment before this record, and
//!   `open_from`, the oldest segment in which a call began that is still open.
//! - `segment.retired`, with `segment`, `first`, `count`, `bytes`, `sha256`, `last` (sequence number of its seal) and
//!   `seal` (hash of its seal) of a segment that is deleted once this record is on disk.
//!
//! Checkpoints are also appended to [`JournalOptions::checkpoint_mirror`] as identical lines.
//!
//! # Guarantees
//!
//! - A record that [`AuditJournal::append`] acknowledged with `Ok` was written and synced before. SIGKILL does not
//!   lose it, and neither does a power cut, if the disk preserves what it reports as synced.
//! - After a failed write or sync all waiters get [`Error::Failed`], and so do later callers until a repair succeeds:
//!   after a full disk in a new segment, after another failure in a new chain. A chain with a failed sync is never
//!   continued, since the system may have dropped unwritten data. Records of a failed batch may still be in the file.
//! - A full queue rejects entries at once and drops nothing.
//! - [`verify::verify`] detects every changed, removed, added or moved record. If an attacker recomputes all later
//!   hashes, the next checkpoint reveals it.
//!
//! # Limits of the proof
//!
//! - Records cut off at the *end* of a chain, or a removed chain, are detected only by a checkpoint mirror, and only up
//!   to its last checkpoint.
//! - An attacker with `checkpoint.key` can rewrite the chain; then, too, only the checkpoint mirror reveals it.
//! - A record states what the program saw; traffic that bypassed the program is missing.
//!
//! The audit log is tamper-evident, not tamper-proof.
//!
//! # Features and platforms
//!
//! The feature `files`, on by default, has the journal. It needs the locks, modes and inodes of Unix; on other systems,
//! and without the feature, the crate has only the types of entries and rows, and the clock.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(all(feature = "files", unix)),
    allow(dead_code, reason = "parts that only the files use")
)]

#[cfg(all(feature = "files", unix))]
#[doc(hidden)]
#[path = "fuzz.rs"]
pub mod __fuzz;
#[cfg(all(feature = "files", unix))]
mod abandoned;
#[cfg(all(feature = "files", unix))]
#[doc(hidden)]
pub mod boot;
#[cfg(all(feature = "files", unix))]
mod chain;
#[cfg(all(feature = "files", unix))]
mod checkpoints;
#[cfg(all(feature = "files", unix))]
mod commit;
#[cfg(all(feature = "files", unix))]
mod disk;
#[cfg(all(feature = "files", unix))]
mod displaced;
mod entry;
mod error;
mod failure;
#[cfg(all(feature = "files", unix))]
mod journal;
#[cfg(all(feature = "files", unix))]
mod key;
#[cfg(all(feature = "files", unix))]
mod mirror;
#[cfg(all(feature = "files", unix))]
mod notice;
#[cfg(all(feature = "files", unix))]
mod options;
#[cfg(all(feature = "files", unix))]
mod queue;
#[cfg(all(feature = "files", unix))]
pub mod read;
#[cfg(all(feature = "files", unix))]
mod receipt;
#[cfg(all(feature = "files", unix))]
mod record;
#[cfg(all(feature = "files", unix))]
mod recover;
#[cfg(all(feature = "files", unix))]
mod repair;
#[cfg(all(feature = "files", unix))]
mod retention;
#[cfg(all(feature = "files", unix))]
mod rotation;
#[cfg(all(feature = "files", unix))]
mod segment_contents;
#[cfg(all(feature = "files", unix))]
mod sign;
pub mod state;
#[cfg(all(feature = "files", unix))]
mod terms;
#[cfg(all(feature = "files", unix))]
pub mod verify;
#[cfg(all(feature = "files", unix))]
mod writer;

#[cfg(all(feature = "files", unix))]
pub use disk::{FileDisk, FileState, OpenSegment, SegmentDisk};
pub use entry::{AuditEntry, AuditEvent};
#[doc(hidden)]
pub use entry::{RejectedEntry, Urgency};
pub use error::Error;
#[cfg(all(feature = "files", unix))]
pub use journal::{AuditJournal, JournalHealth};
#[cfg(all(feature = "files", unix))]
#[doc(hidden)]
pub use mirror::{mirror_file, mirror_files};
#[cfg(all(feature = "files", unix))]
pub use notice::{DamageNotice, acknowledge, notices};
#[cfg(all(feature = "files", unix))]
pub use options::{JournalObserver, JournalOptions, MAX_RECORD_BYTES};
#[cfg(all(feature = "files", unix))]
pub use receipt::AuditReceipt;
#[cfg(all(feature = "files", unix))]
#[doc(hidden)]
pub use retention::has_hold_file;
#[cfg(all(feature = "files", unix))]
pub use sign::public_key;
