//! Joined list changes of many members. Updates of single resources are not joined: a URI belongs to one member, and no
//! other member may report a change of it.

use super::AggregateMember;
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
use toolgate_core::{ChangeCounters, ChangeFilter, ChangeSet, ChangeStream};

/// Joined list changes of all members. It subscribes to the members when the first listener arrives.
#[derive(Default)]
pub(super) struct JoinedChanges(Mutex<Option<ChangeJoinTask>>);

struct ChangeJoinTask {
    stale: Arc<watch::Sender<ChangeCounters>>,
    task: JoinHandle<()>,
}

impl Drop for ChangeJoinTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl JoinedChanges {
    /// Returns the list changes of all members.
    pub(super) async fn subscribe(
        &self,
        members: &[AggregateMember],
        want: &ChangeFilter,
    ) -> ChangeStream {
        let mut running = self.0.lock().await;
        if running.is_none() {
            let heard = members.iter().map(|member| {
                let lists = ChangeFilter::all_lists(want.caller.clone());
                member.service.changes(lists)
            });
            // A member that cannot report changes does not affect the others.
            let all = join_all(heard).await.into_iter().flatten().collect();
            let stale = Arc::new(watch::Sender::new(ChangeCounters::default()));
            #[allow(
                clippy::disallowed_methods,
                reason = "outlives the subscriber; aborted on drop"
            )]
            let task = tokio::spawn(forward_changes(all, stale.clone()));
            *running = Some(ChangeJoinTask { stale, task });
        }
        match running.as_ref() {
            Some(running) => ChangeStream::new(running.stale.subscribe()),
            None => ChangeStream::new(watch::channel(ChangeCounters::default()).1),
        }
    }
}

async fn forward_changes(all: Vec<ChangeStream>, stale: Arc<watch::Sender<ChangeCounters>>) {
    let mut next: FuturesUnordered<_> = all.into_iter().map(next_of).collect();
    while let Some((change, changes)) = next.next().await {
        if let Some(change) = change {
            if !change.lists.is_empty() {
                stale.send_modify(|stale| {
                    change
                        .lists
                        .iter()
                        .for_each(|kind| stale.count_list_change(*kind))
                });
            }
            next.push(next_of(changes));
        }
    }
}

fn next_of(mut changes: ChangeStream) -> BoxFuture<'static, (Option<ChangeSet>, ChangeStream)> {
    async move { (changes.next().await, changes) }.boxed()
}
