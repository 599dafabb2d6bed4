//! Discovery of a server that outlives the process: revision, capabilities and lists of an earlier connection.

use super::{lists::DEFAULT_LIST_TTL, options::RemoteOptions, remote::RemoteServer};
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;
use toolgate_core::{CacheHint, ItemKind, Json};
use toolgate_protocol::{dialect::Dialect, method::initialize::Implementation};

/// Discovery of a server, for reuse: revision, capabilities, instructions and lists. Store it, and pass it to
/// [`ClientBuilder::discovery`](super::ClientBuilder::discovery) in a later run.
///
/// With a stateless revision (2026-07-28), the client then connects without any request. With a session, it sends only
/// the handshake. Lists are reused as long as the server allows; see [`Discovery::keep_lists_for`].
///
/// ```
/// # use toolgate::{Client, Server, tool};
/// use toolgate::client::Discovery;
///
/// # /// Doubles a number.
/// # #[tool(read_only)]
/// # fn double(number: i64) -> String { (number * 2).to_string() }
/// # fn server() -> Server { Server::new("numbers", "1").tool(double) }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let first = Client::in_process(server()).await?;
/// first.tools().await?;
/// let saved = serde_json::to_string(&first.discovery())?;
///
/// let known: Discovery = serde_json::from_str(&saved)?;
/// let later = Client::builder().discovery(known).in_process(server()).await?;
/// assert_eq!(later.tools().await?.len(), 1);
/// # Ok(())
/// # }
/// ```
///
/// Specification: [discovery](https://modelcontextprotocol.io/specification/2026-07-28/server/discover): clients may call
/// `server/discover` but are not required to.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Discovery {
    server_id: String,
    revision: String,
    capabilities: Json,
    server_info: Option<Json>,
    instructions: Option<String>,
    /// Time of the snapshot, in milliseconds since the Unix epoch.
    saved_ms: u64,
    lists: Vec<SavedList>,
}

/// List of one kind, as the server sent it.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct SavedList {
    /// Method that lists the items.
    method: String,
    items: Vec<Json>,
    ttl_ms: u64,
    public: bool,
    /// Time at which the list is stale, in milliseconds since the Unix epoch.
    stale_ms: u64,
}

impl Discovery {
    /// Returns the protocol revision that was negotiated, for example `2026-07-28`.
    pub fn revision(&self) -> &str {
        &self.revision
    }

    /// Returns the time for which the discovery has been stored, by the clock of this machine.
    pub fn age(&self) -> Duration {
        Duration::from_millis(now_ms().saturating_sub(self.saved_ms))
    }

    /// Reuses the lists for this time since they were stored, whatever lifetime the server gave them. A change of the
    /// server in the meantime is noticed by a failed call only.
    #[must_use]
    pub fn keep_lists_for(mut self, lifetime: Duration) -> Discovery {
        let lifetime = u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX);
        let stale = self.saved_ms.saturating_add(lifetime);
        self.lists.iter_mut().for_each(|list| list.stale_ms = stale);
        self
    }

    /// Returns the id of the server that it describes.
    pub(super) fn server_id(&self) -> &str {
        &self.server_id
    }

    /// Returns the dialect of its revision, if the options allow it.
    pub(super) fn dialect(&self, options: &RemoteOptions) -> Option<&'static Dialect> {
        let mut allowed = options.revisions.iter();
        allowed.find(|d| d.revision == self.revision).copied()
    }

    /// Returns capabilities, `serverInfo` and instructions.
    pub(super) fn description(&self) -> (Json, Option<Implementation>, Option<String>) {
        let info = self.server_info.as_ref().and_then(Implementation::read);
        (self.capabilities.clone(), info, self.instructions.clone())
    }
}

impl RemoteServer {
    /// Returns what this connection learned of its server.
    pub fn discovery(&self) -> Discovery {
        let saved_ms = now_ms();
        let lists = ItemKind::ALL.into_iter().filter_map(|kind| {
            let (catalog, fresh_until) = self.lists.of(kind).current()?;
            let fresh = fresh_until.saturating_duration_since(Instant::now());
            // Without hints, a list is fresh because the server reports changes, which nobody hears between two runs.
            let fresh = match self.peer.dialect.cache_hints {
                true => fresh,
                false => fresh.min(DEFAULT_LIST_TTL),
            };
            let hint = catalog.cache_hint();
            let items = catalog.items().iter();
            Some(SavedList {
                method: kind.list_method().to_owned(),
                items: items.map(|item| item.def.json().detached()).collect(),
                ttl_ms: hint.ttl_ms,
                public: hint.public,
                stale_ms: saved_ms.saturating_add(u64::try_from(fresh.as_millis()).unwrap_or(0)),
            })
        });
        Discovery {
            server_id: self.options.origin.server.to_string(),
            revision: self.revision().to_owned(),
            capabilities: self.peer.capabilities.clone(),
            server_info: self.peer.server.as_ref().map(Implementation::json),
            instructions: self.peer.instructions.clone(),
            saved_ms,
            lists: lists.collect(),
        }
    }

    /// Fills the lists from an earlier connection, as far as they are still fresh.
    pub(super) fn seed_lists(&self) {
        let known = self.options.discovery.as_ref();
        let Some(known) = known.filter(|known| known.revision == self.revision()) else {
            return;
        };
        let now = now_ms();
        // The clock may have been set back: a list never lives longer than if it was stored now.
        let since = now.saturating_sub(known.saved_ms);
        for list in known.lists.iter().filter(|_| known.saved_ms <= now) {
            let Some(kind) = ItemKind::listed_by(&list.method) else {
                continue;
            };
            let lifetime = list.stale_ms.saturating_sub(known.saved_ms);
            let left = Duration::from_millis(lifetime.saturating_sub(since));
            let left = left.min(self.options.max_list_ttl);
            let hint = CacheHint {
                ttl_ms: list.ttl_ms,
                public: list.public,
            };
            if !left.is_zero() {
                self.seed_list(kind, list.items.clone(), hint, Instant::now() + left);
            }
        }
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0))
}
