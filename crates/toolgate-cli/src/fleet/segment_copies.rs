//! Copies of the audit log's segments in the shared store, so that the log survives the loss of the gateway's disk.
//!
//! A thread of its own reads new records from the files and adds them to the copy, in pieces of whole lines. Calls never
//! wait for it. The copy itself says where the next piece begins, so it continues after an outage or a restart. Each
//! record has to continue the hash chain of the copy. A log that was cut or rewritten does not, so it is never copied.

use crate::{
    config::{AuditCopySettings, Config},
    event_log::{self, GatewayEvent},
    runtime::store_location::StoreLocation,
    timestamp::millis,
};
use std::{
    collections::{BTreeMap, HashMap},
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, sync_channel},
    },
    thread,
    time::{Duration, SystemTime},
};
use tokio::sync::oneshot;
use toolgate_journal::{
    read::{SegmentFile, segment_files},
    verify::RecordLink,
};
use toolgate_store::{
    StoreError,
    postgres::{AuditCopies, AuditPiece, CopiedChain, PostgresAddress},
};
use toolgate_telemetry::{
    MetricRegistry, MetricSource, SampleList,
    definition::{AUDIT_COPIES_BEHIND, AUDIT_COPIES_DIVERGED},
};

/// Maximum size of a piece. A record has at most 64 KiB.
const MAX_PIECE_BYTES: u64 = 256 * 1024;
/// Number of pieces of one chain before the other chains have their turn.
const PIECES_PER_TURN: usize = 16;
/// Maximum time of the last copy when the gateway stops.
const LAST_COPY_TIMEOUT: Duration = Duration::from_secs(3);

/// Copies the segments of a data directory's audit log into the shared store.
pub(crate) struct SegmentCopies {
    address: PostgresAddress,
    timeout: Duration,
    /// Audit log directory.
    dir: PathBuf,
    /// Name of the gateway for people.
    gateway: String,
    settings: AuditCopySettings,
    store: Option<CopyConnection>,
    /// Files that were copied completely: segment and size of the last one of each chain.
    settled: HashMap<String, (u64, u64)>,
    /// Ends of the copies as they were last known: segment and bytes of it, by chain.
    places: HashMap<String, (u64, u64)>,
    status: Arc<CopyStatus>,
    /// Reasons that were printed, by chain.
    reported: HashMap<String, String>,
    /// Error of the store that was printed.
    refusal: Option<String>,
}

/// State of the copies, for metrics.
#[derive(Default)]
struct CopyStatus {
    /// Number of bytes that are not copied yet.
    behind: AtomicU64,
    /// Number of chains that do not continue their copy.
    diverged: AtomicU64,
}

impl MetricSource for CopyStatus {
    fn collect(&self, samples: &mut SampleList) {
        let value = |number: &AtomicU64| number.load(Ordering::Relaxed) as f64;
        samples.plain(&AUDIT_COPIES_BEHIND, value(&self.behind));
        samples.plain(&AUDIT_COPIES_DIVERGED, value(&self.diverged));
    }
}

/// Connection to the store, with the ends of the copies as it read them.
struct CopyConnection {
    copies: AuditCopies,
    ends: HashMap<String, CopiedChain>,
}

/// Next step of the copy of a chain.
enum CopyStep {
    Append(CopiedChain, AuditPiece),
    Complete,
    /// The log does not continue the copy, for this reason.
    Diverged(String),
}

/// Thread that copies segments.
pub(crate) struct SegmentCopier {
    stop: oneshot::Sender<()>,
    ended: Receiver<()>,
}

