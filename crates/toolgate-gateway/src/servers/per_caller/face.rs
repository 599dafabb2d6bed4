//! What a server offers, taken to be the same for all its callers.

use super::{PerCaller, down, lock};
use crate::servers::Supervised;
use std::time::Duration;
use tokio::time::Instant;
use toolgate::{Catalog, Changed, Error, ItemKind, List, Service};

/// How long a list holds for everybody.
const FACE: Duration = Duration::from_secs(60);

impl PerCaller {
    /// How many tools are known.
    pub(in crate::servers) fn tools(&self) -> usize {
        let face = lock(&self.face);
        let tools = face[ItemKind::Tool as usize].as_ref();
        tools.map_or(0, |(catalog, _)| catalog.items().len())
    }

    pub(in crate::servers) async fn list(
        &self,
        server: &Supervised,
        ask: List,
    ) -> Result<Catalog, Error> {
        let kind = ask.kind;
        if server.is_of_accounts(kind) {
            return self.listed(server, ask).await;
        }
        let known = lock(&self.face)[kind as usize].clone();
        if let Some((catalog, at)) = &known
            && at.elapsed() < FACE
        {
            return Ok(catalog.clone());
        }
        // All of it: what one asks for alone must not be what all are told.
        let listed = self.listed(server, List { only: None, ..ask }).await;
        let known = known.map(|(catalog, _)| catalog);
        match (listed, known) {
            (Ok(catalog), known) => {
                lock(&self.face)[kind as usize] = Some((catalog.clone(), Instant::now()));
                if known.is_none_or(|known| !known.same(&catalog)) {
                    server.tell(&Changed {
                        lists: vec![kind],
                        updated: Vec::new(),
                    });
                }
                Ok(catalog)
            }
            (Err(_), Some(known)) => Ok(known),
            (Err(error), None) => Err(error),
        }
    }

    /// What a caller is told of it.
    async fn listed(&self, server: &Supervised, ask: List) -> Result<Catalog, Error> {
        let (seat, token) = self.seat(server, &ask.caller).await?;
        match seat.get() {
            Some(remote) => {
                let listed = remote.list(ask).await;
                listed.map_err(|error| token.why(server, error))
            }
            None => Err(down(server, "its connection is gone")),
        }
    }
}
