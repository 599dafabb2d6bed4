//! Joined list changes of many members. Updates of single resources are not joined: a URI belongs to one member, and no
//! other member may report a change of it.

use super::Member;
use futures_util::{
    FutureExt, StreamExt,
    future::{BoxFuture, join_all},
    stream::FuturesUnordered,
};
use std::sync::Arc;
use tokio::{
    sync::{Mutex, watch},
    task::JoinHandle,
};
use toolgate_core::{Changed, Changes, Interest, Stale};

/// Joined list changes of all members. It subscribes to the members when the first listener arrives.
#[derive(Default)]
pub(super) struct Joint(Mutex<Option<Running>>);

struct Running {
    stale: Arc<watch::Sender<Stale>>,
    task: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Joint {
    /// Returns the list changes of all members.
    pub(super) async fn listen(&self, members: &[Member], want: &Interest) -> Changes {
        let mut running = self.0.lock().await;
        if running.is_none() {
            let heard = members.iter().map(|member| {
                let lists = Interest::lists(want.caller.clone());
                member.service.changes(lists)
            });
            // A member that cannot report changes does not affect the others.
            let all = join_all(heard).await.into_iter().flatten().collect();
            let stale = Arc::new(watch::Sender::new(Stale::default()));
            #[allow(
                clippy::disallowed_methods,
                reason = "outlives the subscriber; aborted on drop"
            )]
            let task = tokio::spawn(join(all, stale.clone()));
            *running = Some(Running { stale, task });
        }
        match running.as_ref() {
            Some(running) => Changes::new(running.stale.subscribe()),
            None => Changes::new(watch::channel(Stale::default()).1),
        }
    }
}

async fn join(all: Vec<Changes>, stale: Arc<watch::Sender<Stale>>) {
    let mut next: FuturesUnordered<_> = all.into_iter().map(next_of).collect();
    while let Some((change, changes)) = next.next().await {
        if let Some(change) = change {
            if !change.lists.is_empty() {
                stale.send_modify(|stale| change.lists.iter().for_each(|kind| stale.list(*kind)));
            }
            next.push(next_of(changes));
        }
    }
}

fn next_of(mut changes: Changes) -> BoxFuture<'static, (Option<Changed>, Changes)> {
    async move { (changes.next().await, changes) }.boxed()
}
