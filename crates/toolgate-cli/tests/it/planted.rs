//! T46: a server plants what nobody should see, and secrets, into every text that it sends. Nothing of it comes through
//! the real gateway on any channel, and nothing of it stands in what the gateway shows, says or records.

mod server;
mod text;

use crate::help::{Gate, Modern, SOON, Session, Setup, raw, request, until};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use text::Texts;

const CALLS: [&str; 9] = [
    "done", "fails", "broken", "gone", "refused", "strange", "asks", "samples", "keys",
];
const READS: [&str; 3] = ["test://done", "test://broken", "made://done"];
const LISTS: [&str; 4] = [
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
];

/// All that there is to ask for, with the name that goes into a header.
fn wanted() -> Vec<(&'static str, Value, Option<String>)> {
    let mut all: Vec<_> = LISTS.map(|list| (list, json!({}), None)).into();
    for call in CALLS {
        let name = format!("p_{call}");
        let params = json!({"name": name, "arguments": {"x": "y"}});
        all.push(("tools/call", params, Some(name)));
    }
    for uri in READS {
        all.push(("resources/read", json!({"uri": uri}), Some(uri.to_owned())));
    }
    for prompt in ["p_done", "p_broken"] {
        all.push((
            "prompts/get",
            json!({"name": prompt, "arguments": {"a": "b"}}),
            Some(prompt.to_owned()),
        ));
        let of = json!({"type": "ref/prompt", "name": prompt});
        all.push((
            "completion/complete",
            json!({"ref": of, "argument": {"name": "a", "value": "v"}}),
            None,
        ));
    }
    // What nobody lists.
    all.push((
        "tools/call",
        json!({"name": "silent_x"}),
        Some("silent_x".to_owned()),
    ));
    all.push((
        "tools/call",
        json!({"name": "nobody_x"}),
        Some("nobody_x".to_owned()),
    ));
    all.push((
        "resources/read",
        json!({"uri": "none://x"}),
        Some("none://x".to_owned()),
    ));
    all
}

/// All messages of an answer.
fn messages(body: &str) -> Vec<Value> {
    let events = body.lines().filter_map(|line| line.strip_prefix("data:"));
    let texts = events.chain([body]);
    texts
        .filter_map(|text| serde_json::from_str(text.trim()).ok())
        .collect()
}

/// Uses all of it without a session, as a client that can be asked.
fn modern(gate: &Gate) -> Vec<(String, Value)> {
    let mut heard = Vec::new();
    for (n, (method, params, name)) in wanted().into_iter().enumerate() {
        let mut body = Modern::body(&json!(n), method, params.clone());
        let meta = &mut body["params"]["_meta"];
        meta["io.modelcontextprotocol/clientCapabilities"] =
            json!({"elicitation": {"form": {}}, "sampling": {}});
        meta["io.modelcontextprotocol/logLevel"] = "debug".into();
        meta["progressToken"] = n.into();
        let headers = Modern::headers(method, name.as_deref());
        let bytes = request(
            gate.port,
            "POST",
            "/mcp",
            &headers,
            body.to_string().as_bytes(),
        );
        let place = format!("{method} {params}");
        let answer = messages(&raw(gate.port, &bytes).body);
        heard.extend(answer.into_iter().map(|message| (place.clone(), message)));
    }
    heard
}

/// The same in a session.
fn legacy(gate: &Gate) -> Vec<(String, Value)> {
    let mut heard = vec![("initialize".to_owned(), Session::greeting(gate.port))];
    let session = Session::open(gate.port);
    session.post(&json!({"jsonrpc": "2.0", "id": "level", "method": "logging/setLevel", "params": {"level": "debug"}}));
    for (n, (method, mut params, _)) in wanted().into_iter().enumerate() {
        let place = format!("{method} {params} in a session");
        params["_meta"] = json!({"progressToken": n});
        let body = json!({"jsonrpc": "2.0", "id": n, "method": method, "params": params});
        let answer = messages(&session.post(&body).body);
        heard.extend(answer.into_iter().map(|message| (place.clone(), message)));
    }
    heard
}

/// Texts of one kind that were said must be heard again, changed in nothing but what was planted.
fn assert_heard(said: &HashSet<String>, heard: &HashSet<String>, words: &[&str]) {
    for word in words {
        let of = |texts: &HashSet<String>| {
            let named = texts
                .iter()
                .filter(|text| text.split(' ').any(|part| part == *word));
            named.cloned().collect::<HashSet<_>>()
        };
        let (said, heard) = (of(said), of(heard));
        assert!(!said.is_empty(), "nobody said {word}");
        let lost: Vec<_> = said.difference(&heard).collect();
        assert!(
            lost.is_empty(),
            "{word}: not heard as they must be: {lost:#?}"
        );
    }
}

/// Words of which all that is said is heard by a caller of both eras.
const ALL_HEARD: [&str; 19] = [
    "title",
    "description",
    "schema",
    "field",
    "example",
    "claim",
    "output",
    "argument",
    "name",
    "mime",
    "block",
    "stamp",
    "part",
    "link",
    "prompt",
    "value",
    "progress",
    "structured",
    "meta",
];

