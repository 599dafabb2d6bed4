//! Roots: directories and files that a server may use.

use super::errors::unusable_setting;
use crate::handlers::ask::Root;
use toolgate_core::{Error, Json};
use toolgate_protocol::json::ObjectWriter;

/// Checks that all roots are `file://` URIs.
///
/// # Errors
/// Names the first root that is not.
pub(super) fn check(roots: &[Root]) -> Result<(), Error> {
    match roots.iter().find(|root| !root.uri.starts_with("file://")) {
        Some(root) => Err(unusable_setting(format!(
            "the root {:?} is not a file:// URI",
            root.uri
        ))),
        None => Ok(()),
    }
}

/// Returns the result of `roots/list`.
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
