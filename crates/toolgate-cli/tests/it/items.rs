//! Resources, templates, prompts and completion of a real server behind the gate, for real clients.

use crate::help::{Client, Gate, SOON, Script, Setup, browser, real, shot, until};
use serde_json::{Value, json};
use std::path::Path;

/// A text that the server makes up for each number.
const TEXT: &str = "demo://resource/dynamic/text/7";
/// The template that it fits.
const TEMPLATE: &str = "demo://resource/dynamic/text/{resourceId}";
const FILE: &str = "demo://resource/static/document/features.md";

/// The reference server of npm under the name `every`, with these rules.
fn gate(real: &Path, rules: &str) -> Gate {
    let server =
        real.join("node/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    Setup::config(format!(
        "[server.every]\ncommand = [\"node\", {server:?}, \"stdio\"]\n\n{rules}"
    ))
    .start()
}

const ALL: &str = "[[rule]]\ntools = [\"every.*\"]\naction = \"allow\"\n";

fn ask(method: &str, params: Value) -> Value {
    json!({"do": "ask", "method": method, "params": params})
}

fn read(uri: &str) -> Value {
    ask("resources/read", json!({"uri": uri}))
}

fn run(client: Client, mode: &str, real: &Path, gate: &Gate, steps: Value) -> Script {
    let address = match mode {
        "sse" => gate.endpoint.replace("/mcp", "/sse"),
        _ => gate.endpoint.clone(),
    };
    let job = json!({"http": address, "mode": mode, "elicit": null, "steps": steps});
    client.start(real, &job)
}

fn texts<'a>(list: &'a Value, key: &str) -> Vec<&'a str> {
    let items = list.as_array().unwrap().iter();
    items.map(|item| item[key].as_str().unwrap()).collect()
}

/// Everything there is, by a client of this era.
fn does_everything(client: Client, mode: &str) {
    let Some(real) = real() else { return };
    let gate = gate(&real, ALL);
    let complete = |of: Value, name: &str, value: &str| {
        ask(
            "completion/complete",
            json!({"ref": of, "argument": {"name": name, "value": value}}),
        )
    };
    let steps = json!([
        ask("resources/list", json!({})),
        ask("resources/templates/list", json!({})),
        ask("prompts/list", json!({})),
        read(FILE),
        read(TEXT),
        read("demo://nothing"),
        ask(
            "prompts/get",
            json!({"name": "every_args-prompt", "arguments": {"city": "Rome"}})
        ),
        ask(
            "prompts/get",
            json!({"name": "every_args-prompt", "arguments": {}})
        ),
        complete(
            json!({"type": "ref/prompt", "name": "every_completable-prompt"}),
            "department",
            "E"
        ),
        complete(
            json!({"type": "ref/resource", "uri": TEMPLATE}),
            "resourceId",
            "7"
        ),
    ]);
    let mut script = run(client, mode, &real, &gate, steps);
    script.event("connected");
    let listed = script.event("answer")["result"]["resources"].clone();
    assert!(texts(&listed, "uri").contains(&FILE), "{listed}");
    let listed = script.event("answer")["result"]["resourceTemplates"].clone();
    assert!(
        texts(&listed, "uriTemplate").contains(&TEMPLATE),
        "{listed}"
    );
    let listed = script.event("answer")["result"]["prompts"].clone();
    assert!(
        texts(&listed, "name").contains(&"every_args-prompt"),
        "{listed}"
    );
    let file = script.event("answer")["result"]["contents"][0].clone();
    assert_eq!(
        (&file["uri"], &file["mimeType"]),
        (&json!(FILE), &json!("text/markdown"))
    );
    let made = script.event("answer")["result"]["contents"][0]["text"].clone();
    assert!(made.as_str().unwrap().starts_with("Resource 7"), "{made}");
    let missing = script.event_or_error("answer");
    let message = missing["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("unknown resource: demo://nothing"),
        "{missing}"
    );
    let prompt = script.event("answer")["result"]["messages"][0]["content"]["text"].clone();
    assert_eq!(prompt, "What's weather in Rome?");
    let refused = script.event_or_error("answer");
    assert_eq!(refused["code"], -32602, "{refused}");
    assert!(
        refused["message"].as_str().unwrap().contains("/city"),
        "{refused}"
    );
    let completed = script.event("answer")["result"]["completion"]["values"].clone();
    assert_eq!(completed, json!(["Engineering"]));
    let completed = script.event("answer")["result"]["completion"]["values"].clone();
    assert_eq!(completed, json!(["7"]));
    script.event("done");
    recorded(&gate);
}

