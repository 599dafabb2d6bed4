//! Change notifications: list changed and resource updated.

use super::{ProtocolServer, response};
use futures_util::FutureExt;
use std::time::Duration;
use toolgate_core::{Call, Caller, ChangeSet, ChangeStream, ItemKind, ListRequest, Op};
use toolgate_protocol::{
    dialect::Dialect,
    json::ObjectWriter,
    message::RpcError,
    method::notifications::{PROMPTS_CHANGED, RESOURCE_UPDATED, RESOURCES_CHANGED, TOOLS_CHANGED},
};

/// Returns the notifications for a change: method and parameters.
pub(crate) fn change_notifications(changed: &ChangeSet) -> Vec<(&'static str, ObjectWriter)> {
    let lists = changed.lists.iter();
    let lists = lists.map(|kind| (notification_method(*kind), ObjectWriter::new()));
    let updated = changed.updated.iter().map(|uri| {
        let mut params = ObjectWriter::new();
        params.str("uri", uri);
        (RESOURCE_UPDATED, params)
    });
    lists.chain(updated).collect()
}

fn notification_method(kind: ItemKind) -> &'static str {
    match kind {
        ItemKind::Tool => TOOLS_CHANGED,
        ItemKind::Resource | ItemKind::Template | ItemKind::Skill => RESOURCES_CHANGED,
        ItemKind::Prompt => PROMPTS_CHANGED,
    }
}

/// Time for which changes are collected before they are sent as one.
pub(super) const CHANGE_MERGE_WINDOW: Duration = Duration::from_millis(10);

/// Waits for [`CHANGE_MERGE_WINDOW`] and merges the changes of that time into the first one.
pub(crate) async fn merge_following(first: ChangeSet, changes: &mut ChangeStream) -> ChangeSet {
    tokio::time::sleep(CHANGE_MERGE_WINDOW).await;
    let more = changes.next().now_or_never().flatten();
    merge(first, more)
}

/// Merges two changes.
pub(super) fn merge(mut all: ChangeSet, more: Option<ChangeSet>) -> ChangeSet {
    if let Some(more) = more {
        all.lists.extend(more.lists);
        all.updated.extend(more.updated);
        all.lists.sort_unstable();
        all.lists.dedup();
        all.updated.sort_unstable();
        all.updated.dedup();
    }
    all
}

/// Checks that the caller may see a resource.
///
/// # Errors
/// The same error as for an unknown resource.
pub(crate) async fn check_visible(
    server: &ProtocolServer,
    caller: &Caller,
    dialect: &Dialect,
    uri: &str,
) -> Result<(), RpcError> {
    server.check_name_length(uri)?;
    let call = Call::new(
        "",
        caller.clone(),
        Op::Resource,
        uri,
        ObjectWriter::new().finish(),
    );
    for kind in Op::Resource.kinds() {
        let ask = ListRequest::one(caller.clone(), *kind, uri);
        let catalog = server.service.list(ask).await;
        let catalog = catalog.map_err(|e| response::list_error(&e))?;
        if catalog
            .find(uri)
            .is_some_and(|item| item.withheld.is_none())
        {
            return Ok(());
        }
    }
    let named = (Op::Resource, uri);
    match response::failed_call_response(&call.unknown_item_error(), named, dialect, &server.info) {
        Err(error) => Err(error),
        Ok(_) => Ok(()),
    }
}
