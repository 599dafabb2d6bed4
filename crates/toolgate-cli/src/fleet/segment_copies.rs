//! Copies of the audit log's segments in the shared store, so that the log survives the loss of the gateway's disk.
//!
//! A thread of its own reads new records from the files and adds them to the copy, in pieces of whole lines. Calls never
//! wait for it. The copy itself says where the next piece begins, so it continues after an outage or a restart. Each
//! record has to continue the hash chain of the copy. A log that was cut or rewritten does not, so it is never copied.

use super::copy_step::{CopyStep, next_step};
use crate::{
    config::{AuditCopySettings, Config},
    event_log::{self, GatewayEvent},
    runtime::store_location::StoreLocation,
};
use std::{
    collections::{BTreeMap, HashMap},
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, sync_channel},
    },
    thread,
    time::Duration,
};
use tokio::sync::oneshot;
use toolgate_journal::read::{SegmentFile, segment_files};
use toolgate_store::{
    StoreError,
    postgres::{AuditCopies, AuditPiece, CopiedChain, PostgresAddress},
};
use toolgate_telemetry::{
    MetricRegistry, MetricSource, SampleList,
    definition::{AUDIT_COPIES_BEHIND, AUDIT_COPIES_DIVERGED},
};

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
