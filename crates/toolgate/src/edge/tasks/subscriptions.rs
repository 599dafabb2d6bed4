//! Task notifications of a subscription (2026-07-28).

use super::{TaskOffer, methods::check_extension_declared, task::ServerTask};
use crate::edge::{ProtocolServer, call::RequestContext};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::sync::Arc;
use tokio::sync::watch;
use toolgate_protocol::{
    json::{Json, ObjectWriter},
    message::{RpcError, code},
};

/// The tasks of one `subscriptions/listen` stream.
#[derive(Default)]
pub(crate) struct TaskSubscription(Vec<Arc<ServerTask>>);

impl TaskSubscription {
    /// Returns the tasks in `taskIds` of the filter that the caller owns.
    ///
    /// # Errors
    /// The client did not declare the extension, or the ids are invalid.
    pub(crate) fn from_filter(
        server: &ProtocolServer,
        context: &RequestContext,
        filter: &Json,
    ) -> Result<TaskSubscription, RpcError> {
        let Some(ids) = filter.get("taskIds") else {
            return Ok(TaskSubscription::default());
        };
        if server.offered.tasks == TaskOffer::None {
            return Ok(TaskSubscription::default());
        }
        check_extension_declared(context)?;
        let most = server.limits.max_subscriptions;
        let ids: Option<Vec<String>> = ids.items().map(|id| id.string()).collect();
        let ids = ids.filter(|ids| ids.len() <= most).ok_or_else(|| {
            let text = format!("\"taskIds\" must be an array of at most {most} strings");
            RpcError::new(code::INVALID_PARAMS, text)
        })?;
        let (words, limits) = (context.dialect.tasks, &server.limits.tasks);
        let found = ids.iter();
        let found = found.filter_map(|id| server.tasks.find(&context.caller, words, id, limits));
        Ok(TaskSubscription(found.collect()))
    }

    /// Returns whether the subscription has no tasks.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Writes the subscribed tasks into the acknowledgement.
    pub(crate) fn acknowledge(&self, o: &mut ObjectWriter) {
        if !self.is_empty() {
            o.array("taskIds", |a| {
                self.0.iter().for_each(|task| a.str(&task.id))
            });
        }
    }

    /// Sends each task as it is now, then after each change until it ends. Never returns.
    pub(crate) async fn send_status<F: Future<Output = ()>>(
        self,
        context: &RequestContext,
        mut tell: impl FnMut(&'static str, Json) -> F,
    ) {
        let dialect = context.dialect;
        let mut changing: FuturesUnordered<_> = self.0.into_iter().map(first_change).collect();
        while let Some((task, changes)) = changing.next().await {
            let (over, mut o) = (task.has_ended(), ObjectWriter::new());
            task.to_protocol().write(&mut o, dialect.tasks, true);
            tell(dialect.task_notification(), o.finish()).await;
            if !over {
                changing.push(Box::pin(next_change(task, changes)) as NextTaskChange);
            }
        }
        std::future::pending().await
    }
}

type NextTaskChange = toolgate_core::BoxFuture<'static, (Arc<ServerTask>, watch::Receiver<u64>)>;

fn first_change(task: Arc<ServerTask>) -> NextTaskChange {
    let changes = task.subscribe();
    Box::pin(async move { (task, changes) })
}

async fn next_change(
    task: Arc<ServerTask>,
    mut changes: watch::Receiver<u64>,
) -> (Arc<ServerTask>, watch::Receiver<u64>) {
    // The task owns the sender.
    let _ = changes.changed().await;
    (task, changes)
}
