//! Task status notifications of one session: `notifications/tasks/status` (2025-11-25).

use super::task::ServerTask;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, Weak,
    atomic::{AtomicBool, Ordering},
};
use tokio::sync::Notify;
use toolgate_protocol::{
    dialect::Dialect,
    json::{Json, ObjectWriter},
    method::tasks::TaskStatus,
};

/// The tasks of one session.
#[derive(Debug, Default)]
pub(crate) struct SessionTasks {
    tasks: Mutex<Vec<WatchedTask>>,
    /// True if a task was added whose creation the client may not have received yet.
    has_new_task: AtomicBool,
    task_known: Notify,
}

#[derive(Debug)]
struct WatchedTask {
    /// Weak: the task table owns it.
    task: Weak<ServerTask>,
    /// The status that the client received last.
    reported: TaskStatus,
    is_known: bool,
}

impl SessionTasks {
    /// Creates the tasks of a session, if it has any.
    pub(crate) fn new(has_tasks: bool) -> Option<Arc<SessionTasks>> {
        has_tasks.then(Arc::default)
    }

    /// Adds a task. Its status is reported after the client has received the task.
    pub(super) fn add(&self, task: &Arc<ServerTask>) {
        let mut tasks = self.tasks();
        tasks.retain(|followed| followed.task.strong_count() > 0);
        tasks.push(WatchedTask {
            task: Arc::downgrade(task),
            reported: TaskStatus::Working,
            is_known: false,
        });
        drop(tasks);
        self.has_new_task.store(true, Ordering::Release);
    }

    /// Records that a response was sent: the client now has the tasks that it created.
    pub(crate) fn reply_sent(&self) {
        if self.has_new_task.swap(false, Ordering::AcqRel) {
            self.tasks().iter_mut().for_each(|f| f.is_known = true);
            self.task_known.notify_one();
        }
    }

    /// Sends each new status. Never returns.
    pub(crate) async fn send_status<F: Future<Output = ()>>(
        &self,
        dialect: &Dialect,
        mut tell: impl FnMut(&'static str, Json) -> F,
    ) {
        loop {
            // Subscribe before the check, or a change in between would be missed.
            let mut changing = self.next_changes();
            for task in self.with_new_status() {
                let mut o = ObjectWriter::new();
                task.to_protocol().write(&mut o, dialect.tasks, true);
                tell(dialect.task_notification(), o.finish()).await;
            }
            let changed = async {
                // Each task owns the sender of its changes until it is removed.
                if changing.next().await.is_none() {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                () = changed => {}
                () = self.task_known.notified() => {}
            }
        }
    }

    fn next_changes(&self) -> FuturesUnordered<impl Future<Output = ()> + use<>> {
        let mut tasks = self.tasks();
        // A task whose end was reported changes no more.
        let over = |f: &WatchedTask| f.is_known && f.reported.is_final();
        tasks.retain(|followed| followed.task.strong_count() > 0 && !over(followed));
        let known = tasks.iter().filter(|followed| followed.is_known);
        let tasks = known.filter_map(|followed| followed.task.upgrade());
        let changes = tasks.map(|task| {
            let mut changes = task.subscribe();
            async move { drop(changes.changed().await) }
        });
        changes.collect()
    }

    /// Returns the tasks whose status differs from the last reported one.
    fn with_new_status(&self) -> Vec<Arc<ServerTask>> {
        let mut tasks = self.tasks();
        let known = tasks.iter_mut().filter(|followed| followed.is_known);
        let due = known.filter_map(|followed| {
            let task = followed.task.upgrade()?;
            let status = task.status();
            let news = status != followed.reported;
            followed.reported = status;
            news.then_some(task)
        });
        due.collect()
    }

    fn tasks(&self) -> MutexGuard<'_, Vec<WatchedTask>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
