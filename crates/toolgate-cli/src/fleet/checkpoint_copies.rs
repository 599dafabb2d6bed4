//! Copies of the signed checkpoints of all audit logs in the shared store. A log that lost records or is gone contradicts
//! the copy, also if its checkpoint mirror is gone with it.

use crate::{
    event_log::{self, GatewayEvent},
    timestamp::millis,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use toolgate_journal::{mirror_file, mirror_files};
use toolgate_policy::{StateRow, StateStore, WritePrecondition};

/// Table of the copies: one row for each chain, by its id.
const CHECKPOINTS_TABLE: &str = "audit_checkpoints";
/// Interval between two looks at the checkpoint mirror.
const COPY_INTERVAL: Duration = Duration::from_secs(5);
/// Number of bytes at the end of a mirror file that are read. A checkpoint has less than 1 KiB.
const TAIL_BYTES: u64 = 64 * 1024;

/// Copies the checkpoints of this gateway's audit log into the store.
pub(crate) struct CheckpointCopies {
    store: Arc<dyn StateStore>,
    /// Checkpoint mirror of the audit log: a file, or a directory of files.
    mirror: PathBuf,
    /// Name of the gateway for people: its address for other gateways, or its tag.
    gateway: String,
}

/// Last checkpoint of a chain, as a gateway copied it.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub(crate) struct CopiedCheckpoint {
    /// ID of the chain.
    pub(crate) chain: String,
    /// Public key that signed the checkpoint, as hexadecimal digits.
    pub(crate) key: String,
    /// Sequence number of the last record that the checkpoint covers.
    pub(crate) last: u64,
    /// The checkpoint as the mirror has it, one line.
    pub(crate) line: String,
    /// Gateway that wrote the chain.
    pub(crate) gateway: String,
    /// Time of the copy in Unix milliseconds.
    pub(crate) at: u64,
}

/// For each chain of which the store has a copy: whether the mirror had that checkpoint at the first look.
type ContinuedChains = HashMap<String, bool>;

impl CheckpointCopies {
    pub(crate) fn new(store: Arc<dyn StateStore>, mirror: PathBuf, gateway: String) -> Self {
        CheckpointCopies {
            store,
            mirror,
            gateway,
        }
    }

    /// Copies the last checkpoint of each chain whenever its mirror file grows. Never returns.
    pub(crate) async fn follow(&self) {
        let (mut lengths, mut continued) = (HashMap::new(), ContinuedChains::new());
        loop {
            let mirror = self.mirror.clone();
            let read = tokio::task::spawn_blocking(move || {
                let lines = read_grown(&mirror, &mut lengths);
                (lines, lengths)
            });
            let Ok((lines, known)) = read.await else {
                return;
            };
            lengths = known;
            // The journal itself reports a mirror that it cannot write.
            for checkpoint in self.last_of_each_chain(&lines.unwrap_or_default()) {
                if self.copy(checkpoint, &mut continued).await.is_err() {
                    // The store is away, and reports it. The next round reads all files again.
                    lengths.clear();
                }
            }
            tokio::time::sleep(COPY_INTERVAL).await;
        }
    }

    /// Returns whether the mirror still has the copied checkpoint. If not, the log was cut or replaced: the copy is the
    /// evidence of that, and stays. While the gateway runs, nothing else writes its chain, so the first look decides.
    async fn continues(&self, copied: &CopiedCheckpoint, continued: &mut ContinuedChains) -> bool {
        if let Some(known) = continued.get(&copied.chain) {
            return *known;
        }
        let file = mirror_file(&self.mirror, &copied.chain);
        let read = tokio::task::spawn_blocking(move || fs::read_to_string(file));
        let text = read.await.ok().and_then(Result::ok).unwrap_or_default();
        let is_there = text.lines().any(|line| line == copied.line);
        continued.insert(copied.chain.clone(), is_there);
        if !is_there {
            let text = format!(
                "the audit log lost records: the shared store has a checkpoint of {} records of the chain {}, and the checkpoint mirror no longer has it; restore both, and run: toolgate audit verify --fleet",
                copied.last, copied.chain
            );
            event_log::emit(GatewayEvent::Problem { text });
        }
        is_there
    }

    async fn copy(
        &self,
        checkpoint: CopiedCheckpoint,
        continued: &mut ContinuedChains,
    ) -> Result<(), ()> {
        let row = self.store.row(CHECKPOINTS_TABLE, &checkpoint.chain);
        if let Some(copied) = row.as_ref().and_then(read_row)
            && (!self.continues(&copied, continued).await || copied.last >= checkpoint.last)
        {
            return Ok(());
        }
        let expect = row.map_or(WritePrecondition::Absent, |row| {
            WritePrecondition::Version(row.version)
        });
        let (chain, value) = (checkpoint.chain.clone(), json!(checkpoint));
        let written = self
            .store
            .write(CHECKPOINTS_TABLE, &chain, Some(value), expect);
        written.await.map_err(drop)?;
        continued.insert(chain, true);
        Ok(())
    }

