//! What is kept of tasks, so that they outlive the process.
//!
//! Three tables: what is known of each task, which is short; the answers, which may be long and are read when somebody
//! asks for them; and, sealed, how a call is taken up with which somebody else goes on. While a task runs, its process stands beside it; where that one is gone, so is the work.

use super::{
    TaskLimits,
    entry::{Answer, Entry, now},
};
use serde_json::{Value, json};
use std::sync::Arc;
use toolgate_core::{Caller, Error};
use toolgate_policy::{Expect, Store, Written};
use toolgate_wire::{
    json::{Json, Limits},
    message::RpcError,
    method::tasks::{Status, Words},
};

const TASKS: &str = "tasks";
const ANSWERS: &str = "answers";
const AGAIN: &str = "again";

/// The tasks that outlive their process.
pub(crate) struct Kept {
    store: Arc<dyn Store>,
    /// Names this process among those that share the store.
    process: String,
}

/// What is kept of one task besides its answer.
#[derive(Clone)]
pub(super) struct Row {
    pub(super) caller: String,
    /// Which of those it is that have the name one after the other.
    pub(super) holder: Option<u64>,
    pub(super) words: Words,
    pub(super) call: String,
    pub(super) tool: String,
    /// Milliseconds since 1970.
    pub(super) created: u64,
    pub(super) updated: u64,
    /// Milliseconds.
    pub(super) life: u64,
    pub(super) status: Status,
    pub(super) message: Option<String>,
    /// Bytes of the answer.
    pub(super) size: usize,
}

/// A task of a process that is gone, with which somebody else goes on.
pub(super) struct Left {
    pub(super) row: Row,
    /// That of the row.
    pub(super) version: u64,
    pub(super) sealed: String,
}

impl Kept {
    pub(super) fn new(store: Arc<dyn Store>, process: &str) -> Kept {
        let process = process.to_owned();
        Kept { store, process }
    }

    /// Writes a task, and its answer before it; resolves once both will outlive the process. It happens even if the
    /// future is dropped.
    pub(super) fn write(
        &self,
        id: &str,
        row: Row,
        answer: Option<&Answer>,
        expect: Expect,
    ) -> impl Future<Output = Result<(), Error>> + use<> {
        let put = |table, value, expect| self.store.write(table, id, Some(value), expect);
        let answer = answer.map(|answer| put(ANSWERS, written(answer), Expect::Any));
        let task = put(TASKS, row.json(&self.process), expect);
        if row.status.is_over() {
            drop(self.store.write(AGAIN, id, None, Expect::Any));
        }
        async move {
            if let Some(answer) = answer {
                answer.await?;
            }
            task.await.map(drop)
        }
    }

    /// Writes how the call of a task is taken up.
    pub(super) fn write_again(
        &self,
        id: &str,
        sealed: &str,
    ) -> impl Future<Output = Result<(), Error>> + use<> {
        let sealed = Some(json!({ "sealed": sealed }));
        let written = self.store.write(AGAIN, id, sealed, Expect::Any);
        async move { written.await.map(drop) }
    }

    /// Makes a task of a process that is gone ours, unless another process was faster.
    pub(super) fn claim(
        &self,
        id: &str,
        row: &Row,
        version: u64,
    ) -> impl Future<Output = Result<bool, Error>> + use<> {
        let ours = Some(row.json(&self.process));
        let written = self.store.write(TASKS, id, ours, Expect::Version(version));
        async move { Ok(matches!(written.await?, Written::Done(_))) }
    }

    /// The answer of a task.
    pub(super) fn answer(&self, id: &str) -> Option<Answer> {
        let row = self.store.row(ANSWERS, id)?;
        read(&row.value)
    }

    /// Removes a task.
    pub(super) fn forget(&self, id: &str) {
        for table in [TASKS, ANSWERS, AGAIN] {
            drop(self.store.write(table, id, None, Expect::Any));
        }
    }

