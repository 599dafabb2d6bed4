//! The tasks of one session, of whose states it is told: `notifications/tasks/status` (2025-11-25).

use super::entry::Entry;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, Weak,
    atomic::{AtomicBool, Ordering},
};
use tokio::sync::Notify;
use toolgate_wire::{
    dialect::Dialect,
    json::{Json, ObjectWriter},
    method::tasks::Status,
};

/// The tasks that a session began.
#[derive(Debug, Default)]
pub(crate) struct OfSession {
    tasks: Mutex<Vec<Followed>>,
    /// One was added whose client may not know it yet.
    fresh: AtomicBool,
    more: Notify,
}

#[derive(Debug)]
struct Followed {
    /// The table keeps it; what is gone there is gone here.
    task: Weak<Entry>,
    /// What its client knows.
    told: Status,
    is_known: bool,
}

impl OfSession {
    /// Adds one. It is told of once its client knows it.
    pub(super) fn add(&self, task: &Arc<Entry>) {
        let mut tasks = self.tasks();
        tasks.retain(|followed| followed.task.strong_count() > 0);
        tasks.push(Followed {
            task: Arc::downgrade(task),
            told: Status::Working,
            is_known: false,
        });
        drop(tasks);
        self.fresh.store(true, Ordering::Release);
    }

    /// An answer has left: a client that began a task knows it now.
    pub(crate) fn answered(&self) {
        if self.fresh.swap(false, Ordering::AcqRel) {
            self.tasks().iter_mut().for_each(|f| f.is_known = true);
            self.more.notify_one();
        }
    }

    /// Tells each new state. Never ends.
    pub(crate) async fn tell<F: Future<Output = ()>>(
        &self,
        dialect: &Dialect,
        mut tell: impl FnMut(&'static str, Json) -> F,
    ) {
        loop {
            // Before it is looked, so that no change falls between.
            let mut changing = self.changing();
            for task in self.due() {
                let mut o = ObjectWriter::new();
                task.shown().write(&mut o, dialect.tasks, true);
                tell(dialect.task_notification(), o.finish()).await;
            }
            let changed = async {
                // The tasks themselves hold the other ends, until they are forgotten.
                if changing.next().await.is_none() {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                () = changed => {}
                () = self.more.notified() => {}
            }
        }
    }

    fn changing(&self) -> FuturesUnordered<impl Future<Output = ()> + use<>> {
        let mut tasks = self.tasks();
        // What is over was told, and changes no more.
        let over = |f: &Followed| f.is_known && f.told.is_over();
        tasks.retain(|followed| followed.task.strong_count() > 0 && !over(followed));
        let known = tasks.iter().filter(|followed| followed.is_known);
        let tasks = known.filter_map(|followed| followed.task.upgrade());
        let changes = tasks.map(|task| {
            let mut changes = task.changes();
            async move { drop(changes.changed().await) }
        });
        changes.collect()
    }

    /// Those that are in another state than the client was told.
    fn due(&self) -> Vec<Arc<Entry>> {
        let mut tasks = self.tasks();
        let known = tasks.iter_mut().filter(|followed| followed.is_known);
        let due = known.filter_map(|followed| {
            let task = followed.task.upgrade()?;
            let status = task.status();
            let news = status != followed.told;
            followed.told = status;
            news.then_some(task)
        });
        due.collect()
    }

    fn tasks(&self) -> MutexGuard<'_, Vec<Followed>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
