//! Skills (the extension `io.modelcontextprotocol/skills`) through the gateway.

use crate::help::{Gate, Modern, Reply, Setup, upstream};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const OWN: &str = "skill://forms/SKILL.md";

/// State of a server that a test may change while it runs.
struct Held {
    stated: String,
    text: String,
    dynamic: bool,
}

type Shared = Arc<Mutex<Held>>;

fn text(body: &str) -> String {
    format!("---\nname: forms\ndescription: Reads forms\n---\n\n{body}\n")
}

fn file(uri: &str, text: &str) -> Value {
    let digest = digest(&SHA256, text.as_bytes());
    let hex: String = digest.as_ref().iter().map(|b| format!("{b:02x}")).collect();
    json!({"uri": uri, "digest": format!("sha256:{hex}"), "size": text.len()})
}

/// A server with one skill of two files, and all URIs that were read there.
fn server(body: &str) -> (String, Shared, Arc<Mutex<Vec<String>>>) {
    let held = Arc::new(Mutex::new(Held {
        stated: text(body),
        text: text(body),
        dynamic: false,
    }));
    let reads: Arc<Mutex<Vec<String>>> = Arc::default();
    let (shared, read) = (held.clone(), reads.clone());
    let address = upstream(move |message| {
        let held = held.lock().unwrap();
        let answer = |mut result: Value| {
            result["resultType"] = "complete".into();
            result["ttlMs"] = 0.into();
            result["cacheScope"] = "private".into();
            Reply::result(message, result)
        };
        match message["method"].as_str().unwrap_or_default() {
            "server/discover" => answer(json!({
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"resources": {}, "extensions": {"io.modelcontextprotocol/skills": {}}},
            })),
            "skills/list" => {
                let files = json!([file(OWN, &held.stated), file("skill://forms/t/a.md", "A")]);
                let files = if held.dynamic {
                    json!("dynamic")
                } else {
                    files
                };
                let head = json!({"name": "forms", "description": "Reads forms"});
                answer(json!({"skills": [{"uri": OWN, "frontmatter": head, "resources": files}]}))
            }
            "resources/list" => answer(
                json!({"resources": [{"uri": OWN, "name": "forms"}, {"uri": "a:b", "name": "b"}]}),
            ),
            "resources/templates/list" => answer(json!({"resourceTemplates": [
                {"uriTemplate": "skill://{+rest}", "name": "any"},
            ]})),
            "resources/read" => {
                let uri = message["params"]["uri"].as_str().unwrap();
                reads.lock().unwrap().push(uri.to_owned());
                let text = if uri == OWN { held.text.as_str() } else { "A" };
                answer(json!({"contents": [{"uri": uri, "text": text}]}))
            }
            _ => answer(json!({"tools": []})),
        }
    });
    (address, shared, read)
}

fn start(servers: &[(&str, &str)], more: &str) -> Gate {
    let server = |(id, url): &(&str, &str)| format!("[server.{id}]\nurl = {url:?}\n");
    let servers: String = servers.iter().map(server).collect();
    let allow = "[[rule]]\ntools = [\"*.*\"]\naction = \"allow\"\n";
    Setup::config(format!("{servers}{allow}{more}")).start()
}

fn ask(gate: &Gate, method: &str, uri: Option<&str>) -> Value {
    let params = uri.map_or_else(|| json!({}), |uri| json!({"uri": uri}));
    let name = uri.filter(|_| method == "resources/read");
    Modern::ask(gate.port, name, &Modern::body(&json!(1), method, params))
}

fn uris(answer: &Value, list: &str) -> Vec<String> {
    let all = answer["result"][list].as_array().expect("a list").iter();
    all.map(|one| one["uri"].as_str().unwrap().to_owned())
        .collect()
}

/// Holds: XSKILL-07
#[test]
fn skills_of_two_servers_do_not_meet_and_lead_back() {
    let ((one, _, reads), (two, ..)) = (server("One."), server("Two."));
    let gate = start(&[("one", &one), ("two", &two)], "");
    let told = ask(&gate, "server/discover", None);
    let told = &told["result"]["capabilities"]["extensions"]["io.modelcontextprotocol/skills"];
    assert_eq!(*told, json!({"directoryRead": true}));
    let listed = ask(&gate, "skills/list", None);
    let expected = ["skill://one/forms/SKILL.md", "skill://two/forms/SKILL.md"];
    assert_eq!(uris(&listed, "skills"), expected, "{listed}");
    assert!(reads.lock().unwrap().is_empty(), "nothing is read ahead");
    for (at, body) in [(0, "One."), (1, "Two.")] {
        let entry = ask(&gate, "skills/get", Some(expected[at]));
        assert_eq!(entry["result"]["skill"], listed["result"]["skills"][at]);
        let stated = &entry["result"]["skill"]["resources"][0];
        assert_eq!(
            *stated,
            file(expected[at], &text(body)),
            "its own digest, under its name here"
        );
        let read = ask(&gate, "resources/read", Some(expected[at]));
        assert_eq!(
            read["result"]["contents"][0],
            json!({"uri": expected[at], "text": text(body)})
        );
    }
    let child = ask(&gate, "resources/read", Some("skill://one/forms/t/a.md"));
    assert_eq!(child["result"]["contents"][0]["text"], "A", "{child}");
    assert_eq!(*reads.lock().unwrap(), [OWN, "skill://forms/t/a.md"]);
    let directory = ask(&gate, "resources/directory/read", Some("skill://one/forms"));
    let children = ["skill://one/forms/SKILL.md", "skill://one/forms/t"];
    assert_eq!(uris(&directory, "resources"), children, "{directory}");
    assert_eq!(
        directory["result"]["resources"][1]["mimeType"],
        "inode/directory"
    );
    for (method, uri) in [
        ("skills/get", OWN),
        ("skills/get", "skill://one/forms/t/a.md"),
        ("resources/directory/read", "skill://one/forms/SKILL.md"),
        ("resources/directory/read", "skill://forms"),
        ("resources/read", OWN),
    ] {
        let error = ask(&gate, method, Some(uri));
        assert_eq!(error["error"]["code"], -32602, "{method} {uri}: {error}");
    }
    let record = json!(gate.audit()).to_string();
    assert!(
        record.contains("skill:skill://one/forms/SKILL.md"),
        "{record}"
    );
    gate.stop();
}