/// Each use stands in the record under its full name, and the record holds.
fn recorded(gate: &Gate) {
    let records = gate.audit();
    let begun = |method: &str| -> Vec<String> {
        let begun = records.iter().filter(|r| r["ev"] == "call.begin");
        let named = begun.filter(|r| r["method"] == method);
        named
            .map(|r| {
                format!(
                    "{} {}",
                    r["name"].as_str().unwrap(),
                    r["tool"].as_str().unwrap()
                )
            })
            .collect()
    };
    assert_eq!(
        begun("resources/read"),
        [
            format!("{FILE} every.resource:{FILE}"),
            format!("{TEXT} every.resource:{TEMPLATE}"),
        ]
    );
    assert_eq!(
        begun("prompts/get"),
        ["every_args-prompt every.prompt:args-prompt"]
    );
    assert_eq!(
        begun("completion/complete"),
        [
            "every_completable-prompt every.prompt:completable-prompt".to_owned(),
            format!("{TEMPLATE} every.resource:{TEMPLATE}"),
        ]
    );
    let ends = records.iter().filter(|r| r["ev"] == "call.end");
    assert_eq!(ends.count(), 5, "{records:#?}");
    let refused = records.iter().filter(|r| r["ev"] == "deny");
    let refused: Vec<&Value> = refused.map(|r| &r["name"]).collect();
    assert_eq!(refused, ["demo://nothing", "every_args-prompt"]);
    assert!(gate.cli(&["audit", "verify"]).contains("intact"));
}

#[test]
fn typescript_1_uses_all_kinds() {
    does_everything(Client::TypeScript1, "legacy");
}

#[test]
fn typescript_2_uses_all_kinds() {
    does_everything(Client::TypeScript2, "modern");
}

#[test]
fn typescript_of_2025_03_26_uses_all_kinds() {
    does_everything(Client::Release("sdk-1.11.5"), "legacy");
}

#[test]
fn typescript_of_2025_06_18_uses_all_kinds() {
    does_everything(Client::Release("sdk-1.17.5"), "legacy");
}

#[test]
fn typescript_of_2024_uses_all_kinds() {
    does_everything(Client::Release("sdk-1.4.1"), "sse");
}

#[test]
fn a_subscriber_hears_of_its_resource() {
    let Some(real) = real() else { return };
    let gate = gate(&real, ALL);
    let steps = json!([
        ask("resources/subscribe", json!({"uri": TEXT})),
        {"do": "call", "name": "every_toggle-subscriber-updates"},
        {"do": "updated", "uri": TEXT},
    ]);
    let mut script = run(Client::TypeScript1, "legacy", &real, &gate, steps);
    script.event("updated");
    script.event("done");
}

#[test]
fn clients_are_told_how_to_use_the_servers_that_they_see() {
    let Some(real) = real() else { return };
    let hidden = "[[rule]]\ntools = [\"every.*\"]\naction = \"deny\"\n";
    for (rules, told) in [(ALL, true), (hidden, false)] {
        let gate = gate(&real, rules);
        // What is not known yet is not waited for.
        until("the server is up", SOON, || {
            gate.cli(&["prompts"]).contains("every.").then_some(())
        });
        for (client, mode) in [
            (Client::TypeScript1, "legacy"),
            (Client::TypeScript2, "modern"),
        ] {
            let mut script = run(client, mode, &real, &gate, json!([]));
            let connected = script.event("connected");
            let words = connected["instructions"].as_str().unwrap_or_default();
            assert_eq!(words.starts_with("every: "), told, "{connected}");
            script.event("done");
        }
    }
}

#[test]
fn rules_hide_resources_and_prompts_by_their_full_names() {
    let Some(real) = real() else { return };
    let rules = "[[rule]]\ntools = [\"every.resource:demo://resource/static/*\", \"every.prompt:args-*\"]\n\
                 action = \"deny\"\n";
    let gate = gate(&real, &format!("{ALL}\n{rules}"));
    let steps = json!([
        ask("resources/list", json!({})),
        ask("prompts/list", json!({})),
        read(FILE),
        read(TEXT),
        ask(
            "prompts/get",
            json!({"name": "every_args-prompt", "arguments": {"city": "Rome"}})
        ),
    ]);
    let mut script = run(Client::TypeScript1, "legacy", &real, &gate, steps);
    let listed = script.event("answer");
    assert_eq!(listed["result"]["resources"], json!([]), "{listed}");
    let listed = script.event("answer")["result"]["prompts"].clone();
    assert!(
        !texts(&listed, "name").contains(&"every_args-prompt"),
        "{listed}"
    );
    let hidden = script.event_or_error("answer");
    assert_eq!(hidden["code"], -32002, "as if it were not there: {hidden}");
    assert_eq!(script.event("answer")["result"]["contents"][0]["uri"], TEXT);
    let hidden = script.event_or_error("answer");
    assert!(
        hidden["message"]
            .as_str()
            .unwrap()
            .contains("unknown prompt"),
        "{hidden}"
    );
    script.event("done");
    let listed = gate.cli(&["resources"]);
    let line = listed.lines().find(|line| line.contains(FILE)).unwrap();
    assert!(line.contains(" deny "), "the operator sees it: {line}");
}