fn gate(texts: &Arc<Texts>, revision: &'static str) -> Gate {
    let mut servers = String::new();
    for (id, url) in [
        ("p", server::serve(texts, revision)),
        ("silent", server::serve_without_lists(texts)),
        ("nobody", server::serve_nobody(texts, 401)),
        ("ill", server::serve_nobody(texts, 500)),
    ] {
        // What is planted may read like a request for a secret.
        servers += &format!(
            "[server.{id}]\nurl = {url:?}\ntrust_annotations = true\nelicitation_forms = \"warn\"\nsampling = \"10000/h\"\n"
        );
    }
    let rule = "[[rule]]\ntools = [\"*.*\"]\naction = \"allow\"\n";
    Setup::config(format!("[limits]\nrate = \"1000000/s\"\n{servers}{rule}")).start()
}

/// Returns all output for the operator: shown, streamed and stored.
fn shown(gate: &Gate) -> Vec<(String, String)> {
    let mut all = vec![
        (
            "the state of the console".to_owned(),
            gate.state().to_string(),
        ),
        ("stderr".to_owned(), gate.said().join("\n")),
    ];
    for args in [
        &["tools"][..],
        &["resources"],
        &["prompts"],
        &["calls"],
        &["inbox"],
        &["pins", "list"],
        &["pins", "diff", "p.done"],
        &["explain", "p.done"],
        &["call", "p.done", "{}"],
        &["call", "p.broken", "{}"],
        &["call", "p.gone", "{}"],
        &["audit", "tail", "--json", "-n", "100000"],
        &["audit", "export", "--format", "cef"],
        &["audit", "export", "--format", "otlp"],
        &["audit", "export", "--format", "ocsf"],
    ] {
        let out = gate.run(args);
        for (name, bytes) in [("stdout", out.stdout), ("stderr", out.stderr)] {
            let text = String::from_utf8(bytes).unwrap();
            all.push((format!("{args:?} on {name}"), text));
        }
    }
    for record in gate.audit_files() {
        all.push(("the record".to_owned(), record.to_string()));
    }
    all
}

fn round(seed: u64, revision: &'static str) -> usize {
    let texts = Arc::new(Texts::new(seed));
    let gate = gate(&texts, revision);
    until("the server is up", SOON, || {
        let state = gate.state();
        let mut servers = state["servers"].as_array().unwrap().iter();
        servers
            .any(|s| s["id"] == "p" && s["state"] == "running")
            .then_some(())
    });
    let (mut heard, mut places, mut flaws) = (HashSet::new(), 0, Vec::new());
    for (place, message) in modern(&gate).into_iter().chain(legacy(&gate)) {
        texts.judge(&place, &message, &mut heard, &mut flaws);
        places += 1;
    }
    assert_heard(&texts.left(), &heard, &ALL_HEARD);
    if revision == "2026-07-28" {
        assert_heard(&texts.left(), &heard, &["logger", "log"]);
        for word in ["form", "input", "sample", "system", "key"] {
            let found = heard
                .iter()
                .any(|text| text.split(' ').any(|part| part == word));
            assert!(found, "nobody heard {word}");
        }
    }
    for (place, text) in shown(&gate) {
        flaws.extend(texts.shown(&place, &text));
        places += 1;
    }
    assert!(flaws.is_empty(), "{} flaws: {flaws:#?}", flaws.len());
    gate.stop();
    println!(
        "T46: {revision}: {places} messages and texts, {} planted texts, 0 came through",
        texts.count()
    );
    texts.count()
}

#[test]
fn t46_nothing_planted_comes_through_the_gateway_on_any_channel() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    // A run that failed can be had again.
    let again = std::env::var("TOOLGATE_SEED").ok();
    let seed = again.map_or(now.as_secs(), |seed| seed.parse().unwrap());
    println!("T46: seed {seed}");
    let rounds = if std::env::var_os("TOOLGATE_LONG").is_some() {
        20
    } else {
        2
    };
    let mut all = 0;
    for n in 0..rounds {
        for revision in ["2026-07-28", "2025-06-18"] {
            all += round(seed + n * 1000, revision);
        }
    }
    println!(
        "T46: {all} planted texts with secrets through the gateway, 0 came through, all others unchanged"
    );
}

/// T47: with `error_text = "class"` no word of an error of the server reaches a caller.
#[test]
fn t47_only_the_class_of_an_error_reaches_a_caller_where_that_is_set() {
    let texts = Arc::new(Texts::new(7));
    let server = server::serve(&texts, "2026-07-28");
    let rule = "[[rule]]\ntools = [\"*.*\"]\naction = \"allow\"\n";
    for (setting, words) in [("message", true), ("class", false)] {
        let config = format!("[server.p]\nurl = {server:?}\nerror_text = {setting:?}\n{rule}");
        let gate = Setup::config(config).start();
        let mut errors = 0;
        for (place, message) in modern(&gate).into_iter().chain(legacy(&gate)) {
            let text = message.to_string();
            let failed = ["broken", "gone", "refused", "strange"];
            let named = failed.iter().any(|name| place.contains(name));
            let completes = place.starts_with("completion/");
            if !named || completes || message.get("method").is_some() {
                continue;
            }
            errors += 1;
            let said = failed.iter().any(|word| text.contains(&format!(" {word}")));
            assert!(words || !said, "{place}: {text}");
            assert!(words || text.contains("the server p "), "{place}: {text}");
            assert!(
                !words || said || place.contains("strange"),
                "{place}: {text}"
            );
        }
        println!("T47: {setting}: {errors} errors");
        assert!(errors >= 12, "{errors}");
        gate.stop();
    }
}
