//! Last known lists of the servers, stored across restarts.
//!
//! A table stores the names and their order; the definitions come from the pins. So a restored list passes the same
//! checks as a list from the server.

use crate::{
    runtime::offline,
    servers::{LastLists, ServerSpec},
};
use serde_json::{Value, json};
use std::{collections::HashMap, sync::Arc};
use toolgate_core::{BoxFuture, Catalog, Item, ItemKind, Origin};
use toolgate_policy::{Pins, StateStore, WritePrecondition, pins::StoredPin};

/// Name of the table of lists in the store.
const LISTS_TABLE: &str = "lists";
/// Maximum size of a row, in bytes. A longer list is restored from all pins of its kind.
const MAX_ROW_BYTES: usize = 512 * 1024;

/// Last known lists of the servers, with definitions from the pins.
pub(crate) struct PinnedLists {
    pins: Pins,
    store: Arc<dyn StateStore>,
}

/// Stored row of one list.
struct StoredListRow {
    /// Names of the items on the server, in its order.
    names: Vec<String>,
    /// True if the server has instructions.
    has_instructions: bool,
}

impl PinnedLists {
    pub(crate) fn new(pins: Pins, store: Arc<dyn StateStore>) -> PinnedLists {
        PinnedLists { pins, store }
    }

    /// Returns the pins of one server with its current identity.
    fn pins_of(&self, spec: &ServerSpec) -> Pins {
        let is = crate::runtime::pins::identity(spec.address.as_ref(), &spec.command);
        self.pins.clone().identities([(spec.id.to_string(), is)])
    }
}

impl LastLists for PinnedLists {
    fn read(&self, spec: &ServerSpec, kind: ItemKind) -> Option<Catalog> {
        let pins = self.pins_of(spec);
        let row = self.store.row(LISTS_TABLE, &row_key(spec, kind));
        let row = row.and_then(|row| StoredListRow::parse(&row.value));
        let items = known_items(spec, kind, row.as_ref(), &pins.stored())?;
        let text = row
            .is_none_or(|row| row.has_instructions)
            .then(|| pins.stored_instructions(&spec.id))
            .flatten();
        // A definition that is too long to be stored must not look removed.
        let missing = items.iter().any(Option::is_none);
        let missing = missing.then(|| "a definition that is not stored".to_owned());
        Some(Catalog::with_missing_servers(
            items.into_iter().flatten().collect(),
            missing.into_iter().collect(),
            text,
        ))
    }

    fn write<'a>(
        &'a self,
        spec: &'a ServerSpec,
        kind: ItemKind,
        listed: &'a Catalog,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let key = row_key(spec, kind);
            let row = StoredListRow {
                names: listed
                    .items()
                    .iter()
                    .map(|item| item.upstream_key())
                    .collect(),
                has_instructions: !listed.server_instructions().is_empty(),
            };
            let bytes: usize = row.names.iter().map(|name| name.len() + 3).sum();
            let row = (bytes <= MAX_ROW_BYTES).then(|| row.to_value());
            if self.store.row(LISTS_TABLE, &key).map(|row| row.value) == row {
                return;
            }
            // If the write fails, the next start asks the server again.
            let _ = self
                .store
                .write(LISTS_TABLE, &key, row, WritePrecondition::Any)
                .await;
        })
    }
}

impl StoredListRow {
    fn to_value(&self) -> Value {
        json!({"names": self.names, "instructions": self.has_instructions})
    }

    fn parse(value: &Value) -> Option<StoredListRow> {
        let names = value.get("names")?.as_array()?.iter();
        let names = names.map(|name| Some(name.as_str()?.to_owned()));
        Some(StoredListRow {
            names: names.collect::<Option<_>>()?,
            has_instructions: value.get("instructions")?.as_bool()?,
        })
    }
}

