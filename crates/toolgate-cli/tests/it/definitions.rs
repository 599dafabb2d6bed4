//! Definitions that are not valid, through the whole program: each is named with the reason, and the others stay usable.

use crate::help::{
    Gate, LONG, Modern, SOON, Session, Setup, TempDir, answer_of, output, toolgate, until,
};
use serde_json::{Value, json};
use std::borrow::Borrow;
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
            "{}{}[[rule]]\ntools = [\"*\"]\nexcept = [\"odd.secret\"]\naction = \"allow\"\n[[rule]]\ntools = [\"odd.secret\"]\naction = \"deny\"\n",
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

fn tool(name: &str, schema: impl Borrow<Value>) -> Value {
    json!({"name": name, "inputSchema": schema.borrow(), "annotations": {"readOnlyHint": true}})
}

/// The notes of the server `odd` that the console gets.
fn notes(gate: &Gate) -> Vec<Value> {
    let state = gate.state();
    let mut servers = state["servers"].as_array().unwrap().iter();
    let odd = servers.find(|server| server["id"] == "odd").unwrap();
    odd["notes"].as_array().unwrap().clone()
}

/// Holds: TOOL-35
#[test]
fn a_dropped_tool_is_named_with_the_reason_in_every_place() {
    let fine = tool("a", json!({"type": "object"}));
    let canned = Canned::new(&json!({"tools/list": {"tools": [fine, fine, {"title": "no name"}]}}));
    let gate = canned.start();
    let noted = until("the notes are there", SOON, || {
        let notes = notes(&gate);
        (notes.len() == 2).then_some(notes)
    });
    let place = json!({"kind": "tool", "name": "number 3", "action": "dropped", "reason": "the \"name\" of the tool is missing or not a string",
        "text": "tool number 3: dropped: the \"name\" of the tool is missing or not a string"});
    assert!(noted.contains(&place), "{noted:?}");
    let line = "tool number 3: dropped: the \"name\" of the tool is missing or not a string";
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

const SESSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// The answer to a request in a session of a revision, or in 2026-07-28; it is checked against the official schema.
fn ask(gate: &Gate, revision: &'static str, method: &str, params: Value) -> Value {
    let id = json!(1);
    if revision == "2026-07-28" {
        let name = params["name"].as_str().map(str::to_owned);
        return Modern::ask(
            gate.port,
            name.as_deref(),
            &Modern::body(&id, method, params),
        );
    }
    let session = Session::of(gate.port, revision);
    let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    answer_of(&session.post(&request), &id)
}

fn revisions() -> impl Iterator<Item = &'static str> {
    SESSIONS.into_iter().chain(["2026-07-28"])
}