impl SegmentCopier {
    /// Starts to copy if the config says so, and registers metrics of the copies.
    ///
    /// # Errors
    /// The thread cannot be started; the message says what to do.
    pub(crate) fn start(
        config: &Config,
        data: &Path,
        metrics: &MetricRegistry,
    ) -> Result<Option<SegmentCopier>, String> {
        let location = StoreLocation::of(config, data)?;
        let (Some(settings), Some(address)) = (config.audit.copies, location.shared()) else {
            return Ok(None);
        };
        let peers = config.store.peers.as_ref();
        let copies = SegmentCopies {
            address: address.clone(),
            timeout: Duration::from_millis(config.limits.store_timeout_milliseconds),
            dir: data.join("audit"),
            gateway: peers.map_or_else(|| default_name(data), |peers| peers.advertise.clone()),
            settings,
            store: None,
            settled: HashMap::new(),
            places: HashMap::new(),
            status: Arc::default(),
            reported: HashMap::new(),
            refusal: None,
        };
        metrics.register(copies.status.clone());
        let (stop, stopped) = oneshot::channel();
        let (end, ended) = sync_channel(1);
        let run = move || {
            copies.run(stopped);
            let _ = end.send(());
        };
        let thread = thread::Builder::new().name("audit-copies".to_owned());
        thread.spawn(run).map_err(|e| {
            format!("cannot start the thread that copies the audit log: {e}; raise the limit on processes of this user")
        })?;
        Ok(Some(SegmentCopier { stop, ended }))
    }

    /// Copies the last records, once the log is closed, and ends the thread. Waits a few seconds at most.
    pub(crate) fn finish(self) {
        let _ = self.stop.send(());
        if self.ended.recv_timeout(LAST_COPY_TIMEOUT) == Err(RecvTimeoutError::Timeout) {
            let text = "the last records of the audit log are not in the shared store; this gateway copies them when it starts again".to_owned();
            event_log::emit(GatewayEvent::Problem { text });
        }
    }
}

/// Returns the name of a gateway without an address for others: its machine and its data directory.
fn default_name(data: &Path) -> String {
    let machine = rustix::system::uname();
    let data = data.canonicalize().unwrap_or_else(|_| data.to_owned());
    format!(
        "{}:{}",
        machine.nodename().to_string_lossy(),
        data.display()
    )
}

impl SegmentCopies {
    fn run(mut self, stopped: oneshot::Receiver<()>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let Ok(runtime) = runtime else {
            return;
        };
        runtime.block_on(async {
            tokio::select! {
                () = self.follow() => {}
                _ = stopped => {}
            }
            // A request may have been cut off, so the connection is in an unknown state.
            self.store = None;
            let last = async { while matches!(self.round().await, Ok(true)) {} };
            let _ = tokio::time::timeout(LAST_COPY_TIMEOUT / 2, last).await;
        });
        // A name may still be looked up in a thread of the runtime.
        runtime.shutdown_background();
    }

    /// Copies new records at each interval. Never returns.
    async fn follow(&mut self) {
        loop {
            match self.round().await {
                Ok(true) => continue,
                Ok(false) => self.refusal = None,
                Err(error) => {
                    self.store = None;
                    self.report_refusal(&error);
                }
            }
            tokio::time::sleep(self.settings.interval).await;
        }
    }

    /// Prints an error that an operator has to correct, once. The store reports its outages itself.
    fn report_refusal(&mut self, error: &StoreError) {
        let why = error.detail();
        if !matches!(error, StoreError::Away(_)) && self.refusal.as_ref() != Some(&why) {
            let text =
                format!("cannot copy the audit log into the shared store: {why}; trying again");
            event_log::emit(GatewayEvent::Problem { text });
            self.refusal = Some(why);
        }
    }

    /// Copies new records of each chain. Returns whether there are more.
    async fn round(&mut self) -> Result<bool, StoreError> {
        // The journal itself reports a directory that it cannot read.
        let Ok(files) = segment_files(&self.dir) else {
            return Ok(false);
        };
        let mut chains = BTreeMap::<String, Vec<SegmentFile>>::new();
        for file in files {
            chains.entry(file.chain.clone()).or_default().push(file);
        }
        let behind = chains
            .iter()
            .map(|(chain, files)| self.bytes_behind(chain, files));
        self.status.behind.store(behind.sum(), Ordering::Relaxed);
        let mut more = false;
        // The newest first: a running gateway writes it.
        for (chain, files) in chains.iter().rev() {
            let last = files.last().map(|file| (file.number, file.bytes));
            if self.settled.get(chain).copied() != last {
                more |= self.copy_chain(chain, files).await?;
            }
        }
        Ok(more)
    }

