//! List requests: pages of the items that the caller may see.

use super::{ProtocolServer, received_lists::ReceivedLists, response};
use toolgate_core::{Caller, Catalog, ItemKind, ListRequest};
use toolgate_protocol::{
    dialect::Dialect,
    json::Json,
    message::{RpcError, code},
};

/// Prefix of a cursor; the rest is the name of the last item of the previous page.
pub(super) const CURSOR_PREFIX: &str = "after:";

/// Returns the result of a list request: one page (pagination).
pub(crate) async fn list_page(
    server: &ProtocolServer,
    dialect: &Dialect,
    caller: &Caller,
    (kind, params): (ItemKind, Option<&Json>),
    given: Option<&ReceivedLists>,
) -> Result<Json, RpcError> {
    let listing = given.map(|given| given.begin_request(kind));
    let catalog = server
        .service
        .list(ListRequest::all(caller.clone(), kind))
        .await
        .map_err(|e| response::list_error(&e))?;
    let start = page_start(&catalog, params.and_then(|p| p.get("cursor")))?;
    if let Some(listing) = listing.filter(|_| start == 0) {
        listing.record(&catalog);
    }
    let write = || write_page(server, dialect, kind, &catalog, start);
    let list = server
        .pages
        .get_or_write(&catalog, dialect, (kind, start), write);
    // Twice: the page, and the message that contains it.
    let mut claim = server.budget_scope(caller).permit();
    let room = claim.cover_if_large(2 * list.as_str().len() as u64);
    room.map_err(|full| RpcError::new(code::INTERNAL_ERROR, full.to_string()))?;
    Ok(list)
}

/// Writes the page that starts at an item, for a protocol revision.
fn write_page(
    server: &ProtocolServer,
    dialect: &Dialect,
    kind: ItemKind,
    catalog: &Catalog,
    start: usize,
) -> Json {
    let items = catalog.items().get(start..).unwrap_or_default();
    let page = items.get(..server.limits.page_items).unwrap_or(items);
    let more = page.len() < items.len();
    let next = page
        .last()
        .filter(|_| more)
        .map(|last| format!("{CURSOR_PREFIX}{}", last.def.name()));
    let page: Vec<Json> = page
        .iter()
        // A definition that this revision cannot express is omitted for its clients only; operators see the reason at
        // the item.
        .filter_map(|item| server.write_definition(dialect, &item.def).ok())
        .collect();
    let hint = catalog.cache_hint();
    let missing = catalog.missing_servers().len();
    dialect.list(kind, &page, next.as_deref(), hint, missing, &server.info)
}

/// Returns the position at which a page starts. A cursor names the last item of the page before, so it needs no stored
/// state and stays valid while that item is in the list.
fn page_start(catalog: &Catalog, cursor: Option<Json>) -> Result<usize, RpcError> {
    // Many clients send `null` or an empty string if they have no cursor.
    let absent = |c: &Json| c.is_null() || c.str_cow().is_some_and(|text| text.is_empty());
    let Some(cursor) = cursor.filter(|c| !absent(c)) else {
        return Ok(0);
    };
    let name = cursor
        .string()
        .and_then(|c| c.strip_prefix(CURSOR_PREFIX).map(str::to_owned));
    let place = name.and_then(|name| {
        catalog
            .items()
            .iter()
            .position(|item| item.def.name() == name)
    });
    place.map(|at| at + 1).ok_or_else(|| {
        response::invalid_params(
            "the cursor does not belong to this list; list again from the start",
        )
    })
}