#[test]
fn a_person_decides_about_a_resource_and_a_prompt() {
    let Some(real) = real() else { return };
    let gate = gate(&real, "");
    let prompt = json!({"name": "every_args-prompt", "arguments": {"city": "Rome"}});
    let steps = json!([read(TEXT), ask("prompts/get", prompt)]);
    let mut script = run(Client::TypeScript1, "legacy", &real, &gate, steps);
    let id = gate.pending();
    let inbox = gate.cli(&["inbox"]);
    assert!(
        inbox.contains(&format!("every.resource:{TEXT} for anonymous@http")),
        "{inbox}"
    );
    let card = gate.state()["pending"][0].clone();
    assert_eq!(card["kind"], "resource template", "{card}");
    assert_eq!(card["tool"], format!("resource:{TEXT}"));
    assert_eq!(card["arguments_raw"], json!({"uri": TEXT}).to_string());
    gate.cli(&["approve", &id]);
    assert_eq!(script.event("answer")["result"]["contents"][0]["uri"], TEXT);
    let id = gate.pending();
    let card = gate.state()["pending"][0].clone();
    assert_eq!(
        (&card["kind"], &card["tool"]),
        (&json!("prompt"), &json!("prompt:args-prompt"))
    );
    assert_eq!(card["schema"]["required"], json!(["city"]), "{card}");
    gate.cli(&["deny", &id, "-m", "not today"]);
    let denied = script.event_or_error("answer");
    assert!(
        denied["message"].as_str().unwrap().contains("not today"),
        "{denied}"
    );
    script.event("done");
    let calls = gate.cli(&["calls"]);
    assert!(
        calls.contains(&format!("every.resource:{TEXT} ")),
        "{calls}"
    );
    assert!(calls.contains("every.prompt:args-prompt "), "{calls}");
    assert!(gate.cli(&["audit", "verify"]).contains("intact"));
}

#[test]
fn the_terminal_and_the_console_list_all_kinds() {
    let Some(real) = real() else { return };
    let gate = gate(&real, "");
    for (list, name) in [
        ("tools", "every.echo "),
        ("resources", &*format!("every.resource:{FILE} ")),
        ("resources", &*format!("every.resource:{TEMPLATE} ")),
        ("prompts", "every.prompt:args-prompt "),
    ] {
        until(&format!("{list} has {name}, which asks"), SOON, || {
            // It is listed a moment before its pin is kept.
            let asks = |line: &str| line.starts_with(name) && line.contains(" ask ");
            gate.cli(&[list]).lines().any(asks).then_some(())
        });
    }
    let state = gate.state();
    assert_eq!(state["prompts"][0]["kind"], "prompt");
    let kinds = state["resources"].as_array().unwrap().iter();
    let kinds: Vec<&Value> = kinds.map(|item| &item["kind"]).collect();
    assert!(kinds.contains(&&json!("resource")) && kinds.contains(&&json!("resource template")));
}

#[test]
fn a_person_sees_all_kinds_and_decides_about_a_prompt_in_the_browser() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let gate = gate(&real, "");
    until("the server is up", SOON, || {
        gate.cli(&["prompts"]).contains("every.").then_some(())
    });
    let prompt = json!({"name": "every_args-prompt", "arguments": {"city": "Rome"}});
    let steps = json!([ask("prompts/get", prompt)]);
    let mut script = run(Client::TypeScript1, "legacy", &real, &gate, steps);
    let id = gate.pending();
    let steps = json!([
        {"do": "pending", "holds": "Rome"},
        {"do": "shot", "path": shot("prompt.png")},
        {"do": "approve", "id": id},
        {"do": "offered", "name": format!("every.resource:{TEMPLATE}")},
        {"do": "offered", "name": "every.prompt:args-prompt"},
        {"do": "shot", "path": shot("items.png")},
        {"do": "offered", "name": "every.echo"},
    ]);
    let mut page = Script::browser(&real, &gate.console(), steps);
    let card = page.event("pending")["text"].as_str().unwrap().to_owned();
    for part in [
        "every.prompt:args-prompt",
        "fetches a prompt",
        "Name of the city",
        "its claim that the prompt is harmless does not count",
    ] {
        assert!(card.contains(part), "{part:?} in {card}");
    }
    assert!(!card.contains("not in the schema"), "{card}");
    script.event("answer");
    let shown = |page: &mut Script, parts: &[&str]| {
        let text = page.event("offered")["text"].as_str().unwrap().to_owned();
        for part in parts {
            assert!(text.contains(part), "{part:?} in {text}");
        }
        text
    };
    let template = shown(
        &mut page,
        &["resource template", "ask: no rule", TEMPLATE, "text/plain"],
    );
    assert!(
        !template.contains("Try it"),
        "only tools can be tried: {template}"
    );
    shown(
        &mut page,
        &["prompt", "city", "required", "Name of the city"],
    );
    shown(&mut page, &["Try it", "message"]);
    assert!(
        page.seen("page_error").is_empty(),
        "{:?}",
        page.seen("page_error")
    );
}
