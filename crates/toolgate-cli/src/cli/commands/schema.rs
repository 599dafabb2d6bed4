//! `toolgate schema`: JSON Schemas of what the commands print with `--json`.

use super::{CommandError, Result, print};
use crate::{
    args::SchemaOptions,
    cli::output::{OUTPUT_SCHEMAS, OutputSchema},
    config::nearest_names,
};
use std::process::ExitCode;

/// Prints the schema of a command, or the commands that have one.
pub(super) fn run(wanted: &SchemaOptions) -> Result<ExitCode> {
    if wanted.command.is_empty() {
        let lines = OUTPUT_SCHEMAS.iter().map(|one| format!("{}\n", one.name()));
        return print(&lines.collect::<String>());
    }
    let name = wanted.command.join(" ");
    match OutputSchema::find(&name) {
        Some(schema) => print(&schema.text()),
        None => {
            let names: Vec<String> = OUTPUT_SCHEMAS.iter().map(OutputSchema::name).collect();
            Err(CommandError::Usage(format!(
                "the command {name:?} has no --json{}",
                nearest_names(&name, names.iter().map(String::as_str))
            )))
        }
    }
}
