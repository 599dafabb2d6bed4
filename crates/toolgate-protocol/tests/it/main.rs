//! The strict reader, as foreign bytes meet it.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "tests"
)]

mod codec;
mod differentials;
mod edits;
mod fidelity;
mod hostile;
mod laws;
mod limits;
mod messages;
mod mutations;
mod random;
mod serde;
mod server_text;
mod tables;

use toolgate_protocol::json::{Json, JsonLimits, ReadError};

fn read(text: &str) -> Result<Json, ReadError> {
    Json::read(text.as_bytes().to_vec(), &JsonLimits::default())
}

fn json(text: &str) -> Json {
    read(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}
