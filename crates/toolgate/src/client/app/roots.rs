//! The folders that a server may work on.

use super::errors::unusable;
use crate::handlers::ask::Root;
use toolgate_core::{Error, Json};
use toolgate_wire::json::ObjectWriter;

/// Checks roots: they are `file://` addresses.
///
/// # Errors
/// Names the one that is none.
pub(super) fn check(roots: &[Root]) -> Result<(), Error> {
    match roots.iter().find(|root| !root.uri.starts_with("file://")) {
        Some(root) => Err(unusable(format!(
            "the root {:?} is no file:// address",
            root.uri
        ))),
        None => Ok(()),
    }
}

/// The result of `roots/list`.
pub(super) fn result(roots: &[Root]) -> Json {
    let mut o = ObjectWriter::new();
    o.array("roots", |a| {
        for root in roots {
            a.object(|o| {
                o.str("uri", &root.uri);
                if let Some(name) = &root.name {
                    o.str("name", name);
                }
            });
        }
    });
    o.finish()
}
