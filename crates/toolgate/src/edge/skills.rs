//! `skills/get` and `resources/directory/read`, answered from the skills that the caller may see.

use super::{ProtocolServer, call::RequestContext, lists::CURSOR_PREFIX, response};
use std::collections::HashMap;
use toolgate_core::{Catalog, ItemKind, ListRequest};
use toolgate_protocol::{
    json::{Json, ObjectWriter},
    message::{RpcError, code},
    method::skills::{self, DIRECTORY, DIRECTORY_TYPE, GET},
};

/// Returns whether this server offers skills and `method` is one of their methods.
pub(crate) fn is_method(server: &ProtocolServer, method: &str) -> bool {
    server.lists_kind(ItemKind::Skill) && [GET, DIRECTORY].contains(&method)
}

/// Returns the result of `skills/get` or `resources/directory/read`.
pub(crate) async fn handle_method(
    server: &ProtocolServer,
    context: &RequestContext,
    method: &str,
    params: Option<&Json>,
) -> Result<Json, RpcError> {
    let uri = params.and_then(|p| p.get("uri")?.string());
    let uri = uri.ok_or_else(|| response::invalid_params("\"params.uri\" must be a string"))?;
    server.check_name_length(&uri)?;
    let result = match method {
        GET => get_skill(server, context, &uri).await?,
        _ => read_directory(server, context, &uri, params).await?,
    };
    let mut claim = server.budget_scope(&context.caller).permit();
    let room = claim.cover_if_large(2 * result.as_str().len() as u64);
    room.map_err(|full| RpcError::new(code::INTERNAL_ERROR, full.to_string()))?;
    Ok(result)
}

async fn get_skill(
    server: &ProtocolServer,
    context: &RequestContext,
    uri: &str,
) -> Result<Json, RpcError> {
    // The whole list, which is fetched again if it is stale: the client may request this skill because it saw that the
    // skill changed.
    let ask = ListRequest::all(context.caller.clone(), ItemKind::Skill);
    let catalog = server.service.list(ask).await;
    let catalog = catalog.map_err(|e| response::list_error(&e))?;
    match catalog.find(uri).filter(|item| item.def.name() == uri) {
        Some(item) => {
            let entry = context.dialect.definition(&item.def);
            let entry = entry.map_err(|why| RpcError::new(code::INTERNAL_ERROR, why))?;
            Ok(context
                .dialect
                .skill(&entry, catalog.cache_hint(), &server.info))
        }
        None => Err(not_found(uri, "this server has no skill with the URI")),
    }
}

/// Returns the children of a directory, from all skills that the caller may see. A skill lists all its files, so no
/// server is contacted.
async fn read_directory(
    server: &ProtocolServer,
    context: &RequestContext,
    uri: &str,
    params: Option<&Json>,
) -> Result<Json, RpcError> {
    let list = |kind| {
        let ask = ListRequest::all(context.caller.clone(), kind);
        async move {
            server
                .service
                .list(ask)
                .await
                .map_err(|e| response::list_error(&e))
        }
    };
    let entries = list(ItemKind::Skill).await?;
    let manifests = entries.items().iter().filter_map(|item| item.manifest());
    let manifests: Vec<_> = manifests.collect();
    let files = manifests.iter().flat_map(|m| m.files.iter().flatten());
    let children = skills::children(uri, files.map(|file| file.uri.as_str()));
    let children =
        children.ok_or_else(|| not_found(uri, "this server has no directory with the URI"))?;
    let resources = list(ItemKind::Resource).await?;
    let start = page_start(&children, params.and_then(|p| p.get("cursor")))?;
    let rest = children.get(start..).unwrap_or_default();
    let page = rest.get(..server.limits.page_items).unwrap_or(rest);
    let next = page.last().filter(|_| page.len() < rest.len());
    let next = next.map(|(last, _)| format!("{CURSOR_PREFIX}{last}"));
    let listed = by_uri(&resources);
    let page: Vec<Json> = page
        .iter()
        .map(|child| match listed.get(child.0.as_str()) {
            Some(def) if !child.1 => {
                let json = context.dialect.definition(def);
                json.unwrap_or_else(|_| write_child(child))
            }
            _ => write_child(child),
        })
        .collect();
    Ok(context
        .dialect
        .directory(&page, next.as_deref(), &server.info))
}

fn by_uri(resources: &Catalog) -> HashMap<&str, &toolgate_core::Definition> {
    let items = resources.items().iter();
    items.map(|item| (item.def.name(), &item.def)).collect()
}

/// Writes a resource for a child that is not in the list of resources.
fn write_child((uri, is_directory): &(String, bool)) -> Json {
    let mut o = ObjectWriter::new();
    o.str("uri", uri);
    o.str("name", uri.rsplit('/').next().unwrap_or(uri));
    let media = match is_directory {
        true => Some(DIRECTORY_TYPE),
        false => skills::media_type(uri),
    };
    if let Some(media) = media {
        o.str("mimeType", media);
    }
    o.finish()
}

fn page_start(children: &[(String, bool)], cursor: Option<Json>) -> Result<usize, RpcError> {
    let Some(cursor) = cursor else { return Ok(0) };
    let last = cursor.string();
    let last = last.as_deref().and_then(|c| c.strip_prefix(CURSOR_PREFIX));
    let place = last.and_then(|last| children.iter().position(|(uri, _)| uri == last));
    place.map(|at| at + 1).ok_or_else(|| {
        response::invalid_params(
            "the cursor does not belong to this directory; read it again from the start",
        )
    })
}

fn not_found(uri: &str, what: &str) -> RpcError {
    let mut data = ObjectWriter::new();
    data.str("uri", uri);
    RpcError::new(code::INVALID_PARAMS, format!("{what} {uri}")).with_data(data.finish())
}
