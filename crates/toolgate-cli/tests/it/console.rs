//! Web console in a real browser.

mod accessibility;
mod attacks;
mod hostile_text;
mod inbox;
mod load;
mod page;
mod pictures;
mod record;
mod rules;
mod strip;

use crate::help::{Gate, Modern, Response, Setup, TempDir};
use serde_json::{Value, json};
use std::{path::Path, sync::Arc, thread::JoinHandle};

/// Calls a tool of the demo that needs approval, in a thread of its own.
fn note(port: u16, text: &str) -> JoinHandle<Response> {
    let arguments = json!({"name": "n", "text": text});
    std::thread::spawn(move || Modern::call(port, &json!(1), "demo_note", arguments))
}

fn config(more: &str) -> String {
    let program = env!("CARGO_BIN_EXE_toolgate");
    format!(
        "{more}\n[server.demo]\ncommand = [{program:?}, \"demo-server\"]\ntrust_annotations = true\n"
    )
}

/// Starts a gateway with one server `s` that offers these definitions and results (`interop/servers/changing.py`).
fn offering(offer: &Value, more: &str) -> Gate {
    let data = Arc::new(TempDir::new("console"));
    let file = data.write("offer.json", &offer.to_string());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/servers/changing.py");
    let config = format!("{more}\n[server.s]\ncommand = [\"python3\", {script:?}, {file:?}]\n");
    Setup::config(config).start_in(data)
}

/// Definition of a tool with these properties of its arguments.
fn tool(name: &str, description: &str, properties: Value) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object", "properties": properties}})
}

/// Calls a tool in a thread of its own.
fn call(gate: &Gate, tool: &'static str, arguments: Value) -> JoinHandle<Response> {
    let port = gate.port;
    std::thread::spawn(move || Modern::call(port, &json!(1), tool, arguments))
}
