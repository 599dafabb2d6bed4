//! What an edge refuses stands in the record, like all that is refused.

use std::sync::Arc;
use toolgate::{
    BoxFuture,
    edge::{Refused, Witness},
};
use toolgate_journal::{Entry, Event, Journal};

/// Records what the edges refuse.
pub(crate) struct EdgeWitness {
    journal: Arc<Journal>,
}

impl EdgeWitness {
    pub(crate) fn new(journal: Arc<Journal>) -> EdgeWitness {
        EdgeWitness { journal }
    }
}

impl Witness for EdgeWitness {
    fn refused(&self, refused: Refused) -> BoxFuture<'_, ()> {
        let entry = Entry::new(Event::DENY)
            .with("caller", refused.caller.name())
            .with("transport", refused.transport)
            .with("method", refused.method.unwrap_or_default())
            .with("name", refused.tool.unwrap_or_default())
            .with("dec", "deny")
            .with("out", "refused")
            .with("code", "edge")
            .with("why", refused.reason);
        Box::pin(async move {
            // It is refused whether or not the record can be written; an unhealthy journal shows itself elsewhere.
            let _ = self.journal.append(entry).await;
        })
    }
}