    /// The tasks of processes that are gone, the newest first: they are ours now. What ran there has ended, but for those
    /// with which somebody else goes on: they are to be claimed.
    pub(super) fn left(
        self: &Arc<Kept>,
        limits: &TaskLimits,
        is_gone: impl Fn(&str) -> bool,
    ) -> Vec<Arc<Entry>> {
        let mut left = Vec::new();
        for kept in self.store.entries(TASKS) {
            let process = kept.value["process"].as_str().unwrap_or_default();
            if !is_gone(process) {
                continue;
            }
            let Some(row) = Row::read(&kept.value) else {
                self.forget(&kept.key);
                continue;
            };
            let again = self.store.row(AGAIN, &kept.key);
            let again = again.and_then(|row| Some(row.value["sealed"].as_str()?.to_owned()));
            if let Some(sealed) = again.filter(|_| !row.status.is_over()) {
                let goes_on = Left {
                    row: row.clone(),
                    version: kept.version,
                    sealed,
                };
                let task = Entry::restored(kept.key, row, limits, self.clone());
                left.push(Arc::new(task.going_on(goes_on)));
                continue;
            }
            // From here on it is told from those of other processes.
            let ours = row.json(&self.process);
            drop(self.store.write(TASKS, &kept.key, Some(ours), Expect::Any));
            let task = Entry::restored(kept.key, row, limits, self.clone());
            task.interrupt();
            left.push(Arc::new(task));
        }
        // What a kill left between two writes.
        for table in [ANSWERS, AGAIN] {
            for (id, _) in self.store.versions(table) {
                if self.store.row(TASKS, &id).is_none() {
                    drop(self.store.write(table, &id, None, Expect::Any));
                }
            }
        }
        left.sort_by_key(|task| std::cmp::Reverse(task.created));
        left
    }
}

impl Row {
    /// Who began it.
    pub(super) fn owner(&self) -> Caller {
        let owner = Caller::new(self.caller.as_str());
        match self.holder {
            Some(holder) => owner.held_by(holder),
            None => owner,
        }
    }

    fn json(&self, process: &str) -> Value {
        json!({
            "process": process, "caller": self.caller, "holder": self.holder, "words": word(self.words), "call": self.call, "tool": self.tool,
            "created": self.created, "updated": self.updated, "life": self.life, "status": self.status.word(),
            "message": self.message, "size": self.size,
        })
    }

    fn read(value: &Value) -> Option<Row> {
        let text = |key: &str| Some(value.get(key)?.as_str()?.to_owned());
        let number = |key: &str| value.get(key)?.as_u64();
        Some(Row {
            caller: text("caller")?,
            // Absent in what older versions kept.
            holder: number("holder"),
            words: [Words::Core, Words::Extension]
                .into_iter()
                .find(|words| text("words").as_deref() == Some(word(*words)))?,
            call: text("call")?,
            tool: text("tool")?,
            // A clock that was set back must not make it live longer.
            created: number("created")?.min(now()),
            updated: number("updated")?,
            life: number("life")?,
            status: Status::read(&text("status")?)?,
            message: text("message"),
            size: usize::try_from(number("size")?).ok()?,
        })
    }
}

fn word(words: Words) -> &'static str {
    match words {
        Words::None => "",
        Words::Core => "2025-11-25",
        Words::Extension => "2026-07-28",
    }
}

/// As text: what was judged is what comes back, to the byte.
fn written(answer: &Answer) -> Value {
    match answer {
        Ok(result) => json!({"result": result.as_str()}),
        Err(error) => json!({"error": error.json().as_str()}),
    }
}

fn read(value: &Value) -> Option<Answer> {
    // It came through the limits of the day on which it was written.
    let limits = Limits {
        bytes: usize::MAX,
        depth: Limits::DEEPEST,
        keys: usize::MAX,
        elements: usize::MAX,
    };
    let json = |key: &str| {
        let text = value.get(key)?.as_str()?;
        Json::read(text.as_bytes().to_vec(), &limits).ok()
    };
    match json("result") {
        Some(result) => Some(Ok(result)),
        // Whatever it was, it says nothing of the connection on which it is asked for now.
        None => Some(Err(RpcError::read(&json("error")?)?.relayed())),
    }
}
