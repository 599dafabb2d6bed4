//! Options of a journal.

use crate::disk::{FileDisk, SegmentDisk};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Upper bound of the size of one audit record in bytes, whatever the options say. Readers rely on it.
pub const MAX_RECORD_BYTES: usize = 1024 * 1024;

/// Approximate maximum size of one write in bytes, which bounds the size of a torn write.
pub(crate) const MAX_WRITE_BYTES: usize = 1024 * 1024;

/// Options of an [`AuditJournal`](crate::AuditJournal): directory, limits, rotation, checkpoints and retention.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JournalOptions {
    /// Audit log directory, which contains all chains. Created with mode 0700 if it does not exist.
    pub dir: PathBuf,
    /// Name and version of the program, for the records of a start (`genesis`, `recovered`).
    pub product: String,
    /// Digest of the current configuration, for the records of a start (`genesis`, `recovered`).
    pub config_hash: String,
    /// Additional fields of the records of a start (`genesis`, `recovered`), for example host and digest of the binary.
    pub extra_fields: Map<String, Value>,
    /// Maximum number of entries that wait for the disk; one more is [`Error::Overloaded`](crate::Error::Overloaded).
    /// Default: 8192.
    pub max_queue_entries: usize,
    /// Maximum total size of the entries that wait for the disk, in bytes; more is `Overloaded` too. Default: 64 MiB.
    pub max_queue_bytes: usize,
    /// Maximum number of records that are written with one sync. Default: 256.
    pub max_batch_records: usize,
    /// Maximum time to gather a batch of records while more entries arrive. An idle queue causes no wait. Default: 2
    /// ms.
    pub max_batch_wait: Duration,
    /// Maximum size of one audit record in bytes, clamped to 1 KiB ..= [`MAX_RECORD_BYTES`]. Default: 64 KiB.
    pub max_record_bytes: usize,
    /// Size in bytes at which a segment is sealed, clamped to 4 KiB ..= 1 GiB. Default: 64 MiB.
    pub segment_bytes: u64,
    /// Age at which a segment is sealed, with the next record. Default: 24 hours.
    pub segment_age: Duration,
    /// Maximum number of records between two signed checkpoints. Default: 1,000.
    pub checkpoint_records: u64,
    /// Maximum time until a signed checkpoint covers a written record. Default: 5 seconds.
    pub checkpoint_interval: Duration,
    /// Checkpoint mirror: a file, or a directory with a file per chain, that gets a copy of each signed checkpoint.
    /// Default: none.
    pub checkpoint_mirror: Option<PathBuf>,
    /// Maximum age of sealed segments; older ones are retired at a start and at each rotation. `None` keeps all.
    pub retain_age: Option<Duration>,
    /// Maximum size of the chain in bytes; the oldest sealed segments above it are retired. `None` keeps all.
    pub retain_bytes: Option<u64>,
    /// Suspends retention, so that no segment is retired, like a file `hold` in the directory.
    pub suspend_retention: bool,
    /// Interval of attempts to repair the journal after a disk failure. Default: 1 second.
    pub repair_interval: Duration,
    /// Disk that holds the segments; tests use one that fails.
    pub disk: Arc<dyn SegmentDisk>,
    /// Observer of the writes, for metrics. Default: none.
    pub observer: Option<Arc<dyn JournalObserver>>,
}

/// Observer of the writes of an audit journal, for metrics. It must not block: the writer thread calls it.
pub trait JournalObserver: std::fmt::Debug + Send + Sync {
    /// Receives each write that is on disk: the number of its records, and the duration of the write and its sync.
    fn on_write(&self, records: u64, duration: Duration);
}

impl JournalOptions {
    /// Creates journal options for a directory, with the default of each field.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            product: concat!("toolgate-journal ", env!("CARGO_PKG_VERSION")).to_owned(),
            config_hash: String::new(),
            extra_fields: Map::new(),
            max_queue_entries: 8192,
            max_queue_bytes: 64 * 1024 * 1024,
            max_batch_records: 256,
            max_batch_wait: Duration::from_millis(2),
            max_record_bytes: 64 * 1024,
            segment_bytes: 64 * 1024 * 1024,
            segment_age: Duration::from_secs(24 * 60 * 60),
            checkpoint_records: 1000,
            checkpoint_interval: Duration::from_secs(5),
            checkpoint_mirror: None,
            retain_age: None,
            retain_bytes: None,
            suspend_retention: false,
            repair_interval: Duration::from_secs(1),
            disk: Arc::new(FileDisk),
            observer: None,
        }
    }
}
