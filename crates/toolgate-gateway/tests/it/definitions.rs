//! Definitions that are not valid, through the whole program: each is named with the reason, and the others stay usable.

use crate::help::{Gate, LONG, SOON, Session, Setup, TempDir, answer_of, output, toolgate, until};
use serde_json::{Value, json};
use std::{path::Path, sync::Arc};

/// A server whose results stand in a file, and one that is in order.
struct Canned {
    data: Arc<TempDir>,
    config: String,
}

impl Canned {
    fn new(offer: &Value) -> Canned {
        let data = Arc::new(TempDir::new("definitions"));
        let good = json!({"tools/list": {"tools": [tool("fine", json!({"type": "object"}))]},
            "call": {"fine": {"content": [{"type": "text", "text": "fine"}]}}});
        let server = |name: &str, offer: &Value| {
            let file = data.write(&format!("{name}.json"), &offer.to_string());
            let script =
                Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/servers/canned.py");
            format!("[server.{name}]\ncommand = [\"python3\", {script:?}, {file:?}]\n")
        };
        let config = format!(
            "{}{}[[rule]]\ntools = [\"*\"]\nexcept = [\"odd.secret\"]\nthen = \"allow\"\n[[rule]]\ntools = [\"odd.secret\"]\nthen = \"deny\"\n",
            server("odd", offer),
            server("good", &good)
        );
        Canned { data, config }
    }

    fn start(&self) -> Gate {
        let gate = Setup::config(self.config.as_str()).start_in(self.data.clone());
        until("both servers are listed", LONG, || {
            let state = gate.state();
            let servers = state["servers"].as_array()?;
            let running = servers.iter().all(|server| server["state"] == "running");
            let good = state["tools"]
                .as_array()?
                .iter()
                .any(|t| t["server"] == "good");
            (running && good).then_some(())
        });
        gate
    }
}

fn tool(name: &str, schema: Value) -> Value {
    json!({"name": name, "inputSchema": schema, "annotations": {"readOnlyHint": true}})
}

/// The notes of the server `odd` that the console gets.
fn notes(gate: &Gate) -> Vec<Value> {
    let state = gate.state();
    let mut servers = state["servers"].as_array().unwrap().iter();
    let odd = servers.find(|server| server["id"] == "odd").unwrap();
    odd["notes"].as_array().unwrap().clone()
}

#[test]
fn a_dropped_tool_is_named_with_the_reason_in_every_place() {
    let fine = tool("a", json!({"type": "object"}));
    let canned = Canned::new(&json!({"tools/list": {"tools": [fine, fine, {"title": "no name"}]}}));
    let gate = canned.start();
    let noted = until("the notes are there", SOON, || {
        let notes = notes(&gate);
        (notes.len() == 2).then_some(notes)
    });
    let place = json!({"kind": "tool", "name": "number 3", "action": "dropped", "reason": "the tool has no \"name\"",
        "text": "tool number 3: dropped: the tool has no \"name\""});
    assert!(noted.contains(&place), "{noted:?}");
    let line = "tool number 3: dropped: the tool has no \"name\"";
    for command in ["tools", "status"] {
        let printed = gate.cli(&[command]);
        assert!(printed.contains(line), "{command}: {printed}");
    }
    let said = |gate: &Gate| {
        gate.said()
            .iter()
            .filter(|said| said.contains(line))
            .count()
    };
    until("standard error has it", SOON, || {
        (said(&gate) == 1).then_some(())
    });
    gate.state();
    assert_eq!(said(&gate), 1, "once");
    let checked = output(
        toolgate()
            .args(["check", "--servers", "--data"])
            .arg(canned.data.path())
            .arg("--config")
            .arg(canned.data.file("toolgate.toml")),
    );
    let checked = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(checked.contains(&format!("odd: {line}")), "{checked}");
    let records = gate.audit();
    let is = |record: &&Value| record["ev"] == "definition" && record["name"] == "number 3";
    let found: Vec<&Value> = records.iter().filter(is).collect();
    assert_eq!(found.len(), 1, "{records:?}");
    assert_eq!(
        (found[0]["server"].as_str(), found[0]["state"].as_str()),
        (Some("odd"), Some("dropped"))
    );
    gate.stop();
}

/// A list that cannot be read is not an empty list: the server has a failure, and its other lists stay.
#[test]
fn a_list_that_fails_is_shown_as_the_failure_of_its_server() {
    let prompts = json!({"prompts": [{"name": "greet"}]});
    for (list, why) in [
        (json!({"tools": null}), "sent a malformed list"),
        (
            json!({"jsonrpc_error": {"code": -32603, "message": "database down"}}),
            "database down",
        ),
    ] {
        let canned = Canned::new(&json!({"tools/list": list, "prompts/list": prompts}));
        let gate = canned.start();
        until("the failure is noted", SOON, || {
            let notes = notes(&gate);
            let failed = notes.iter().find(|note| note["action"] == "failed")?;
            failed["reason"].as_str()?.contains(why).then_some(())
        });
        assert!(gate.cli(&["tools"]).contains("odd: tool list: failed: "));
        assert!(gate.cli(&["status"]).contains("tool list: failed: "));
        assert!(gate.cli(&["prompts"]).contains("odd.prompt:greet"));
        let session = Session::open(gate.port);
        let id = json!(2);
        let listed = session.post(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"}));
        let listed = answer_of(&listed, &id);
        assert_eq!(
            listed["result"]["tools"][0]["name"], "good_fine",
            "{listed}"
        );
        gate.stop();
    }
}