fn names(listed: &Value) -> Vec<&str> {
    let tools = listed["result"]["tools"].as_array();
    let tools = tools.unwrap_or_else(|| panic!("{listed}"));
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

#[test]
fn one_bad_definition_leaves_all_other_tools_usable_in_every_revision() {
    let notype = json!({"properties": {"a": {"type": "string"}, "b": true}});
    let mut ill = tool("ill", &notype);
    ill["description"] = json!(null);
    ill["_meta"] = json!("v1");
    ill["annotations"] = json!({"readOnlyHint": "yes"});
    let text = json!({"type": "string"});
    let tools = json!([
        tool("notype", &notype),
        ill,
        tool("string", &text),
        tool("secret", &text),
        tool("none", &json!(null))
    ]);
    let done = json!({"content": [{"type": "text", "text": "done"}]});
    let offer = json!({"tools/list": {"tools": tools, "nextCursor": ""}, "call": {
        "notype": done, "ill": {"content": [], "structuredContent": {"n": 1}},
        "none": {"content": [], "structuredContent": [1]},
    }});
    let gate = Canned::new(&offer).start();
    let texts = |revision, tool: &str| {
        let answer = ask(
            &gate,
            revision,
            "tools/call",
            json!({"name": tool, "arguments": {"a": "x"}}),
        );
        match answer["result"]["content"].as_array() {
            Some(content) => content
                .iter()
                .filter_map(|block| block["text"].as_str())
                .collect(),
            None => answer["error"]["message"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        }
    };
    for revision in revisions() {
        let listed = ask(&gate, revision, "tools/list", json!({}));
        let expected = ["odd_notype", "odd_ill", "odd_none", "good_fine"];
        assert_eq!(names(&listed), expected, "{revision}");
        assert_eq!(texts(revision, "odd_notype"), "done", "{revision}");
        assert_eq!(texts(revision, "good_fine"), "fine", "{revision}");
        // Structured content that a client cannot take is text.
        let object = if revision < "2025-06-18" {
            r#"{"n": 1}"#
        } else {
            ""
        };
        let array = if revision < "2026-07-28" { "[1]" } else { "" };
        assert_eq!(texts(revision, "odd_ill"), object, "{revision}");
        assert_eq!(texts(revision, "odd_none"), array, "{revision}");
        let withheld = texts(revision, "odd_string");
        let why = "the tool odd_string is withheld: the root \"type\" of its \"inputSchema\" is not \"object\"";
        assert!(withheld.starts_with(why), "{revision}: {withheld}");
        assert_eq!(
            texts(revision, "odd_secret"),
            "unknown tool: odd_secret",
            "a rule hides it"
        );
        assert_eq!(texts(revision, "odd_absent"), "unknown tool: odd_absent");
    }
    let tools = gate.cli(&["tools"]);
    for line in ["odd.string", "odd.secret"] {
        let line = tools.lines().find(|one| one.starts_with(line)).unwrap();
        assert!(line.contains("withheld  the root \"type\""), "{line}");
    }
    let ill = tools
        .lines()
        .find(|one| one.starts_with("odd.ill"))
        .unwrap();
    for repair in [
        "\"description\" is not a string",
        "\"_meta\" is not an object",
        "\"annotations.readOnlyHint\"",
    ] {
        assert!(ill.contains(repair), "{repair}: {ill}");
    }
    let ends = gate.audit();
    let withheld = ends
        .iter()
        .any(|record| record.to_string().contains("refused_withheld"));
    assert!(withheld, "the audit log has the class of the error");
    gate.stop();
}

#[test]
fn names_of_tools_stay_as_the_specification_allows() {
    let any = json!({"type": "object"});
    let mut never = tool("admin.tools.list", &any);
    never["execution"] = json!({"taskSupport": "forbidden"});
    let long = "n".repeat(90);
    let tools = json!([
        never,
        tool("log/show", &any),
        tool(&long, &any),
        tool("secret", &any)
    ]);
    let done = json!({"content": [{"type": "text", "text": "done"}]});
    let call = json!({"admin.tools.list": done, "log/show": done, (long.as_str()): done});
    let mut canned = Canned::new(&json!({"tools/list": {"tools": tools}, "call": call}));
    for (setting, dotted, cut) in [
        ("specification", "odd_admin.tools.list", false),
        ("portable", "odd_admin-tools-list", true),
    ] {
        let config = canned.config.replace("tool_names", "#");
        canned.config = format!("tool_names = \"{setting}\"\n{}", config);
        let gate = canned.start();
        let listed = ask(&gate, "2025-11-25", "tools/list", json!({}));
        let names = names(&listed);
        assert_eq!(names[..2], [dotted, "odd_log-show"], "{names:?}");
        assert_eq!(names[2] != format!("odd_{long}"), cut, "{names:?}");
        let support: Vec<&Value> = listed["result"]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| &tool["execution"]["taskSupport"])
            .collect();
        assert_eq!(support[..2], ["forbidden", "optional"], "{listed}");
        for name in &names[..3] {
            let answer = ask(
                &gate,
                "2025-11-25",
                "tools/call",
                json!({"name": name, "arguments": {}}),
            );
            assert_eq!(
                answer["result"]["content"][0]["text"], "done",
                "{name}: {answer}"
            );
        }
        // Rules and commands use the server's own names, whatever clients see.
        let tools = gate.cli(&["tools"]);
        assert!(
            tools.contains("odd.admin.tools.list ") && tools.contains("odd.log/show "),
            "{tools}"
        );
        gate.stop();
    }
}

/// The answer to a call, and whether it reached the server.
fn called(session: &Session, tool: &str, arguments: Value) -> Result<(), String> {
    let id = json!(7);
    let answer = answer_of(&session.call(&id, tool, arguments), &id);
    let text = answer["result"]["content"][0]["text"].as_str();
    match text {
        Some("reached") => Ok(()),
        _ => Err(answer.to_string()),
    }
}

/// Schemas with look-around, of draft-04 and with a type that does not exist hide no tool.
#[test]
fn a_tool_whose_schema_is_checked_in_part_is_used_and_marked() {
    let of = |x: Value| json!({"type": "object", "properties": {"x": x}, "required": ["x"]});
    let mail = json!({"type": "string", "pattern": "^(?!\\.)(?!.*\\.\\.)[^@]+@[^@]+$"});
    let limit = json!({"type": "integer", "minimum": 0, "exclusiveMinimum": true});
    let broken = json!({"type": "int", "minimum": 1});
    let tuple = json!({"items": [{"$ref": "#/definitions/s", "maxLength": 3}]});
    let mut tuple = of(tuple);
    tuple["definitions"] = json!({"s": {"type": "string"}});
    let reached = json!({"content": [{"type": "text", "text": "reached"}]});
    let names = ["mail", "limit", "any", "broken", "tuple"];
    let call: serde_json::Map<String, Value> = names
        .iter()
        .map(|name| ((*name).to_owned(), reached.clone()))
        .collect();
    let canned = Canned::new(&json!({"call": call, "tools/list": {"tools": [
        tool("mail", of(mail)), tool("limit", of(limit)), tool("any", of(json!({"type": "any"}))),
        tool("broken", of(broken)), tool("tuple", tuple),
    ]}}));
    let gate = canned.start();
    let line = "partly checked: inputSchema at /properties/x/type (the value is not a type";
    let noted = until("the note is there", SOON, || {
        let notes = notes(&gate);
        (!notes.is_empty()).then_some(notes)
    });
    assert_eq!(noted.len(), 1, "{noted:?}");
    assert_eq!(noted[0]["action"], "partly checked");
    for command in ["tools", "status"] {
        let printed = gate.cli(&[command]);
        let marked = printed
            .lines()
            .filter(|said| said.contains("broken") && said.contains(line));
        assert_eq!(marked.count(), 1, "{command}: {printed}");
    }
    let records = gate.audit();
    let marked = records
        .iter()
        .filter(|record| record["state"] == "partly checked");
    assert_eq!(marked.count(), 1, "{records:?}");
    let session = Session::open(gate.port);
    for (tool, good, bad) in [
        ("odd_mail", json!("a@b"), json!("a..b@c")),
        ("odd_limit", json!(1), json!(0)),
        ("odd_any", json!([]), Value::Null),
        ("odd_broken", json!(1), json!(0)),
        ("odd_tuple", json!(["abc"]), json!(["abcd"])),
    ] {
        called(&session, tool, json!({"x": good})).unwrap_or_else(|why| panic!("{tool}: {why}"));
        if !bad.is_null() {
            let why = called(&session, tool, json!({"x": bad})).unwrap_err();
            assert!(why.contains("invalid arguments"), "{tool}: {why}");
        }
    }
    gate.stop();
}

/// The server fills in what a call leaves out; what is forwarded does not change.
#[test]
fn a_required_argument_with_a_default_may_be_left_out() {
    let schema = json!({"type": "object", "required": ["n", "m"], "properties": {"n": {"type": "integer", "default": 3}, "m": {}}});
    let reached = json!({"content": [{"type": "text", "text": "reached"}]});
    let offer = json!({"call": {"fill": reached}, "tools/list": {"tools": [tool("fill", schema)]}});
    for strict in [false, true] {
        let mut canned = Canned::new(&offer);
        if strict {
            let key = "[server.odd]\nrequired_with_default = \"required\"\n";
            canned.config = canned.config.replacen("[server.odd]\n", key, 1);
        }
        let gate = canned.start();
        let session = Session::open(gate.port);
        let sent = called(&session, "odd_fill", json!({"m": 1}));
        assert_eq!(sent.is_ok(), !strict, "{sent:?}");
        assert!(called(&session, "odd_fill", json!({"m": 1, "n": 2})).is_ok());
        for bad in [json!({}), json!({"n": 1}), json!({"m": 1, "n": "x"})] {
            let why = called(&session, "odd_fill", bad).unwrap_err();
            assert!(why.contains("invalid arguments"), "{why}");
        }
        gate.stop();
    }
}
