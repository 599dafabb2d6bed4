//! `[search]`: tools are found and called by two tools, and judged as if they had been called directly.

use crate::help::{Gate, LONG, Modern, Reply, Session, Setup, answer_of, until, upstream};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

/// Tools of the server.
const MANY: usize = 1000;
/// The words that its tools are made of.
const VERBS: [&str; 10] = [
    "create", "delete", "export", "find", "import", "list", "merge", "read", "send", "update",
];
const NOUNS: [&str; 10] = [
    "account",
    "calendar",
    "contract",
    "document",
    "invoice",
    "message",
    "order",
    "picture",
    "ticket",
    "warehouse",
];

/// The tool of that number: `delete_invoice_7` and the like.
fn tool(number: usize) -> Value {
    let (verb, noun, part) = (VERBS[number / 100], NOUNS[number / 10 % 10], number % 10);
    json!({
        "name": format!("{verb}_{noun}_{part}"),
        "description": format!("Can {verb} one {noun} of part {part}."),
        "annotations": {"readOnlyHint": verb != "delete"},
        "inputSchema": {
            "type": "object", "required": ["id"], "additionalProperties": false,
            "properties": {"id": {"type": "integer"}, "note": {"type": "string"}},
        },
    })
}

/// A server with so many tools, and how often they were listed.
fn server(many: usize) -> (String, Arc<AtomicUsize>) {
    let lists = Arc::new(AtomicUsize::new(0));
    let count = lists.clone();
    let tools: Vec<Value> = (0..many).map(tool).collect();
    let address = upstream(move |message| {
        let answer = |result: Value| Reply::result(message, result);
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => answer(json!({
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "many", "version": "1"},
            })),
            "tools/list" => {
                count.fetch_add(1, Relaxed);
                answer(json!({ "tools": tools }))
            }
            "tools/call" => {
                let (name, arguments) =
                    (&message["params"]["name"], &message["params"]["arguments"]);
                // The invisible character has to go on every way.
                let text = format!("{name} of {arguments} \u{200b}done");
                let failed = arguments["id"] == 13;
                answer(json!({"content": [{"type": "text", "text": text}], "isError": failed}))
            }
            _ => answer(json!({})),
        }
    });
    (address, lists)
}

fn config(address: &str, more: &str) -> String {
    format!(
        "[limits]\nrate = \"1000/s\"\n[server.many]\nurl = {address:?}\ntrust_annotations = true\n{more}"
    )
}