#[test]
fn a_skill_that_changed_is_hidden_with_all_its_files_until_someone_accepts_it() {
    let (one, held, _) = server("One.");
    let gate = start(&[("one", &one)], "");
    let uri = "skill://one/forms/SKILL.md";
    assert_eq!(uris(&ask(&gate, "skills/list", None), "skills"), [uri]);
    assert_eq!(
        uris(&ask(&gate, "resources/list", None), "resources"),
        [uri, "a:b"]
    );
    // Its text alone: what comes is not what it states.
    held.lock().unwrap().text = text("Other.");
    let read = ask(&gate, "resources/read", Some(uri));
    assert!(
        read["error"]["message"]
            .as_str()
            .unwrap()
            .contains("held back"),
        "{read}"
    );
    // Its entry too: another skill.
    held.lock().unwrap().stated = text("Other.");
    assert_eq!(uris(&ask(&gate, "skills/list", None), "skills"), [""; 0]);
    assert_eq!(
        uris(&ask(&gate, "resources/list", None), "resources"),
        ["a:b"]
    );
    for (method, uri) in [
        ("skills/get", uri),
        ("resources/read", uri),
        ("resources/read", "skill://one/forms/t/a.md"),
        ("resources/directory/read", "skill://one/forms"),
    ] {
        let hidden = ask(&gate, method, Some(uri));
        assert_eq!(hidden["error"]["code"], -32602, "{method} {uri}: {hidden}");
    }
    let pins = gate.cli(&["pins", "list"]);
    assert!(pins.contains("one.skill:skill://forms/SKILL.md"), "{pins}");
    gate.cli(&["pins", "accept", "one.skill:skill://forms/SKILL.md"]);
    assert_eq!(uris(&ask(&gate, "skills/list", None), "skills"), [uri]);
    let read = ask(&gate, "resources/read", Some(uri));
    assert_eq!(
        read["result"]["contents"][0]["text"],
        text("Other."),
        "{read}"
    );
    gate.stop();
}

#[test]
fn a_skill_that_states_nothing_or_is_denied_is_not_there() {
    let ((one, held, _), (two, ..)) = (server("One."), server("Two."));
    held.lock().unwrap().dynamic = true;
    let deny = "[[rule]]\ntools = [\"two.resource:skill://two/forms/*\"]\naction = \"deny\"\n";
    let gate = start(&[("one", &one), ("two", &two)], deny);
    assert_eq!(uris(&ask(&gate, "skills/list", None), "skills"), [""; 0]);
    // A withheld skill says why, and a denied one is answered like an unknown one.
    for (id, code) in [("one", -32603), ("two", -32602)] {
        for file in ["SKILL.md", "t/a.md"] {
            let read = ask(
                &gate,
                "resources/read",
                Some(&format!("skill://{id}/forms/{file}")),
            );
            assert_eq!(read["error"]["code"], code, "{id} {file}: {read}");
            let withheld = read.to_string().contains("withheld");
            assert_eq!(withheld, id == "one", "{id} {file}: {read}");
        }
    }
    gate.stop();
}

/// `toolgate explain` predicts the decision for a skill's file under each of its names.
#[test]
fn a_file_of_a_skill_is_explained_as_the_skill() {
    let (one, ..) = server("One.");
    let deny = "[[rule]]\ntools = [\"one.skill:*\"]\naction = \"deny\"\n";
    let gate = start(&[("one", &one)], deny);
    let main = "skill://one/forms/SKILL.md";
    let refused = ask(&gate, "resources/read", Some(main));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    for name in [
        "one.skill:skill://one/forms/SKILL.md",
        "one.resource:skill://one/forms/SKILL.md",
        "one.resource:skill://one/forms/t/a.md",
        main,
    ] {
        let told = gate.cli(&["explain", name]);
        assert!(told.contains("does not see it: rule 2"), "{name}: {told}");
        assert!(told.contains("decision: hide"), "{name}: {told}");
    }
    let told = gate.cli(&["explain", "one.resource:a:b"]);
    assert!(told.contains("one.resource:a:b for anonymous"), "{told}");
    assert!(told.contains("decision: allow"), "{told}");
    gate.stop();
}
