//! Calls of items that a starting server may offer. They fail as not yet known, not as unknown.

use crate::{
    Catalog, DefinitionPin, Error, ErrorKind, Item, ItemKind, Json, ListRequest, Origin,
    rule_layer::RuleLayer,
};
use serde_json::json;
use std::sync::Arc;
use toolgate_protocol::method::definition::Definition;

impl Error {
    /// Creates the error for a call of an item that one of these still starting servers may offer.
    #[doc(hidden)]
    pub fn unknown_while_starting(kind: ItemKind, name: &str, servers: Vec<Arc<str>>) -> Error {
        let ids = servers.join(", ");
        let are = match servers.len() {
            1 => format!("the server {ids} is still starting"),
            _ => format!("the servers {ids} are still starting"),
        };
        let what = kind.as_str();
        let text = format!(
            "it is not known yet whether the {what} {name} exists: {are}; try again in a moment"
        );
        Error::new(ErrorKind::Upstream, text).caused_by_starting(servers)
    }
}

impl RuleLayer {
    /// Returns the error for this caller. It names only servers at which the caller could see an item of that name;
    /// without any, the item is unknown.
    pub(crate) fn starting_error(
        &self,
        ask: &ListRequest,
        name: &str,
        error: Error,
    ) -> Result<Catalog, Error> {
        ask.decision_log
            .add("gate", "starting", error.public_message().to_owned());
        let sees = |server: &&Arc<str>| {
            let item = hypothetical_item(ask.kind, name, server);
            item.is_some_and(|item| self.is_visible(&ask.caller, &item))
        };
        let seen: Vec<Arc<str>> = error
            .starting_servers()
            .iter()
            .filter(sees)
            .cloned()
            .collect();
        match seen.len() {
            0 => Ok(Catalog::default()),
            _ if seen.len() == error.starting_servers().len() => Err(error),
            _ => Err(Error::unknown_while_starting(ask.kind, name, seen)),
        }
    }
}

/// Returns a hypothetical item of that name at a server, for rules that match names.
fn hypothetical_item(kind: ItemKind, name: &str, server: &Arc<str>) -> Option<Item> {
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
        item.local_name = own.to_owned();
    }
    item.pin = Some(Arc::new(DefinitionPin::unlisted()));
    Some(item)
}