fn names(port: u16) -> Vec<String> {
    let list = Modern::body(&json!(1), "tools/list", json!({}));
    let list = Modern::ask(port, None, &list)["result"]["tools"].clone();
    let names = list.as_array().unwrap().iter();
    names
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

fn call(port: u16, tool: &str, arguments: Value) -> Value {
    let answer = Modern::call(port, &json!(2), tool, arguments);
    let mut answer = answer_of(&answer, &json!(2));
    answer.as_object_mut().unwrap().remove("id");
    answer
}

fn through(port: u16, tool: &str, arguments: Value) -> Value {
    call(
        port,
        "call_tool",
        json!({"name": tool, "arguments": arguments}),
    )
}

fn found(port: u16, arguments: Value) -> (Vec<String>, u64) {
    let answer = call(port, "find_tools", arguments);
    let found = &answer["result"]["structuredContent"];
    let tools = found["tools"].as_array().expect("tools").iter();
    let names = tools.map(|tool| tool["name"].as_str().unwrap().to_owned());
    (names.collect(), found["found"].as_u64().unwrap())
}

fn text(answer: &Value) -> String {
    let text = answer["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("no text in {answer}"))
        .to_owned()
}

#[test]
fn a_thousand_tools_are_two_and_those_that_somebody_wants_listed() {
    let (address, lists) = server(MANY);
    let more = "[search]\n[[search.direct]]\ntools = [\"many.read_ticket_*\"]\nexcept = [\"*_9\"]\n\
                callers = [\"anonymous@*\"]\n[[search.direct]]\ntools = [\"many.*\"]\ncallers = [\"key:other\"]\n\
                [[rule]]\ntools = [\"many.export_*\"]\naction = \"deny\"\n";
    let gate = Setup::config(config(&address, more)).start();
    let port = gate.port;
    let listed = names(port);
    let asked = lists.load(Relaxed);
    assert_eq!(listed[..2], ["find_tools", "call_tool"]);
    assert_eq!(listed.len(), 2 + 9, "{listed:?}");
    assert!(
        listed[2..]
            .iter()
            .all(|name| name.starts_with("many_read_ticket_"))
    );

    let (first, count) = found(port, json!({"query": "delete an invoice"}));
    assert_eq!(first.len(), 8);
    assert!(
        first
            .iter()
            .all(|name| name.starts_with("many_delete_invoice_")),
        "{first:?}"
    );
    // All that delete, and all others of invoices but those that are not to be exported: 100 + 90 - 10.
    assert_eq!(count, 180);
    let (one, _) = found(port, json!({"query": "merge_warehouse_4", "limit": 1}));
    assert_eq!(one, ["many_merge_warehouse_4"]);
    // What a rule hides cannot be found either.
    let (exports, none) = found(port, json!({"query": "export"}));
    assert!(exports.is_empty() && none == 0, "{exports:?}");
    let answer = call(
        port,
        "find_tools",
        json!({"query": "delete an invoice", "limit": 1}),
    );
    let told = &answer["result"]["structuredContent"]["tools"][0];
    let given = tool(140);
    assert_eq!(told["inputSchema"], given["inputSchema"]);
    assert_eq!(told["description"], given["description"]);

    let done = through(port, "many_read_order_3", json!({"id": 7}));
    assert_eq!(text(&done), "\"read_order_3\" of {\"id\":7} done");
    let none = call(port, "call_tool", json!({"name": "many_read_order_3"}));
    assert!(text(&none).contains("at /id expected a value"), "{none}");
    let slip = through(port, "many_raed_order_3", json!({"id": 7}));
    assert_eq!(slip["result"]["isError"], true);
    assert!(
        text(&slip).contains("unknown tool: many_raed_order_3 (did you mean many_read_order_3 or"),
        "{slip}"
    );
    // Neither says that there is something hidden.
    let hidden = text(&through(port, "many_export_order_3", json!({"id": 7})));
    assert!(
        !hidden.contains("or many_export") && !hidden.contains("mean many_export"),
        "{hidden}"
    );

    for (arguments, why) in [
        (
            json!({"name": "x", "arguments": []}),
            "/arguments expected an object",
        ),
        (json!({"arguments": {}}), "/name expected a value"),
        (json!({"name": "x", "args": {}}), "/args"),
    ] {
        let wrong = call(port, "call_tool", arguments);
        assert!(text(&wrong).contains(why), "{why}: {wrong}");
    }
    let wrong = call(port, "find_tools", json!({"query": "x", "limit": 51}));
    assert!(
        text(&wrong).contains("/limit expected at most 50"),
        "{wrong}"
    );
    assert_eq!(lists.load(Relaxed), asked, "the list is kept");
    let records = gate.audit();
    let begun: Vec<&str> = records
        .iter()
        .filter(|r| r["ev"] == "call.begin")
        .filter_map(|r| r["tool"].as_str())
        .collect();
    assert!(begun.contains(&"toolgate.find_tools") && begun.contains(&"many.read_order_3"));
    assert!(!begun.contains(&"toolgate.call_tool"));
    let wrong = |r: &&Value| r["tool"] == "toolgate.call_tool" && r["ev"] == "deny";
    assert_eq!(records.iter().filter(wrong).count(), 3);
    gate.stop();
}

/// Returns the decision in a record.
fn judged(record: &Value) -> Value {
    let keys = [
        "ev",
        "caller",
        "srv",
        "tool",
        "name",
        "method",
        "era",
        "dec",
        "code",
        "by",
        "out",
        "args_mac",
        "res_mac",
        "tool_hash",
        "trail",
        "policy_hash",
    ];
    keys.iter().map(|key| record[*key].clone()).collect()
}

/// The records of the calls since the last look.
fn new_records(gate: &Gate, seen: &mut usize) -> Vec<Value> {
    let records = gate.audit();
    let of_calls = |r: &&Value| {
        ["call.begin", "call.end", "deny"]
            .iter()
            .any(|ev| r["ev"] == *ev)
    };
    let new = records.iter().filter(of_calls).skip(*seen);
    let new: Vec<Value> = new.map(judged).collect();
    *seen += new.len();
    new
}

/// The law: the same verdict, the same words and the same record, whichever way a tool is called.
#[test]
fn the_same_verdict_direct_and_through_call_tool() {
    let (address, _) = server(MANY);
    let rules = "[search]\n\
                 [[rule]]\ntools = [\"many.delete_*\"]\naction = \"deny\"\n\
                 [[rule]]\ntools = [\"many.send_*\"]\nwhen = \"args.id > 100\"\naction = \"deny\"\n\
                 [[rule]]\ntools = [\"many.merge_order_1\"]\naction = \"ask\"\n\
                 [[rule]]\ntools = [\"many.list_order_1\"]\naction = \"allow\"\nrate = \"2/h\"\n";
    let gate = Setup::config(config(&address, rules)).start();
    let port = gate.port;
    let mut seen = 0;
    names(port);
    for name in ["delete_order_1", "send_order_1", "read_order_1", "nothing"] {
        for arguments in [
            json!({"id": 1}),
            json!({"id": 101}),
            json!({"id": 13}),
            json!({"id": "1"}),
            json!({"id": 1, "more": 2}),
            json!({"id": 1, "note": "ghp_".to_owned() + &"k3Y9".repeat(9)}),
            json!({}),
        ] {
            let wire = format!("many_{name}");
            let secret = arguments["note"].is_string();
            if secret && name != "nothing" {
                continue;
            }
            let direct = call(port, &wire, arguments.clone());
            let of_direct = new_records(&gate, &mut seen);
            let other = through(port, &wire, arguments.clone());
            let of_other = new_records(&gate, &mut seen);
            assert_eq!(of_direct, of_other, "{name} {arguments}");
            match direct.get("error") {
                // A model reads a failure of call_tool, which it knows.
                Some(error) => {
                    let says = text(&other);
                    assert!(
                        says.starts_with(error["message"].as_str().unwrap()),
                        "{says}"
                    );
                    assert!(says.contains("unknown tool"), "{says}");
                }
                None => assert_eq!(direct, other, "{name} {arguments}"),
            }
        }
    }
    // Before 2025-11-25 bad arguments are an error of the protocol, of the inner tool as well.
    let old = Session::of(port, "2025-06-18");
    let direct = old.call(&json!(1), "many_read_order_1", json!({"id": "x"}));
    let inner = json!({"name": "many_read_order_1", "arguments": {"id": "x"}});
    let other = old.call(&json!(1), "call_tool", inner);
    assert_eq!(answer_of(&direct, &json!(1)), answer_of(&other, &json!(1)));
    // What a person has to see waits as it does directly, and shows the inner call.
    let waits = thread::spawn(move || through(port, "many_merge_order_1", json!({"id": 5})));
    let id = gate.pending();
    let inbox = gate.cli(&["inbox"]);
    assert!(
        inbox.contains("many.merge_order_1") && !inbox.contains("call_tool"),
        "{inbox}"
    );
    gate.cli(&["approve", &id]);
    assert!(text(&waits.join().unwrap()).contains("merge_order_1"));
    // One bucket for both ways.
    assert!(text(&call(port, "many_list_order_1", json!({"id": 1}))).contains("done"));
    assert!(text(&through(port, "many_list_order_1", json!({"id": 1}))).contains("done"));
    let third = through(port, "many_list_order_1", json!({"id": 1}));
    assert!(
        text(&third).contains("rate limit of many.list_order_1"),
        "{third}"
    );
    gate.stop();
}

#[test]
fn it_begins_at_so_many_tools_and_rules_speak_of_its_own() {
    let (address, _) = server(200);
    let gate = Setup::config(config(&address, "[search]\nmin_tools = 201\n")).start();
    let port = gate.port;
    assert_eq!(names(port).len(), 200);
    let unknown = call(port, "find_tools", json!({"query": "x"}));
    assert_eq!(
        unknown["error"]["message"], "unknown tool: find_tools",
        "{unknown}"
    );
    let unknown = through(port, "many_create_order_1", json!({"id": 1}));
    assert_eq!(
        unknown["error"]["message"], "unknown tool: call_tool",
        "{unknown}"
    );
    let reload = |more: &str| {
        gate.configure(&config(&address, more));
        gate.cli(&["reload"]);
        names(port)
    };
    assert_eq!(
        reload("[search]\nmin_tools = 200\n"),
        ["find_tools", "call_tool"]
    );
    // A caller who may use few tools gets them listed.
    let few = "[search]\nmin_tools = 11\n[[rule]]\ntools = [\"many.*\"]\nexcept = [\"many.create_order_*\"]\naction = \"deny\"\n";
    assert_eq!(reload(few).len(), 10);
    let closed = "[search]\n[[rule]]\ntools = [\"toolgate.call_tool\"]\naction = \"deny\"\n";
    assert_eq!(reload(closed), ["find_tools"]);
    let unknown = through(port, "many_create_order_1", json!({"id": 1}));
    assert_eq!(
        unknown["error"]["message"], "unknown tool: call_tool",
        "{unknown}"
    );
    let short = reload("[search]\nbytes = 1024\nresults = 50\n");
    assert_eq!(short.len(), 2);
    let (few, count) = found(port, json!({"query": "invoice"}));
    assert!(
        (1..10).contains(&few.len()) && count == 20,
        "{few:?} of {count}"
    );
    assert_eq!(reload("").len(), 200);
    until("the servers' own list is untouched", LONG, || {
        gate.cli(&["tools"])
            .contains("many.create_order_1")
            .then_some(())
    });
    gate.stop();
}
