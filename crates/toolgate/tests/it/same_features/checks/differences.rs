//! Behavior in which the counters differ, as the pages for people who switch say.

use super::{ProgramCommand, RawServer};
use serde_json::json;

/// What a server accepts.
#[derive(Debug, PartialEq)]
pub(crate) struct Accepts {
    /// An argument that the tool does not have.
    pub(crate) unknown_argument: bool,
    /// An argument that the prompt does not have.
    pub(crate) unknown_prompt_argument: bool,
    /// The text of a number, where the schema requires a number.
    pub(crate) text_as_number: bool,
    /// A number above the maximum of the Rust type `i32`, which the schema of the Rust programs has too.
    pub(crate) large_number: bool,
}

pub(crate) async fn differences(command: ProgramCommand) -> Accepts {
    let mut server = RawServer::start(&command).await;
    let mut accepts = async |arguments| server.accepts_call("sum", arguments).await;
    Accepts {
        unknown_argument: accepts(json!({"a": 1, "b": 2, "c": 3})).await,
        text_as_number: accepts(json!({"a": "1", "b": 2})).await,
        large_number: accepts(json!({"a": 3_000_000_000_u32, "b": 2})).await,
        unknown_prompt_argument: {
            let arguments = json!({"message": "hi", "tone": "warm"});
            server.accepts_prompt("example_prompt", arguments).await
        },
    }
}
