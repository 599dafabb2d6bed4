//! Uses of things that a server may offer which is still starting: nobody knows yet, so they are not called unknown.

use crate::{Catalog, Error, Item, ItemKind, Json, Kind, List, Origin, Pinning, gate::Gate};
use serde_json::json;
use std::sync::Arc;
use toolgate_wire::method::definition::Definition;

impl Error {
    /// The error of a use of something of which nobody knows yet whether it is there, because these servers are still
    /// starting.
    pub fn not_known_yet(kind: ItemKind, name: &str, servers: Vec<Arc<str>>) -> Error {
        let ids = servers.join(", ");
        let are = match servers.len() {
            1 => format!("the server {ids} is still starting"),
            _ => format!("the servers {ids} are still starting"),
        };
        let what = kind.word();
        let text = format!(
            "it is not known yet whether there is a {what} {name}: {are}; try again in a moment"
        );
        Error::new(Kind::Upstream, text).while_starting(servers)
    }
}

impl Gate {
    /// The error for this caller: it names only servers of which the caller may see something of that name, and where
    /// there is none it reads as if nothing were there.
    pub(crate) fn while_starting(
        &self,
        ask: &List,
        name: &str,
        error: Error,
    ) -> Result<Catalog, Error> {
        ask.trail.add("gate", "starting", error.public().to_owned());
        let sees = |server: &&Arc<str>| {
            let item = supposed(ask.kind, name, server);
            item.is_some_and(|item| self.sees(&ask.caller, &item))
        };
        let seen: Vec<Arc<str>> = error.starting().iter().filter(sees).cloned().collect();
        match seen.len() {
            0 => Ok(Catalog::default()),
            _ if seen.len() == error.starting().len() => Err(error),
            _ => Err(Error::not_known_yet(ask.kind, name, seen)),
        }
    }
}

/// The item of that name as a server may come to offer it, for rules that ask for names.
fn supposed(kind: ItemKind, name: &str, server: &Arc<str>) -> Option<Item> {
    let def = match kind {
        ItemKind::Tool => json!({"name": name, "inputSchema": {"type": "object"}}),
        ItemKind::Prompt => json!({"name": name}),
        ItemKind::Resource => json!({"uri": name, "name": name}),
        ItemKind::Template => json!({"uriTemplate": name, "name": name}),
        ItemKind::Skill => return None,
    };
    let origin = Origin {
        server: server.clone(),
        trusted: false,
    };
    let mut item = Item::new(origin, Definition::read(kind, Json::from_value(&def)).ok()?);
    if let (ItemKind::Tool | ItemKind::Prompt, Some((_, own))) = (kind, name.split_once('_')) {
        item.local = own.to_owned();
    }
    item.pin = Some(Arc::new(Pinning::unlisted()));
    Some(item)
}
