//! Task table of a server, with limits on count, bytes and lifetime.

use super::{TaskLimits, TaskView, store::TaskStore, task::ServerTask};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};
use toolgate_core::{Caller, CancelReason};
use toolgate_policy::StateStore;
use toolgate_protocol::method::tasks::TaskForm;

/// All tasks of a server.
#[derive(Default)]
pub(crate) struct TaskTable {
    table: Mutex<HashMap<String, Arc<ServerTask>>>,
    store: OnceLock<Arc<TaskStore>>,
    /// Suffix of the ids of new tasks.
    suffix: OnceLock<String>,
}

/// Reason why a task cannot be added.
#[derive(Clone, Debug)]
pub(super) enum TaskAddError {
    CallerLimit(usize),
    TotalLimit(usize),
    /// The task cannot be stored, as required.
    NotStored(String),
}

impl TaskAddError {
    pub(super) fn message(self) -> String {
        match self {
            TaskAddError::CallerLimit(most) => format!(
                "this caller has reached its limit of tasks ({most}); wait for some of them to end, or cancel some"
            ),
            TaskAddError::TotalLimit(most) => {
                format!("this server has reached its limit of tasks ({most}); try again later")
            }
            TaskAddError::NotStored(why) => format!(
                "this call cannot run as a task, because the task cannot be stored: {why}; call again later, or without a task"
            ),
        }
    }
}

impl TaskTable {
    /// Stores tasks from now on, and takes over those of ended processes up to the limits.
    pub(crate) fn use_store(
        &self,
        store: Arc<dyn StateStore>,
        process: &str,
        limits: &TaskLimits,
        is_gone: impl Fn(&str) -> bool,
    ) {
        let kept = Arc::new(TaskStore::new(store, process));
        self.adopt(&kept, limits, is_gone);
        // It is set only once, when the server is built.
        let _ = self.store.set(kept);
    }

    /// Takes over the tasks of processes that ended after the store was set, up to the limits.
    pub(crate) fn adopt_ended(&self, limits: &TaskLimits, is_gone: impl Fn(&str) -> bool) {
        if let Some(kept) = self.store() {
            self.adopt(&kept, limits, is_gone);
        }
    }

    fn adopt(&self, kept: &Arc<TaskStore>, limits: &TaskLimits, is_gone: impl Fn(&str) -> bool) {
        let mut left = kept.take_over(limits, is_gone).into_iter();
        for task in left.by_ref() {
            let mut table = self.table();
            let own = table.values().filter(|e| e.owner == task.owner).count();
            if own < limits.per_caller && table.len() < limits.total {
                table.insert(task.id.clone(), task);
            } else {
                task.remove_from_store();
            }
        }
        sweep(&mut self.table(), limits);
    }

    /// Sets the suffix of the ids of new tasks, unless one is set.
    pub(crate) fn set_suffix(&self, suffix: &str) {
        let _ = self.suffix.set(suffix.to_owned());
    }

    /// Returns a secret id for a new task.
    pub(super) fn new_id(&self) -> String {
        let id = crate::ids::secret_id();
        match self.suffix.get() {
            Some(suffix) => format!("{id}.{suffix}"),
            None => id,
        }
    }

    /// Returns the tasks of ended processes that continue at an upstream server.
    pub(super) fn needing_recovery(&self) -> Vec<Arc<ServerTask>> {
        let table = self.table();
        table
            .values()
            .filter(|e| e.needs_recovery())
            .cloned()
            .collect()
    }

    /// Removes a task that another process took over; it stays in the store.
    pub(super) fn release(&self, id: &str) {
        self.table().remove(id);
    }

    /// Returns the task store.
    pub(super) fn store(&self) -> Option<Arc<TaskStore>> {
        self.store.get().cloned()
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
            && !evict_ended(&mut table, own)
        {
            return Err(TaskAddError::CallerLimit(limits.per_caller));
        }
        if table.len() >= limits.total && !evict_ended(&mut table, |_| true) {
            return Err(TaskAddError::TotalLimit(limits.total));
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
        (found.owner.same_principal(caller) && found.form == words).then(|| found.clone())
    }

    /// Returns a task of another process that uses the same store, as that process last wrote it.
    pub(super) fn find_stored(
        &self,
        caller: &Caller,
        words: TaskForm,
        id: &str,
        limits: &TaskLimits,
    ) -> Option<Arc<ServerTask>> {
        let task = self.store()?.load(id, limits)?;
        (task.owner.same_principal(caller) && task.form == words).then(|| Arc::new(task))
    }

    /// Returns the tasks of a caller, the oldest first.
    pub(super) fn of_caller(
        &self,
        caller: &Caller,
        words: TaskForm,
        limits: &TaskLimits,
    ) -> Vec<Arc<ServerTask>> {
        let mut table = self.table();
        sweep(&mut table, limits);
        let own = table
            .values()
            .filter(|e| e.owner.same_principal(caller) && e.form == words);
        let mut found: Vec<Arc<ServerTask>> = own.cloned().collect();
        found.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        found
    }

    /// Removes a task, also from the store.
    pub(super) fn remove(&self, id: &str) {
        remove_entry(&mut self.table(), id);
    }

    /// Cancels the tasks of a closed connection, since no client can poll them.
    pub(crate) fn cancel_of_connection(&self, link: u64) {
        self.table().retain(|_, entry| {
            let ends = entry.connection == Some(link);
            if ends {
                entry.cancel(Some(CancelReason::Disconnected));
            }
            !ends
        });
    }

    /// Interrupts all tasks, for a shutdown.
    pub(crate) fn interrupt_all(&self) {
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
    pub(crate) fn cancel(&self, call: &str) -> bool {
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
            entry.cancel(Some(CancelReason::TimedOut));
            entry.remove_from_store();
        }
        !expired
    });
    let mut bytes: usize = table.values().map(|entry| entry.result_bytes()).sum();
    while bytes > limits.max_result_bytes {
        let results = table.values().filter(|entry| entry.result_bytes() > 0);
        let Some(oldest) = results.min_by_key(|entry| entry.age_key()).cloned() else {
            return;
        };
        bytes -= oldest.result_bytes();
        remove_entry(table, &oldest.id);
    }
}

/// Makes space by eviction of the oldest ended task. Returns false if all are running.
fn evict_ended(
    table: &mut HashMap<String, Arc<ServerTask>>,
    of: impl Fn(&ServerTask) -> bool,
) -> bool {
    let over = table
        .values()
        .filter(|entry| of(entry) && entry.has_ended());
    let oldest = over.min_by_key(|entry| entry.age_key());
    let Some(id) = oldest.map(|entry| entry.id.clone()) else {
        return false;
    };
    remove_entry(table, &id)
}

/// Removes a task, also from the store.
fn remove_entry(table: &mut HashMap<String, Arc<ServerTask>>, id: &str) -> bool {
    let found = table.remove(id);
    if let Some(entry) = &found {
        entry.remove_from_store();
    }
    found.is_some()
}
