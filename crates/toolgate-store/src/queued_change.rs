//! Changes in the queue of a store, and the answers that their callers wait for.

use crate::{StoreError, error::WRITER_ENDED};
use serde_json::Value;
use tokio::sync::oneshot;
use toolgate_core::{BoxFuture, Error};
use toolgate_policy::{WriteOutcome, WritePrecondition};

/// Change that a caller wants.
pub(crate) struct PlannedChange {
    pub(crate) table: String,
    pub(crate) key: String,
    pub(crate) value: Option<Value>,
    pub(crate) expect: WritePrecondition,
}

/// Sender of the answer to a change. A dropped caller does not need it.
pub(crate) type ChangeWaiter = oneshot::Sender<Result<WriteOutcome, StoreError>>;

/// Queued change and its waiter.
pub(crate) struct QueuedChange {
    pub(crate) planned: PlannedChange,
    pub(crate) waiter: ChangeWaiter,
}

/// Queues a change of a row with `send`, and returns the answer of the writer.
pub(crate) fn write(
    (table, key): (&str, &str),
    value: Option<Value>,
    precondition: WritePrecondition,
    send: impl FnOnce(QueuedChange) -> Result<(), StoreError>,
) -> BoxFuture<'static, Result<WriteOutcome, Error>> {
    let planned = PlannedChange {
        table: table.to_owned(),
        key: key.to_owned(),
        value,
        expect: precondition,
    };
    let (waiter, answer) = oneshot::channel();
    let sent = send(QueuedChange { planned, waiter });
    Box::pin(async move {
        let written = match sent {
            Ok(()) => answer
                .await
                .unwrap_or_else(|_| Err(StoreError::Failed(WRITER_ENDED.into()))),
            Err(error) => Err(error),
        };
        written.map_err(StoreError::into_refusal)
    })
}
