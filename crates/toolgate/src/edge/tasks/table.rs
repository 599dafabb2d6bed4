//! Task table of a server, with limits on count, bytes and lifetime.

use super::{TaskLimits, TaskView, entry::ServerTask, kept::TaskStore};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};
use toolgate_core::{Caller, CancelReason};
use toolgate_policy::StateStore;
use toolgate_wire::method::tasks::TaskForm;

/// All tasks of a server.
#[derive(Default)]
pub(crate) struct TaskTable {
    table: Mutex<HashMap<String, Arc<ServerTask>>>,
    kept: OnceLock<Arc<TaskStore>>,
}

/// Reason why a task cannot be added.
#[derive(Clone, Debug)]
pub(super) enum TaskAddError {
    Caller(usize),
    All(usize),
    /// The task cannot be stored, as required.
    Unkept(String),
}

impl TaskAddError {
    pub(super) fn words(self) -> String {
        match self {
            TaskAddError::Caller(most) => format!(
                "this caller has {most} tasks, which is the limit; wait for some of them to end, or cancel some"
            ),
            TaskAddError::All(most) => {
                format!("there are {most} tasks, which is the limit; try again later")
            }
            TaskAddError::Unkept(why) => format!("the task cannot be stored: {why}"),
        }
    }
}

impl TaskTable {
    /// Stores tasks from now on, and takes over those of ended processes up to the limits.
    pub(crate) fn keep(
        &self,
        store: Arc<dyn StateStore>,
        process: &str,
        limits: &TaskLimits,
        is_gone: impl Fn(&str) -> bool,
    ) {
        let kept = Arc::new(TaskStore::new(store, process));
        let mut left = kept.left(limits, is_gone).into_iter();
        for task in left.by_ref() {
            let mut table = self.table();
            let own = table.values().filter(|e| e.owner == task.owner).count();
            if own < limits.per_caller && table.len() < limits.all {
                table.insert(task.id.clone(), task);
            } else {
                task.forget();
            }
        }
        sweep(&mut self.table(), limits);
        // It is set only once, when the server is built.
        let _ = self.kept.set(kept);
    }

    /// Returns the tasks of ended processes that continue at an upstream server.
    pub(super) fn left_on(&self) -> Vec<Arc<ServerTask>> {
        let table = self.table();
        table.values().filter(|e| e.is_left_on()).cloned().collect()
    }

    /// Removes a task that another process took over; it stays in the store.
    pub(super) fn drop_of(&self, id: &str) {
        self.table().remove(id);
    }

    /// Returns the task store.
    pub(super) fn kept(&self) -> Option<Arc<TaskStore>> {
        self.kept.get().cloned()
    }

    /// Adds a task. At a limit, the oldest ended task is evicted; expired ones always are.
    pub(super) fn add(
        &self,
        task: &Arc<ServerTask>,
        limits: &TaskLimits,
    ) -> Result<(), TaskAddError> {
        let mut table = self.table();
        sweep(&mut table, limits);
        let own = |entry: &ServerTask| entry.owner == task.owner;
        if table.values().filter(|e| own(e)).count() >= limits.per_caller
            && !give_way(&mut table, own)
        {
            return Err(TaskAddError::Caller(limits.per_caller));
        }
        if table.len() >= limits.all && !give_way(&mut table, |_| true) {
            return Err(TaskAddError::All(limits.all));
        }
        table.insert(task.id.clone(), task.clone());
        Ok(())
    }

    /// Returns the task with this id if `caller` owns it. A task of another caller is not found.
    pub(super) fn find(
        &self,
        caller: &Caller,
        words: TaskForm,
        id: &str,
        limits: &TaskLimits,
    ) -> Option<Arc<ServerTask>> {
        let mut table = self.table();
        sweep(&mut table, limits);
        let found = table.get(id)?;
        (found.owner.is_still(caller) && found.words == words).then(|| found.clone())
    }

    /// Returns the tasks of a caller, the oldest first.
    pub(super) fn of(
        &self,
        caller: &Caller,
        words: TaskForm,
        limits: &TaskLimits,
    ) -> Vec<Arc<ServerTask>> {
        let mut table = self.table();
        sweep(&mut table, limits);
        let own = table
            .values()
            .filter(|e| e.owner.is_still(caller) && e.words == words);
        let mut found: Vec<Arc<ServerTask>> = own.cloned().collect();
        found.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        found
    }

    /// Removes a task, also from the store.
    pub(super) fn remove(&self, id: &str) {
        take(&mut self.table(), id);
    }

    /// Cancels the tasks of a closed connection, since no client can poll them.
    pub(crate) fn end_of(&self, link: u64) {
        self.table().retain(|_, entry| {
            let ends = entry.link == Some(link);
            if ends {
                entry.cancel(Some(CancelReason::Link));
            }
            !ends
        });
    }

    /// Interrupts all tasks, for a shutdown.
    pub(crate) fn end(&self) {
        for entry in self.table().values() {
            entry.interrupt();
        }
    }

    /// Returns all tasks, the oldest first.
    pub(crate) fn views(&self) -> Vec<TaskView> {
        let mut found: Vec<TaskView> = self.table().values().map(|e| e.view()).collect();
        found.sort_by_key(|view| view.created);
        found
    }

    /// Cancels the task of a call. Returns false if there is no running one.
    pub(crate) fn stop(&self, call: &str) -> bool {
        let table = self.table();
        let found = table.values().find(|entry| *entry.call == *call);
        found.is_some_and(|entry| entry.cancel(Some(CancelReason::Operator)))
    }

    fn table(&self) -> MutexGuard<'_, HashMap<String, Arc<ServerTask>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes expired tasks, and evicts the oldest results above the byte limit.
fn sweep(table: &mut HashMap<String, Arc<ServerTask>>, limits: &TaskLimits) {
    table.retain(|_, entry| {
        let expired = entry.is_expired();
        if expired {
            entry.cancel(Some(CancelReason::Late));
            entry.forget();
        }
        !expired
    });
    let mut bytes: usize = table.values().map(|entry| entry.size()).sum();
    while bytes > limits.bytes {
        let results = table.values().filter(|entry| entry.size() > 0);
        let Some(oldest) = results.min_by_key(|entry| entry.age()).cloned() else {
            return;
        };
        bytes -= oldest.size();
        take(table, &oldest.id);
    }
}

/// Evicts the oldest ended task. Returns false if all are running.
fn give_way(
    table: &mut HashMap<String, Arc<ServerTask>>,
    of: impl Fn(&ServerTask) -> bool,
) -> bool {
    let over = table.values().filter(|entry| of(entry) && entry.is_over());
    let oldest = over.min_by_key(|entry| entry.age());
    let Some(id) = oldest.map(|entry| entry.id.clone()) else {
        return false;
    };
    take(table, &id)
}

/// Removes a task, also from the store.
fn take(table: &mut HashMap<String, Arc<ServerTask>>, id: &str) -> bool {
    let found = table.remove(id);
    if let Some(entry) = &found {
        entry.forget();
    }
    found.is_some()
}
