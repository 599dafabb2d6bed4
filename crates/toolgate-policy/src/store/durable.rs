//! The store of a data directory.

use super::{ChangedKeys, StateClock, StateRow, StateStore, WriteOutcome, WritePrecondition};
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::watch;
use toolgate_core::{BoxFuture, Error, ErrorKind, OperatorDetail, RefusalReason};
use toolgate_journal::state::DurableState;

impl StateStore for DurableState {
    fn entries(&self, table: &str) -> Vec<StateRow> {
        DurableState::entries(self, table)
    }

    fn versions(&self, table: &str) -> Vec<(String, u64)> {
        DurableState::versions(self, table)
    }

    fn changes_since(&self, table: &str, count: Option<u64>) -> ChangedKeys {
        DurableState::changes_since(self, table, count)
    }

    fn row(&self, table: &str, key: &str) -> Option<StateRow> {
        DurableState::row(self, table, key)
    }

    fn write(
        &self,
        table: &str,
        key: &str,
        value: Option<Value>,
        expect: WritePrecondition,
    ) -> BoxFuture<'static, Result<WriteOutcome, Error>> {
        let written = DurableState::write(self, table, key, value, expect);
        Box::pin(async move {
            written.await.map_err(|cause| {
                let text = format!("the change was not stored: {cause}");
                let detail = OperatorDetail::new(cause.detail());
                Error::new(ErrorKind::Refused(RefusalReason::AuditUnavailable), text)
                    .with_source(cause)
                    .with_detail(detail)
            })
        })
    }

    fn changed(&self) -> watch::Receiver<u64> {
        DurableState::changed(self)
    }

    fn clock(&self) -> &Arc<StateClock> {
        DurableState::clock(self)
    }
}
