//! Issuers that cannot be used: who is told why, and what mends it.

use crate::help::{Gate, Script, Setup, browser, real, shot};
use crate::oauth::{RESOURCE, bearer, call};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use std::fs::{Permissions, set_permissions};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

const WRONG: &str = "wrong-secret-0123456789";
const RIGHT: &str = "right-secret-0123456789";

/// An issuer that tells of tokens only to whom it knows, and calls every token good.
fn issuer() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let own = format!("Basic {}", STANDARD.encode(format!("gate:{RIGHT}")));
    let metadata =
        json!({"issuer": url, "introspection_endpoint": format!("{url}/ask?key=hidden")});
    let said = json!({"active": true, "sub": "bob", "aud": RESOURCE});
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut bytes = [0; 16 * 1024];
            let mut all = String::new();
            // The form is the last that comes, and it is no empty one.
            while !(all.starts_with("GET") && all.ends_with("\r\n\r\n") || all.contains("token=")) {
                let Ok(read @ 1..) = stream.read(&mut bytes) else {
                    break;
                };
                all.push_str(&String::from_utf8_lossy(&bytes[..read]));
            }
            let (status, body) = match all.starts_with("POST") {
                false => (200, metadata.to_string()),
                true if all.contains(&own) => (200, said.to_string()),
                true => (401, "{}".to_owned()),
            };
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 {status} So\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            );
        }
    });
    url
}

fn secret(gate: &Gate, text: &str) {
    let file = gate.data.write("secret", text);
    set_permissions(file, Permissions::from_mode(0o600)).unwrap();
}

fn shown(gate: &Gate, token: &str) -> u16 {
    let sum = json!({"a": 1, "b": 2});
    call(gate.port, &bearer(token), "demo_add", sum).status
}

/// A gateway that asks this issuer with a secret of a file.
fn gate(url: &str) -> Gate {
    let gate = Setup::fast_demo("").start();
    let config = std::fs::read_to_string(gate.data.file("toolgate.toml")).unwrap();
    secret(&gate, WRONG);
    gate.configure(&format!(
        "{config}\n[auth]\nresource = \"{RESOURCE}\"\n[auth.issuer.corp]\nurl = \"{url}\"\nintrospect = true\n\
         client_id = \"gate\"\nclient_secret = {{ file = \"secret\" }}\n"
    ));
    gate.cli(&["reload"]);
    gate
}

#[test]
fn an_issuer_that_cannot_be_used_is_shown_in_the_browser_until_it_can() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let gate = gate(&issuer());
    let steps = json!([
        {"do": "server", "id": "demo", "state": "running"},
        {"do": "wait"},
        {"do": "issuer", "id": "corp", "holds": "rejects the client_id"},
        {"do": "shot", "path": shot("issuer.png")},
        {"do": "wait"},
        {"do": "issuer", "id": "corp"},
    ]);
    let mut page = Script::browser(&real, &gate.console(), steps);
    page.event("server");
    page.event("waiting");
    assert_eq!(shown(&gate, "opaque-1"), 503);
    page.go_on();
    let told = page.event("issuer")["text"].to_string();
    assert!(told.contains("tokens cannot be checked"), "{told}");
    page.event("waiting");
    secret(&gate, RIGHT);
    gate.cli(&["reload"]);
    page.go_on();
    page.event("issuer");
    page.event("done");
    page.assert_no_page_error();
}

#[test]
fn a_wrong_secret_is_told_and_a_reload_reads_the_right_one() {
    let url = issuer();
    let gate = gate(&url);
    assert_eq!(gate.state()["issuers"][0]["error"], Value::Null);
    assert_eq!(shown(&gate, "opaque-1"), 503);
    let why = "the issuer returned HTTP 401: it rejects the client_id or the client_secret";
    let error = gate.state()["issuers"][0]["error"].to_string();
    assert!(error.contains(why) && error.contains(&url), "{error}");
    let status = gate.cli(&["status"]);
    assert!(
        status.contains("issuer       corp cannot be used: token introspection failed: "),
        "{status}"
    );
    let records = gate.audit();
    let refused = records
        .iter()
        .find(|record| record.to_string().contains(why));
    let refused = refused.unwrap_or_else(|| panic!("{records:?}")).to_string();
    for place in [&error, &status, &refused] {
        for hidden in [WRONG, "hidden", "opaque-1"] {
            assert!(!place.contains(hidden), "{place}");
        }
    }
    // A reload reads it, whatever else is the same.
    gate.cli(&["reload"]);
    secret(&gate, RIGHT);
    assert_eq!(shown(&gate, "opaque-1"), 503);
    gate.cli(&["reload"]);
    assert_eq!(shown(&gate, "opaque-1"), 200);
    assert_eq!(gate.state()["issuers"][0]["error"], Value::Null);
    // One that is not there is an error, and the one before holds.
    std::fs::remove_file(gate.data.file("secret")).unwrap();
    assert!(!gate.run(&["reload"]).status.success());
    assert_eq!(shown(&gate, "opaque-2"), 200);
}
