//! How a journal is opened.

use crate::disk::{Disk, Files};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// No record is longer than this many bytes, whatever the options say: the readers rely on it.
pub const LARGEST_RECORD: usize = 1024 * 1024;

/// One write to the disk has at most about this many bytes, so a torn tail cannot be much longer.
pub(crate) const LARGEST_WRITE: usize = 1024 * 1024;

/// How to open a journal; [`Options::new`] has defaults that suit a gateway.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The folder of all chains. Created with mode 0700 if it does not exist.
    pub dir: PathBuf,
    /// Name and version of the program, for the `genesis` and `recovered` records.
    pub product: String,
    /// Digest of the configuration in force, for the same records.
    pub config_hash: String,
    /// Further fields of the `genesis` and `recovered` records (host, digest of the binary).
    pub about: Map<String, Value>,
    /// How many entries may wait for the disk; one more is [`Error::Overloaded`](crate::Error::Overloaded).
    pub queue: usize,
    /// How many bytes of entries may wait for the disk; more is `Overloaded` as well.
    pub queue_bytes: usize,
    /// How many records share one sync at most.
    pub batch: usize,
    /// How long records are gathered at most while more keep coming. An idle queue is never waited for.
    pub wait: Duration,
    /// Longest record in bytes; clamped to 1 KiB ..= [`LARGEST_RECORD`].
    pub record_limit: usize,
    /// A segment of at least this many bytes is sealed and the next one begun; clamped to 4 KiB ..= 1 GiB.
    pub segment_bytes: u64,
    /// A segment that is older is sealed at the next record.
    pub segment_age: Duration,
    /// A signed checkpoint follows at the latest after this many records.
    pub checkpoint_records: u64,
    /// A signed checkpoint follows at the latest after this time, where something was written.
    pub checkpoint_every: Duration,
    /// The second place of the checkpoints: a file, or a folder with a file for each chain.
    pub checkpoints: Option<PathBuf>,
    /// Sealed segments older than this are retired, at a start and when a segment is sealed; `None` keeps them.
    pub keep_age: Option<Duration>,
    /// The oldest sealed segments of the chain are retired while it has more bytes; `None` keeps them.
    pub keep_bytes: Option<u64>,
    /// Nothing is retired, as while there is a file `hold` in the folder.
    pub hold: bool,
    /// How long after a failure, and between tries, it is tried to go on.
    pub retry: Duration,
    /// Where segments are written; another one is for tests that make the disk fail.
    pub disk: Arc<dyn Disk>,
}

impl Options {
    /// Defaults: queue 8192 entries or 64 MiB, batch 256, wait 2 ms, records of 64 KiB, segments
    /// of 64 MiB or 24 hours, a checkpoint each 1,000 records or 5 seconds and in no second place, nothing retired, a try
    /// to go on each second, real files.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            product: concat!("toolgate-journal ", env!("CARGO_PKG_VERSION")).to_owned(),
            config_hash: String::new(),
            about: Map::new(),
            queue: 8192,
            queue_bytes: 64 * 1024 * 1024,
            batch: 256,
            wait: Duration::from_millis(2),
            record_limit: 64 * 1024,
            segment_bytes: 64 * 1024 * 1024,
            segment_age: Duration::from_secs(24 * 60 * 60),
            checkpoint_records: 1000,
            checkpoint_every: Duration::from_secs(5),
            checkpoints: None,
            keep_age: None,
            keep_bytes: None,
            hold: false,
            retry: Duration::from_secs(1),
            disk: Arc::new(Files),
        }
    }
}