/// Returns the items of a list in the server's order, each `None` if its definition cannot be restored.
///
/// The list as a whole is unknown if one of its names is not pinned, as a process may end before it pins all
/// definitions of a list, and if no definition can be restored. Then callers wait for the server: a shorter list would
/// look complete.
fn known_items(
    spec: &ServerSpec,
    kind: ItemKind,
    row: Option<&StoredListRow>,
    stored: &[StoredPin],
) -> Option<Vec<Option<Arc<Item>>>> {
    let origin = Origin {
        server: spec.id.clone(),
        trusted: spec.trusted,
    };
    // Use the latest definition, accepted or not: it is the one that the server would list now.
    let item = |pin: &StoredPin| {
        let definition = pin.pending.as_ref().or(pin.accepted.as_ref())?;
        offline::parse_item(kind, definition, origin.clone())
    };
    let of_kind = stored
        .iter()
        .filter(|pin| pin.same_identity && pin.kind == kind);
    let items: Vec<Option<Arc<Item>>> = match row {
        Some(row) => {
            let prefix = format!("{}.", spec.id);
            let by_name: HashMap<&str, &StoredPin> = of_kind
                .filter_map(|pin| Some((pin.name.strip_prefix(&prefix)?, pin)))
                .collect();
            let names = row.names.iter();
            let pinned = names.map(|name| by_name.get(name.as_str()).copied().map(item));
            pinned.collect::<Option<_>>()?
        }
        None => of_kind.map(item).collect(),
    };
    let is_empty = row.is_some_and(|row| row.names.is_empty());
    (is_empty || items.iter().any(Option::is_some)).then_some(items)
}

/// Returns the key of a row: the configured server ID, the identity of the server, and the item kind.
fn row_key(spec: &ServerSpec, kind: ItemKind) -> String {
    let is = crate::runtime::pins::identity(spec.address.as_ref(), &spec.command);
    let prefix = toolgate_policy::pins::key_prefix(&spec.id, &is);
    format!("{prefix}{}", kind.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_core::{
        Call, Caller, ChangeFilter, ChangeStream, Definition, Error, Json, ListRequest, Outcome,
        Service,
    };
    use toolgate_policy::{AuditRecorder, MemoryStateStore, Policy};

    /// Service that only lists.
    struct FixedList(Catalog);

    impl Service for FixedList {
        fn list(&self, _: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
            Box::pin(async { Ok(self.0.clone()) })
        }

        fn call(&self, _: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
            unreachable!()
        }

        fn changes(&self, _: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
            unreachable!()
        }
    }

    fn listed(spec: &ServerSpec, tools: &[&str]) -> Catalog {
        let origin = Origin {
            server: spec.id.clone(),
            trusted: false,
        };
        let tool = |name: &&str| {
            let json = Json::from_value(&json!({"name": name, "inputSchema": {"type": "object"}}));
            let def = Definition::read(ItemKind::Tool, json).unwrap();
            Arc::new(Item::new(origin.clone(), def))
        };
        Catalog::with_missing_servers(tools.iter().map(tool).collect(), Vec::new(), None)
    }

    /// A gateway that is killed between the two must not answer with an empty list at its next start.
    #[tokio::test]
    async fn a_list_whose_definitions_are_not_pinned_yet_is_not_known() {
        let store: Arc<dyn StateStore> = Arc::new(MemoryStateStore::new());
        let pins = Pins::new(store.clone(), Arc::new(AuditRecorder::log()));
        let lists = PinnedLists::new(pins, store);
        let spec = ServerSpec::new("files", vec!["serve".to_owned()]);
        let tool = ItemKind::Tool;
        assert!(lists.read(&spec, tool).is_none(), "nothing is noted");
        lists
            .write(&spec, tool, &listed(&spec, &["read", "write"]))
            .await;
        assert!(lists.read(&spec, tool).is_none(), "nothing is pinned");
        lists.write(&spec, tool, &listed(&spec, &[])).await;
        let known = lists.read(&spec, tool).expect("the server has no tools");
        assert!(known.items().is_empty());
    }

    /// A list without some of its tools would look complete.
    #[tokio::test]
    async fn a_list_is_not_known_until_all_its_definitions_are_pinned() {
        let store: Arc<dyn StateStore> = Arc::new(MemoryStateStore::new());
        let pins = Pins::new(store.clone(), Arc::new(AuditRecorder::log()));
        let lists = PinnedLists::new(pins.clone(), store);
        let spec = ServerSpec::new("files", vec!["serve".to_owned()]);
        let tool = ItemKind::Tool;
        lists
            .write(&spec, tool, &listed(&spec, &["read", "write"]))
            .await;
        let pin = async |names: &[&str]| {
            let policy = Policy::for_program();
            let mut policy = policy;
            policy.pins = Some(lists.pins_of(&spec));
            let servers = Arc::new(FixedList(listed(&spec, names)));
            let request = ListRequest::all(Caller::new("toolgate"), tool);
            policy.pinning(servers).list(request).await.unwrap();
        };
        pin(&["read"]).await;
        assert!(lists.read(&spec, tool).is_none(), "one of two is pinned");
        pin(&["read", "write"]).await;
        let known = lists.read(&spec, tool).expect("both are pinned");
        assert_eq!(known.items().len(), 2);
        assert!(known.missing_servers().is_empty());
    }
}
