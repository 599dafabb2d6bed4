//! The official JSON schemas of the protocol, against every message that our server and our client write in a test.
//!
//! The schemas are no part of the project. They are looked for in the folder that `TOOLGATE_SPEC` names, else in
//! `../shared/spec` beside the project, as `REVISION/schema.json`. Without them nothing is checked, and a line says so.
//! A folder that `TOOLGATE_SPEC` names has to be there.

mod every;
mod http;
mod itself;
mod schema;
mod table;
mod talk;
mod tapped;

pub(crate) use http::Checked;
pub(crate) use talk::{Side, Talk};
pub(crate) use tapped::{Tapped, tapped};
