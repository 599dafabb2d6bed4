//! Helpers of the tests: a temporary directory, and writes that are awaited.

use serde_json::Value;
use std::{
    fs,
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};
use toolgate_policy::{StateRow, StateStore, WriteOutcome, WritePrecondition};
use toolgate_store::{DatabaseStore, StoreLimits};

/// Far above what anything here takes.
pub(crate) const BOUND: Duration = Duration::from_secs(60);

pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new() -> Scratch {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("toolgate-store-{}-{number}", std::process::id());
        Scratch(std::env::temp_dir().join(name))
    }

    pub(crate) fn open(&self) -> DatabaseStore {
        DatabaseStore::open(&self.0, StoreLimits::default()).unwrap()
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.0.join("state.sqlite")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A test that never wrote has no directory.
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(work)
}

pub(crate) fn put(
    state: &dyn StateStore,
    key: &str,
    value: Option<Value>,
    expect: WritePrecondition,
) -> WriteOutcome {
    block_on(state.write("grants", key, value, expect)).unwrap()
}

pub(crate) fn done(written: WriteOutcome) -> u64 {
    match written {
        WriteOutcome::Done(version) => version,
        WriteOutcome::Conflict => panic!("a conflict"),
    }
}

pub(crate) fn values(state: &dyn StateStore) -> Vec<(String, Value)> {
    let rows = state.entries("grants").into_iter();
    rows.map(|StateRow { key, value, .. }| (key, value))
        .collect()
}

/// Waits until something is true, without a bound on time other than that of a hang.
pub(crate) fn wait_until(what: &str, is_true: impl Fn() -> bool) {
    let until = std::time::Instant::now() + BOUND;
    while !is_true() {
        assert!(
            std::time::Instant::now() < until,
            "it never happened: {what}"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}
