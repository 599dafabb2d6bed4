//! The past as the console shows it: queries of the index of the audit log, off the threads that serve calls.

use crate::audit_index::AuditIndex;
use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::Semaphore;

/// Time that a query spends on reading new records. If more are left, the answer says so, and the page asks again.
const CATCH_UP_TIME: Duration = Duration::from_millis(400);
/// Time during which an index that has everything counts as up to date.
const FRESH_TIME: Duration = Duration::from_secs(1);

/// The index of the audit log in a running gateway.
pub(crate) struct AuditHistory {
    data: PathBuf,
    state: Arc<Mutex<HistoryState>>,
    /// One query at a time, so that many pages cannot occupy all threads for blocking work.
    turn: Semaphore,
}

#[derive(Default)]
struct HistoryState {
    index: Option<AuditIndex>,
    /// Time at which the index had everything.
    complete_at: Option<Instant>,
}

/// Answer of a query.
pub(crate) struct HistoryAnswer<T> {
    pub(crate) value: T,
    /// Bytes of the audit log that are not in the index yet.
    pub(crate) behind: u64,
}

impl AuditHistory {
    pub(crate) fn new(data: &Path) -> AuditHistory {
        AuditHistory {
            data: data.to_owned(),
            state: Arc::default(),
            turn: Semaphore::new(1),
        }
    }

    /// Returns the directory of the audit log.
    pub(crate) fn audit_dir(&self) -> PathBuf {
        self.data.join("audit")
    }

    /// Runs a query on the index, after it has read new records for a while.
    ///
    /// # Errors
    /// The index or the audit log cannot be read.
    pub(crate) async fn query<T: Send + 'static>(
        &self,
        query: impl FnOnce(&mut AuditIndex) -> io::Result<T> + Send + 'static,
    ) -> Result<HistoryAnswer<T>, String> {
        let _turn = self.turn.acquire().await.map_err(|e| e.to_string())?;
        let (data, audit, state) = (self.data.clone(), self.audit_dir(), self.state.clone());
        let work = tokio::task::spawn_blocking(move || {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            state.run(&data, &audit, query)
        });
        let done = work.await.map_err(|e| e.to_string())?;
        done.map_err(|e| {
            format!("the index of the audit log cannot be used: {e}; delete audit-index.sqlite in the data directory, or use `toolgate audit search --no-index`")
        })
    }

    /// Runs blocking work that reads the audit log itself, one at a time with queries.
    ///
    /// # Errors
    /// The work panicked.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Path) -> T + Send + 'static,
    ) -> Result<T, String> {
        let _turn = self.turn.acquire().await.map_err(|e| e.to_string())?;
        let dir = self.audit_dir();
        let work = tokio::task::spawn_blocking(move || work(&dir));
        work.await.map_err(|e| e.to_string())
    }
}

impl HistoryState {
    fn run<T>(
        &mut self,
        data: &Path,
        audit: &Path,
        query: impl FnOnce(&mut AuditIndex) -> io::Result<T>,
    ) -> io::Result<HistoryAnswer<T>> {
        if self.index.is_none() {
            self.index = AuditIndex::open(data);
            self.complete_at = None;
        }
        let index = self
            .index
            .as_mut()
            .ok_or_else(|| io::Error::other("it cannot be opened"))?;
        let fresh = self.complete_at.is_some_and(|at| at.elapsed() < FRESH_TIME);
        let mut behind = 0;
        if !fresh {
            behind = index.catch_up(audit, Instant::now() + CATCH_UP_TIME)?;
            self.complete_at = (behind == 0).then(Instant::now);
        }
        let value = query(index);
        if value.is_err() {
            // The next query opens it again.
            self.index = None;
        }
        Ok(HistoryAnswer {
            value: value?,
            behind,
        })
    }
}
