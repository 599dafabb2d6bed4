//! Output of the commands: tables for people, and JSON with a published schema for programs.
//!
//! A command has a struct for its output, and makes both from it. Lists are one JSON array, and other outputs one JSON
//! object. Only an output that may never end, such as that of `audit tail --follow`, is a JSON object per line.

mod schemas;
mod timestamp;

use crate::cli::commands::{CommandError, print};
pub(crate) use crate::output_table::{OutputTable, TableColumn};
pub(crate) use schemas::{OUTPUT_SCHEMAS, OutputSchema};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::process::ExitCode;
pub(crate) use timestamp::OutputTime;
use toolgate_core::visible;

/// Prints a JSON document.
pub(crate) fn print_json(output: &impl Serialize) -> Result<ExitCode, CommandError> {
    let text = serde_json::to_string_pretty(output);
    let text = text.map_err(|error| format!("cannot write the output as JSON: {error}"))?;
    // The escapes are those of JSON, and stand only in strings, so the document stays the same.
    print(&format!("{}\n", visible(&text)))
}

/// Formats a JSON object as one line, for outputs that may never end.
pub(crate) fn json_line(output: &impl Serialize) -> Result<String, CommandError> {
    let text = serde_json::to_string(output);
    let text = text.map_err(|error| format!("cannot write the output as JSON: {error}"))?;
    Ok(format!("{}\n", visible(&text)))
}

/// Reads the answer of a gateway.
///
/// # Errors
/// The gateway has another version.
pub(crate) fn read_answer<T: DeserializeOwned>(answer: Value) -> Result<T, CommandError> {
    serde_json::from_value(answer).map_err(|error| {
        CommandError::Failure(format!(
            "the answer of the gateway cannot be read ({error}); the command and the gateway may have different versions: restart the gateway"
        ))
    })
}