    /// Returns the newest checkpoint of each chain in the lines of mirror files. A broken line counts as none.
    fn last_of_each_chain(&self, lines: &[String]) -> Vec<CopiedCheckpoint> {
        let mut chains = HashMap::<String, CopiedCheckpoint>::new();
        for checkpoint in lines.iter().filter_map(|line| self.parse(line)) {
            let known = chains.get(&checkpoint.chain);
            if known.is_none_or(|known| known.last < checkpoint.last) {
                chains.insert(checkpoint.chain.clone(), checkpoint);
            }
        }
        chains.into_values().collect()
    }

    fn parse(&self, line: &str) -> Option<CopiedCheckpoint> {
        let value: Value = serde_json::from_str(line).ok()?;
        let text = |name: &str| Some(value.get(name)?.as_str()?.to_owned());
        Some(CopiedCheckpoint {
            chain: text("chain")?,
            key: text("key")?,
            last: value.get("last")?.as_u64()?,
            line: line.to_owned(),
            gateway: self.gateway.clone(),
            at: millis(self.store.clock().now()),
        })
    }
}

/// Returns the copied checkpoints of all gateways, by chain.
pub(crate) fn copied_checkpoints(store: &dyn StateStore) -> Vec<CopiedCheckpoint> {
    let mut rows = store.entries(CHECKPOINTS_TABLE);
    rows.sort_by(|a, b| a.key.cmp(&b.key));
    rows.iter().filter_map(read_row).collect()
}

fn read_row(row: &StateRow) -> Option<CopiedCheckpoint> {
    serde_json::from_value(row.value.clone()).ok()
}

/// Returns the last lines of the mirror files whose length changed, and remembers the lengths.
fn read_grown(mirror: &Path, lengths: &mut HashMap<PathBuf, u64>) -> io::Result<Vec<String>> {
    let mut lines = Vec::new();
    for path in mirror_files(mirror)? {
        let length = fs::metadata(&path)?.len();
        if lengths.insert(path.clone(), length) == Some(length) {
            continue;
        }
        let mut file = File::open(&path)?;
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        lines.extend(text.lines().map(str::to_owned));
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_policy::MemoryStateStore;

    fn copies(store: &Arc<MemoryStateStore>, mirror: &Path) -> CheckpointCopies {
        CheckpointCopies::new(store.clone(), mirror.to_owned(), "gate-1".to_owned())
    }

    fn line(last: u64) -> String {
        json!({"chain": "c1", "key": "ab", "last": last, "sig": "00"}).to_string()
    }

    fn last_copies(store: &MemoryStateStore) -> Vec<u64> {
        copied_checkpoints(store)
            .iter()
            .map(|copy| copy.last)
            .collect()
    }

    #[tokio::test]
    async fn a_copy_never_goes_back_and_outlives_a_log_that_was_cut() {
        let store = Arc::new(MemoryStateStore::new());
        let mirror = std::env::temp_dir().join(format!("toolgate-copies-{}", std::process::id()));
        fs::create_dir_all(&mirror).unwrap();
        let copies = copies(&store, &mirror);
        let mut first = ContinuedChains::new();
        for (last, kept) in [(10, 10), (20, 20), (15, 20), (20, 20), (21, 21)] {
            let copied = copies.copy(copies.parse(&line(last)).unwrap(), &mut first);
            copied.await.unwrap();
            assert_eq!(last_copies(&store), [kept]);
        }
        // After a restart the mirror has to have the copied checkpoint.
        let file = mirror.join("c1.jsonl");
        fs::write(&file, [line(10), line(21)].join("\n")).unwrap();
        let mut second = ContinuedChains::new();
        let copied = copies.copy(copies.parse(&line(30)).unwrap(), &mut second);
        copied.await.unwrap();
        assert_eq!(last_copies(&store), [30]);
        fs::write(&file, [line(10), line(40)].join("\n")).unwrap();
        let mut cut = ContinuedChains::new();
        for last in [40, 50] {
            let copied = copies.copy(copies.parse(&line(last)).unwrap(), &mut cut);
            copied.await.unwrap();
        }
        assert_eq!(last_copies(&store), [30]);
        fs::remove_dir_all(mirror).unwrap();
    }

    #[test]
    fn the_newest_line_of_each_chain_counts_and_a_broken_one_does_not() {
        let copies = copies(&Arc::default(), Path::new(""));
        let lines = [line(3), line(5), line(4), "{\"chain\":".to_owned()];
        let found = copies.last_of_each_chain(&lines);
        assert_eq!((found.len(), found[0].last), (1, 5));
    }
}
