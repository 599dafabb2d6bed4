//! Lists of a server, assumed to be the same for all its callers.

use super::{CallerConnections, lock, unusable_error};
use crate::servers::{SupervisedServer, supervised::failed_lists};
use std::time::Duration;
use tokio::time::Instant;
use toolgate_core::{Catalog, ChangeSet, DefinitionNote, Error, ItemKind, ListRequest, Service};

/// Time for which a list is valid for all callers.
const CATALOG_TTL: Duration = Duration::from_secs(60);

impl CallerConnections {
    /// Returns the number of known tools.
    pub(in crate::servers) fn tools(&self) -> usize {
        let face = lock(&self.catalogs);
        let tools = face[ItemKind::Tool as usize].as_ref();
        tools.map_or(0, |(catalog, _)| catalog.items().len())
    }

    /// Returns the lists that could not be read the last time.
    pub(in crate::servers) fn failed_lists(&self) -> Vec<DefinitionNote> {
        lock(&self.failed_lists).clone()
    }

    pub(in crate::servers) async fn list(
        &self,
        server: &SupervisedServer,
        ask: ListRequest,
    ) -> Result<Catalog, Error> {
        let kind = ask.kind;
        if server.is_account_specific(kind) {
            return self.list_on_connection(server, ask).await;
        }
        let known = lock(&self.catalogs)[kind as usize].clone();
        if let Some((catalog, at)) = &known
            && at.elapsed() < CATALOG_TTL
        {
            return Ok(catalog.clone());
        }
        let mut request = ask;
        request.only_name = None;
        // List everything: an answer for a single item must not become the list of all callers.
        let listed = self.list_on_connection(server, request).await;
        let known = known.map(|(catalog, _)| catalog);
        match (listed, known) {
            (Ok(catalog), known) => {
                lock(&self.catalogs)[kind as usize] = Some((catalog.clone(), Instant::now()));
                if known.is_none_or(|known| !known.is_same_snapshot(&catalog)) {
                    server.mark_stale(&ChangeSet::of_lists(vec![kind]));
                }
                Ok(catalog)
            }
            (Err(_), Some(known)) => Ok(known),
            (Err(error), None) => Err(error),
        }
    }

    /// Lists the server on the caller's own connection.
    async fn list_on_connection(
        &self,
        server: &SupervisedServer,
        ask: ListRequest,
    ) -> Result<Catalog, Error> {
        let (seat, token) = self.connect(server, &ask.caller).await?;
        match seat.get() {
            Some(remote) => {
                let listed = remote.list(ask).await;
                *lock(&self.failed_lists) = failed_lists(&remote.status());
                listed.map_err(|error| token.explain_error(server, error))
            }
            None => Err(unusable_error(
                server,
                "its connection was closed; list again",
            )),
        }
    }
}
