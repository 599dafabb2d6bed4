//! URIs of resources of a real server, which reads them with `new URL`: none is a way round a `deny`, and any scheme passes.

use crate::help::{Gate, Modern, SOON, Session, Setup, TempDir, answer_of, real, until};
use serde_json::{Value, json};
use std::{fs, path::Path};

/// A gateway before the server of the TypeScript SDK that has resources.
struct UriGateway {
    gate: Gate,
    notes: std::path::PathBuf,
    _folder: TempDir,
}

const RULES: &str = "[[rule]]\ntools = [\"ts.*\"]\naction = \"allow\"\n\n\
    [[rule]]\ntools = [\"ts.resource:file:///srv/private/*\", \"ts.resource:https://host.example/*\"]\naction = \"deny\"\n";

impl UriGateway {
    fn new(real: &Path, more: &str) -> UriGateway {
        let folder = TempDir::new("uris");
        let notes = folder.write("notes", "");
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/servers/resources.mjs");
        let setting = json!({"interop": real, "notes": notes}).to_string();
        let config = format!(
            "[server.ts]\ncommand = [\"node\", {script:?}, {setting:?}]\n{more}\n\n{RULES}"
        );
        let gate = Setup::config(config).start();
        until("the server is up", SOON, || {
            gate.cli(&["tools"]).contains("ts.embed").then_some(())
        });
        UriGateway {
            gate,
            notes,
            _folder: folder,
        }
    }

    /// Returns the URIs that were read or subscribed to so far.
    fn notes(&self) -> Vec<String> {
        let notes = fs::read_to_string(&self.notes).unwrap();
        notes.lines().map(str::to_owned).collect()
    }

    /// The answer to one request in a revision.
    fn ask(&self, revision: &'static str, method: &str, params: Value) -> Value {
        let id = json!(1);
        if revision == "2026-07-28" {
            let name = params["name"].as_str().or(params["uri"].as_str());
            let name = name.map(header);
            let body = Modern::body(&id, method, params);
            return Modern::ask(self.gate.port, name.as_deref(), &body);
        }
        let session = Session::of(self.gate.port, revision);
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        answer_of(&session.post(&body), &id)
    }
}

