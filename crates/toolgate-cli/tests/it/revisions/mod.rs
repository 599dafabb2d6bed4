//! Every revision of the protocol with real peers: clients before the gateway, servers behind it.

mod approval;
mod clients;
mod elicitation;
mod matrix;
#[cfg(feature = "rmcp")]
mod rmcp;
mod servers;

use crate::help::runner;
use serde_json::{Value, json};
use std::path::Path;

/// The config of a server of `interop/servers`, which writes its notes to this file.
fn server(real: &Path, script: &str, package: &str, notes: &Path) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../interop/servers")
        .join(script);
    let runner = runner(real, script);
    let setting = json!({"interop": real, "package": package, "notes": notes});
    section(
        &[&runner.to_string_lossy(), &file.to_string_lossy()],
        &setting,
    )
}

/// The section of a server `peer` that gets its setting as the last argument.
fn section(command: &[&str], setting: &Value) -> String {
    let setting = setting.to_string();
    let words: Vec<&str> = command.iter().copied().chain([setting.as_str()]).collect();
    format!("[server.peer]\ncommand = {words:?}\ntrust_annotations = true\n")
}

/// Returns the notes of a server so far.
fn notes(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}
