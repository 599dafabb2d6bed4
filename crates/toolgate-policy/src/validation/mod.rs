//! Validation of arguments and results against JSON Schema.

pub(crate) mod arguments;
pub(crate) mod outbound_secrets;
pub(crate) mod output_schema;
pub(crate) mod placeholders;
pub(crate) mod schema;
