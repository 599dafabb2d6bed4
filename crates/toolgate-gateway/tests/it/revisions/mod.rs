//! Every revision of the protocol with real peers: clients before the gateway, servers behind it.

mod clients;
mod servers;

use serde_json::json;
use std::path::Path;

/// The config of a server of `interop/servers`, which writes its notes to this file.
fn server(real: &Path, id: &str, script: &str, package: &str, notes: &Path) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../interop/servers")
        .join(script);
    let setting = json!({"interop": real, "package": package, "notes": notes}).to_string();
    let runner = if script.ends_with(".py") {
        real.join("venv/bin/python")
    } else {
        "node".into()
    };
    format!(
        "[server.{id}]\ncommand = [{runner:?}, {file:?}, {setting:?}]\ntrust_annotations = true\n"
    )
}

/// What a server noted so far.
fn notes(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}