/// A value of a mirrored header: Base64 where it is not plain ASCII.
fn header(text: &str) -> String {
    match text.bytes().all(|byte| (b'!'..=b'~').contains(&byte)) {
        true => text.to_owned(),
        false => format!("=?base64?{}?=", base64(text.as_bytes())),
    }
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

const REVISIONS: [&str; 4] = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/// Texts that Node reads as a denied URL, or as one at the denied host.
const SPELLINGS: [&str; 27] = [
    "file:///srv/private/k.txt",
    "file:///srv\\private\\k.txt",
    "file:///srv/private\\k.txt",
    "file:///srv\\private/k.txt",
    "file:///srv/%70rivate/k.txt",
    "file:/srv/private/k.txt",
    "file:srv/private/k.txt",
    "file:\\\\\\srv\\private\\k.txt",
    "FILE:///srv/private/k.txt",
    "file:///srv/./private/k.txt",
    "file:///srv/x/%2e%2e/private/k.txt",
    "https:host.example/x",
    "https:/host.example/x",
    "https:///host.example/x",
    "https:\\\\host.example\\x",
    "https://host.example:443/x",
    "https://host.example:0443/x",
    "https://host.example:/x",
    "https://host.example./x",
    "https://user:pw@host.example/x",
    "https://\u{ff48}ost.example/x",
    "https://host\u{3002}example/x",
    "https://host.example?a",
    "https://host.example#a",
    "https://h%6fst.example/x",
    "https://HOST.example/x",
    "https://host.example\\x",
];

#[test]
fn no_spelling_of_a_denied_uri_reaches_a_server() {
    let Some(real) = real() else { return };
    let gateway = UriGateway::new(&real, "");
    for revision in REVISIONS {
        for uri in SPELLINGS {
            let answer = gateway.ask(revision, "resources/read", json!({ "uri": uri }));
            assert!(answer["error"].is_object(), "{revision} {uri:?}: {answer}");
            let complete = json!({"ref": {"type": "ref/resource", "uri": uri},
                "argument": {"name": "path", "value": "x"}});
            let answer = gateway.ask(revision, "completion/complete", complete);
            assert!(answer["error"].is_object(), "{revision} {uri:?}: {answer}");
            if revision != "2026-07-28" {
                gateway.ask(revision, "resources/subscribe", json!({ "uri": uri }));
            }
        }
        let listed = gateway.ask(revision, "resources/list", json!({}));
        for hidden in ["k.txt", "listed.txt"] {
            assert!(!listed.to_string().contains(hidden), "{listed}");
        }
        // A link in a result may be read, but for what is denied.
        gateway.ask(
            revision,
            "tools/call",
            json!({"name": "ts_link_private", "arguments": {}}),
        );
        let linked = json!({"uri": "file:/srv/private/linked.txt"});
        let answer = gateway.ask(revision, "resources/read", linked);
        assert!(answer["error"].is_object(), "{revision}: {answer}");
        let public = json!({"uri": "file:///srv/public/b.txt"});
        let answer = gateway.ask(revision, "resources/read", public);
        assert_eq!(
            answer["result"]["contents"][0]["text"],
            "the text of file:///srv/public/b.txt"
        );
    }
    let expected = vec!["read file:///srv/public/b.txt"; REVISIONS.len()];
    assert_eq!(gateway.notes(), expected);
}

#[test]
fn an_ambiguous_uri_is_refused_unless_the_server_reads_uris_verbatim() {
    let Some(real) = real() else { return };
    let uri = "file:///srv\\public\\a.txt";
    let read = |gateway: &UriGateway, uri: &str| {
        gateway.ask("2025-11-25", "resources/read", json!({ "uri": uri }))
    };
    let strict = UriGateway::new(&real, "");
    let refused = read(&strict, uri);
    let message = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("the URI as URL parsers write it: file:///srv/public/a.txt"),
        "{refused}"
    );
    assert!(strict.notes().is_empty());
    let verbatim = UriGateway::new(&real, "uris = \"verbatim\"");
    let answer = read(&verbatim, uri);
    assert!(answer["result"].is_object(), "{answer}");
    // Rules know all spellings all the same.
    let denied = read(&verbatim, "file:///srv\\private\\k.txt");
    assert!(denied["error"].is_object(), "{denied}");
    assert_eq!(verbatim.notes(), ["read file:///srv/public/a.txt"]);
}

#[test]
fn uris_of_any_scheme_are_listed_read_and_embedded() {
    let Some(real) = real() else { return };
    let gateway = UriGateway::new(&real, "");
    for revision in REVISIONS {
        let listed = gateway
            .ask(revision, "resources/list", json!({}))
            .to_string();
        let templates = gateway.ask(revision, "resources/templates/list", json!({}));
        assert!(
            templates.to_string().contains("resource://{x}/t"),
            "{templates}"
        );
        let call = |name: &str| {
            let call = json!({"name": name, "arguments": {}});
            gateway.ask(revision, "tools/call", call)["result"]["content"][0].clone()
        };
        // Listed, of a template, and linked to by the result before.
        let link = call("ts_link");
        assert!(link.to_string().contains("resource://linked/t"), "{link}");
        for uri in ["resource://example", "resource://greeting", "data://config"] {
            assert!(
                listed.contains(&format!("{uri:?}")),
                "{revision} {uri}: {listed}"
            );
        }
        for uri in [
            "resource://example",
            "data://config",
            "resource://any/t",
            "resource://linked/t",
        ] {
            let answer = gateway.ask(revision, "resources/read", json!({ "uri": uri }));
            let text = format!("the text of {uri}");
            assert_eq!(
                answer["result"]["contents"][0]["text"], text,
                "{revision}: {answer}"
            );
        }
        let embedded = call("ts_embed");
        assert_eq!(
            embedded["resource"]["uri"], "resource://example",
            "{embedded}"
        );
        for (name, scheme) in [("ts_link_script", "javascript"), ("ts_link_data", "data")] {
            let text = format!(
                "[withheld by this gateway: a link with the scheme {scheme}:, which is not allowed]"
            );
            assert_eq!(call(name)["text"], text, "{revision}");
        }
    }
}
