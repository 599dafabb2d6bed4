//! The official JSON schemas of the protocol, against every message that our server and our client write in a test.
//!
//! The schemas are vendored as `spec/REVISION/schema.json`.

mod dialects;
mod every;
mod http;
mod itself;
mod odd;
mod schema;
mod table;
mod talk;
mod tapped;

pub(crate) use http::Checked;
pub(crate) use talk::{Side, Talk};
pub(crate) use tapped::{Tapped, tapped};