    fn bytes_behind(&self, chain: &str, files: &[SegmentFile]) -> u64 {
        let (segment, copied) = self.places.get(chain).copied().unwrap_or_default();
        let behind = files.iter().map(|file| match file.number.cmp(&segment) {
            std::cmp::Ordering::Less => 0,
            std::cmp::Ordering::Equal => file.bytes.saturating_sub(copied),
            std::cmp::Ordering::Greater => file.bytes,
        });
        behind.sum()
    }

    /// Copies new records of a chain. Returns whether there are more.
    async fn copy_chain(&mut self, chain: &str, files: &[SegmentFile]) -> Result<bool, StoreError> {
        for _ in 0..PIECES_PER_TURN {
            let end = self.connection().await?.ends.get(chain).cloned();
            if let Some(end) = &end {
                let place = (end.segment, end.bytes);
                self.places.insert(chain.to_owned(), place);
            }
            match next_step(chain, end.as_ref(), files) {
                Ok(CopyStep::Append(mut after, piece)) => {
                    after.gateway.clone_from(&self.gateway);
                    let length = piece.bytes.len();
                    if !self.append(end.as_ref(), after, piece).await? {
                        return Ok(false);
                    }
                    self.pause(length).await;
                }
                Ok(CopyStep::Complete) => {
                    self.settle(chain, end.as_ref(), files).await?;
                    return Ok(false);
                }
                Ok(CopyStep::Diverged(why)) => {
                    self.report_divergence(chain, end.as_ref(), why).await?;
                    return Ok(false);
                }
                // Retention may have removed the file meanwhile. The next round finds out.
                Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
                Err(e) => {
                    let why = format!("its files cannot be read: {e}");
                    self.report_divergence(chain, end.as_ref(), why).await?;
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    async fn connection(&mut self) -> Result<&mut CopyConnection, StoreError> {
        let store = match self.store.take() {
            Some(store) => store,
            None => {
                let copies = AuditCopies::connect(&self.address, self.timeout).await?;
                let ends = read_ends(&copies).await?;
                self.settled.clear();
                CopyConnection { copies, ends }
            }
        };
        Ok(self.store.insert(store))
    }

    /// Adds a piece. Returns false if another process has added one.
    async fn append(
        &mut self,
        before: Option<&CopiedChain>,
        after: CopiedChain,
        piece: AuditPiece,
    ) -> Result<bool, StoreError> {
        if let Some(before) = before
            && before.first_segment != after.first_segment
        {
            let text = format!(
                "segments of the audit log were removed before they were copied: the copy of the chain {} in the shared store ends in segment {} and continues with segment {}",
                after.chain, before.segment, after.segment
            );
            event_log::emit(GatewayEvent::Problem { text });
        }
        let store = self.connection().await?;
        let is_added = store.copies.append(before, &after, &piece).await?;
        match is_added {
            true => drop(store.ends.insert(after.chain.clone(), after)),
            false => store.ends = read_ends(&store.copies).await?,
        }
        Ok(is_added)
    }

    /// Keeps the rate of the copy below its limit.
    async fn pause(&self, copied: usize) {
        let seconds = copied as f64 / self.settings.bytes_per_second as f64;
        tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    }

    /// Notes that a chain is copied completely.
    async fn settle(
        &mut self,
        chain: &str,
        end: Option<&CopiedChain>,
        files: &[SegmentFile],
    ) -> Result<(), StoreError> {
        self.reported.remove(chain);
        self.count_diverged();
        let gateway = self.gateway.clone();
        if let Some(end) = end
            && (end.problem.is_some() || end.gateway != gateway)
        {
            let store = self.connection().await?;
            store.copies.set_problem(chain, &gateway, None).await?;
            store.ends = read_ends(&store.copies).await?;
        }
        if let Some(last) = files.last() {
            self.settled
                .insert(chain.to_owned(), (last.number, last.bytes));
        }
        Ok(())
    }

    fn count_diverged(&self) {
        let diverged = self.reported.len() as u64;
        self.status.diverged.store(diverged, Ordering::Relaxed);
    }

    /// Prints and notes once that the log does not continue its copy.
    async fn report_divergence(
        &mut self,
        chain: &str,
        end: Option<&CopiedChain>,
        why: String,
    ) -> Result<(), StoreError> {
        if self.reported.get(chain) != Some(&why) {
            let text = format!(
                "the audit log does not continue its copy in the shared store: chain {chain}: {why}; the copy stays as it is, compare both: toolgate audit verify --fleet"
            );
            event_log::emit(GatewayEvent::Problem { text });
            self.reported.insert(chain.to_owned(), why.clone());
            self.count_diverged();
        }
        if end.is_some_and(|end| end.problem.as_ref() != Some(&why)) {
            let gateway = self.gateway.clone();
            let store = self.connection().await?;
            store
                .copies
                .set_problem(chain, &gateway, Some(&why))
                .await?;
            store.ends = read_ends(&store.copies).await?;
        }
        Ok(())
    }
}

async fn read_ends(copies: &AuditCopies) -> Result<HashMap<String, CopiedChain>, StoreError> {
    let chains = copies.chains().await?;
    let named = chains.into_iter().map(|end| (end.chain.clone(), end));
    Ok(named.collect())
}

/// Returns the next piece of a chain after the end of its copy.
fn next_step(
    chain: &str,
    end: Option<&CopiedChain>,
    files: &[SegmentFile],
) -> io::Result<CopyStep> {
    let Some(end) = end else {
        let Some(first) = files.first() else {
            return Ok(CopyStep::Complete);
        };
        return Reader::new(chain, first, None)?.step(files);
    };
    let of_end = files.iter().find(|file| file.number == end.segment);
    if let Some(file) = of_end {
        let reader = match Reader::after(file, end)? {
            Ok(reader) => reader,
            Err(why) => return Ok(CopyStep::Diverged(why)),
        };
        match reader.step(files)? {
            CopyStep::Complete => {}
            step => return Ok(step),
        }
    }
    let next = files.iter().find(|file| file.number > end.segment);
    match (of_end, next) {
        (Some(_), None) => Ok(CopyStep::Complete),
        (None, None) => Ok(CopyStep::Diverged(format!(
            "segment {} is gone, of which {} bytes are copied",
            end.segment, end.bytes
        ))),
        (Some(_), Some(next)) if next.number != end.segment + 1 => Ok(CopyStep::Diverged(format!(
            "segment {} is missing",
            end.segment + 1
        ))),
        (of_end, Some(next)) => {
            let mut reader = Reader::new(chain, next, Some(end))?;
            if of_end.is_none() && !reader.continues() {
                // Retention removed what was not copied yet. The record of it says so, and verification checks it.
                reader.begin_after_gap();
            }
            reader.step(files)
        }
    }
}

/// New lines of a segment.
struct Reader<'a> {
    chain: &'a str,
    file: &'a SegmentFile,
    /// End of the copy that the lines have to continue.
    end: Option<CopiedChain>,
    /// Offset of the lines.
    start: u64,
    lines: Vec<u8>,
    /// True if the file has more bytes than one piece.
    is_full: bool,
    opened: File,
}

impl<'a> Reader<'a> {
    /// Reads the first lines of a segment.
    fn new(
        chain: &'a str,
        file: &'a SegmentFile,
        end: Option<&CopiedChain>,
    ) -> io::Result<Reader<'a>> {
        let mut opened = File::open(&file.path)?;
        let mut lines = Vec::new();
        opened
            .by_ref()
            .take(MAX_PIECE_BYTES)
            .read_to_end(&mut lines)?;
        Ok(Reader {
            chain,
            file,
            end: end.cloned(),
            start: 0,
            is_full: lines.len() as u64 == MAX_PIECE_BYTES,
            lines,
            opened,
        })
    }

    /// Reads the lines after the last copied one, or returns why the file no longer has that line.
    fn after(
        file: &'a SegmentFile,
        end: &'a CopiedChain,
    ) -> io::Result<Result<Reader<'a>, String>> {
        let mut opened = File::open(&file.path)?;
        opened.seek(SeekFrom::Start(end.bytes.saturating_sub(end.line_bytes)))?;
        let mut last = Vec::new();
        opened
            .by_ref()
            .take(end.line_bytes)
            .read_to_end(&mut last)?;
        let hash = last.strip_suffix(b"\n").map(RecordLink::read);
        let is_same = matches!(&hash, Some(Ok(link)) if link.hash == end.head);
        if last.len() as u64 != end.line_bytes || !is_same {
            return Ok(Err(format!(
                "the record {} was removed or changed after it was copied (segment {}, byte {})",
                end.seq, end.segment, end.bytes
            )));
        }
        let mut lines = Vec::new();
        opened
            .by_ref()
            .take(MAX_PIECE_BYTES)
            .read_to_end(&mut lines)?;
        Ok(Ok(Reader {
            chain: &end.chain,
            file,
            end: Some(end.clone()),
            start: end.bytes,
            is_full: lines.len() as u64 == MAX_PIECE_BYTES,
            lines,
            opened,
        }))
    }

    /// Returns whether the first line continues the copy.
    fn continues(&self) -> bool {
        let line = self.lines.split(|byte| *byte == b'\n').next();
        let link = line.and_then(|line| RecordLink::read(line).ok());
        link.zip(self.end.as_ref())
            .is_some_and(|(link, end)| link.prev == end.head)
    }

    fn begin_after_gap(&mut self) {
        if let Some(end) = &mut self.end {
            end.first_segment = self.file.number;
            end.head.clear();
        }
    }

    /// Returns the piece of all complete lines, if they continue the chain.
    fn step(mut self, files: &[SegmentFile]) -> io::Result<CopyStep> {
        let whole = self.lines.iter().rposition(|byte| *byte == b'\n');
        self.lines.truncate(whole.map_or(0, |at| at + 1));
        if self.lines.is_empty() {
            return Ok(match self.is_full {
                true => CopyStep::Diverged(format!(
                    "segment {} has a line that is no record",
                    self.file.number
                )),
                false => CopyStep::Complete,
            });
        }
        let mut after = CopiedChain {
            chain: self.chain.to_owned(),
            gateway: String::new(),
            first_segment: self.file.number,
            segment: self.file.number,
            bytes: self.start,
            seq: 0,
            head: String::new(),
            line_bytes: 0,
            retired: 0,
            copied_at: millis(SystemTime::now()),
            problem: None,
        };
        if let Some(end) = self.end.take() {
            after.first_segment = end.first_segment;
            after.seq = end.seq;
            after.head = end.head;
            after.retired = end.retired;
        }
        let mut length = 0;
        for line in self.lines.split_inclusive(|byte| *byte == b'\n') {
            let link = RecordLink::read(line.strip_suffix(b"\n").unwrap_or(line));
            let why = match link {
                Ok(link) => match continue_with(&mut after, &link) {
                    Ok(()) => {
                        after.line_bytes = line.len() as u64;
                        length += line.len();
                        continue;
                    }
                    Err(why) => why,
                },
                Err(fault) => fault.to_string(),
            };
            if length > 0 {
                // What comes before is good.
                break;
            }
            // After a failed sync, the end of a chain may be torn. Nothing follows it.
            let is_last = files
                .last()
                .is_some_and(|last| last.number == self.file.number);
            let home = self.file.path.parent().unwrap_or(Path::new(""));
            return Ok(match is_last && home.join("failed").exists() {
                true => CopyStep::Complete,
                false => CopyStep::Diverged(format!(
                    "the record after {} (segment {}, byte {}) does not continue it: {why}",
                    after.seq, self.file.number, self.start
                )),
            });
        }
        self.lines.truncate(length);
        after.bytes += length as u64;
        // Only what survives a power cut is copied, so that the log never has less than its copy.
        self.opened.sync_data()?;
        let piece = AuditPiece {
            segment: self.file.number,
            start: self.start,
            bytes: self.lines,
        };
        Ok(CopyStep::Append(after, piece))
    }
}

/// Moves the end of a copy to the next record, or returns why the record is not the next one.
fn continue_with(end: &mut CopiedChain, link: &RecordLink) -> Result<(), String> {
    if link.chain != end.chain || link.segment != end.segment {
        return Err("it belongs to another segment".to_owned());
    }
    // The first copied record has no predecessor in the copy.
    let is_first = end.head.is_empty();
    if !is_first && (link.prev != end.head || link.seq != end.seq + 1) {
        return Err("it follows another record".to_owned());
    }
    end.seq = link.seq;
    end.head.clone_from(&link.hash);
    end.retired = end.retired.max(link.retires.unwrap_or(0));
    Ok(())
}

#[cfg(test)]
#[path = "segment_copies_tests.rs"]
mod tests;
