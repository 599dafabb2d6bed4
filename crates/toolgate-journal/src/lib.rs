//! A durable audit journal: JSON lines in chained segments, one chain for each process.
//!
//! [`Journal::append`] resolves once the record is on the disk, so an answer that waits for it is never released
//! unrecorded. Many callers share one write and one sync. The crate knows nothing of any protocol.
//!
//! ```
//! use toolgate_journal::{Entry, Event, Journal, Options, verify};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = std::env::temp_dir().join(format!("toolgate-journal-doc-{}", std::process::id()));
//! let journal = Journal::open(Options::new(&dir))?;
//! let args = journal.mac(b"{\"path\":\"/etc/hosts\"}");
//! journal.note(Entry::new(Event::DENY).with("name", "files.read").with("args_mac", args))?;
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
//! DIR/checkpoint.key                         Ed25519 seed that signs checkpoints, the same form
//! DIR/CHAIN/lock                              locked (flock) by the process that writes the chain
//! DIR/CHAIN/seg-00000001.jsonl                the records
//! DIR/CHAIN/seg-00000001.torn-OFFSET-N        a torn end that recovery cut off at OFFSET
//! DIR/CHAIN.damaged                           what a start or a checkpoint found; ends with .acknowledged later
//! DIR/hold                                    while it is there, nothing is retired
//! DIR/CHAIN/failed                            a sync failed here once: nothing is appended any more
//! DIR/CHAIN/closed                            and the calls that were open here are closed in another chain
//! ```
//!
//! `CHAIN` is the time of its beginning in milliseconds, 12 hexadecimal digits, a dash and 16 random digits.
//! The last record of a segment that has a next one is its seal, and the first record of the next is a checkpoint. A
//! start reads from the last seal on, and from further back only where a call is open from there.
//!
//! # Record
//!
//! A record is one JSON object in the canonical form of RFC 8785 and a newline. Numbers are integers within 2^53; there is
//! neither a fraction nor `null`. A record is at most [`Options::record_limit`] bytes long: contents that do not fit, the
//! fields `args`, `res` and `text` first, are replaced by `"[omitted: N bytes]"`.
//!
//! | field | value |
//! | --- | --- |
//! | `v` | version of this format, 1 |
//! | `chain` | name of the chain |
//! | `seg` | number of the segment, from 1 |
//! | `seq` | number of the record in the chain, from 1 over all segments, without gaps |
//! | `prev` | `h` of the record before, over segments too; 64 zeros in the first |
//! | `h` | SHA-256 of `toolgate-journal-record-v1`, a newline, and the record without `h`; hexadecimal |
//! | `ts` | UTC, microseconds since 1970, when the record was written |
//! | `mono` | microseconds on the monotonic clock of the machine |
//! | `boot` | which boot of the machine `mono` counts from |
//! | `ev` | the event |
//! | others | fields of the event |
//!
//! The journal itself writes `genesis` (first of a chain) and `recovered` (a process continues a chain), both with
//! `product`, `config_hash`, `key_id` and `pid`; `recovered` also has `bytes` (torn and set aside) and `calls` (how many
//! it closes as unknown). `call.unknown` with `call` and `begin` (a `seq`) closes a `call.begin` without `call.end`.
//!
//! Both also state `batch_records`, `checkpoint_records`, `checkpoint_seconds`, `checkpoint_mirror` (if there is one) and
//! `mac_key` (its digest), and so does the first checkpoint of each segment. A `genesis` after a damaged chain has `after`,
//! `after_seq`, `after_head` and `cause`.
//!
//! After a failed sync, calls that are open in the chain that ended are closed in another one, with `begin_chain` beside
//! `begin`: in the chain that follows each of them has a `call.begin` once more, whose end comes there. Where the process
//! did not live to begin that chain, the next one to start writes `call.unknown`.
//!
//! | event | fields |
//! | --- | --- |
//! | `checkpoint` | `last` and `head`: number and hash of the record before; `count`: records so far; `at`: microseconds since 1970; `key`: public key; `sig`: Ed25519 over `toolgate-journal-checkpoint-v1`, the chain, `last`, `head`, `count`, `at`, each followed by a newline |
//! | `segment.sealed` | `first`, `last`, `count`, `bytes` and `sha256` of the segment before this record; `open_from`: the oldest segment in which a call began that is still open |
//! | `segment.retired` | `segment`, `first`, `count`, `bytes`, `sha256`, `last` (number of its seal) and `seal` (hash of its seal) of a segment that is removed once this record is on the disk |
//!
//! Checkpoints are also appended to [`Options::checkpoints`], the same lines.
//!
//! # Guarantees
//!
//! - What [`Journal::append`] answered `Ok` for was written and synced before. SIGKILL loses nothing of it; a power cut
//!   does not either, as far as the disk keeps what it reports as synced.
//! - After a failed write or sync all waiters get [`Error::Failed`], and so does everybody later, until it was possible to
//!   go on: after a full disk in a new segment, after another failure in a new chain. A chain whose sync failed is never
//!   continued, since the system may have dropped what it did not write.
//!   Records of a failed batch may be in the file all the same.
//! - A full queue refuses at once and drops nothing.
//! - A changed, removed, added or moved record is found by [`verify::verify`]. If everything after it was recomputed, the
//!   next checkpoint shows it.
//!
//! # What it does not prove
//!
//! - Records cut off at the *end* of a chain, or a chain removed as a whole, show only by checkpoints in a second place,
//!   and only as far as the last of them reaches.
//! - Whoever has `checkpoint.key` can write the chain anew; then, too, the second place is what is left.
//! - A record says what the program saw; traffic that went around it is not there.
//!
//! The journal is tamper-evident, not tamper-proof.

mod canon;
mod chain;
mod contents;
mod disk;
mod entry;
mod error;
mod in_place;
mod journal;
mod key;
mod left;
mod marks;
mod notice;
mod options;
mod place;
pub mod read;
mod record;
mod recover;
mod repair;
mod retire;
mod rotate;
mod sign;
pub mod state;
mod terms;
pub mod verify;
mod writer;

pub use disk::{Disk, FileState, Files, Segment};
pub use entry::{Entry, Event};
pub use error::Error;
pub use journal::{Health, Journal, Receipt};
pub use notice::{Notice, acknowledge, notices};
pub use options::{LARGEST_RECORD, Options};
pub use sign::public_key;
