//! Normalization of definitions and results that servers send.
//!
//! [`definition`] and [`result`] are the only functions that repair, withhold or reject a definition or result of a
//! server. Their output is valid in 2026-07-28; a [`Dialect`](crate::dialect::Dialect) translates it for older
//! revisions. The shapes are those of `schema.json` of all revisions.

mod content;
mod definition;
mod result;
mod schema;
mod shape;
mod uri;

pub use definition::{NormalizedDefinition, definition};
pub use result::result;
pub(crate) use schema::without_booleans;
pub use uri::{is_uri, is_uri_template};

/// Log of repairs, one line each, for example `"description" is null; it is ignored`.
#[derive(Debug, Default)]
pub(crate) struct RepairLog(Vec<String>);

impl RepairLog {
    /// Maximum number of repairs that one definition or result lists.
    const MAX_LINES: usize = 8;

    fn add(&mut self, line: String) {
        if self.0.len() < RepairLog::MAX_LINES {
            self.0.push(line);
        }
    }
}
