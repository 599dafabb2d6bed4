//! A person sees the keys of callers at the console and revokes one, in a real browser, on a wide screen and on a narrow one.

use crate::help::{Script, Setup, browser, real, shot};
use crate::keys::{add, created};
use serde_json::json;

#[test]
fn a_person_sees_keys_and_revokes_one_in_the_browser() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let gate = Setup::fast_demo("[auth]\nrequired = true\n").start();
    let (ann, ci) = (created(&gate, "ann"), created(&gate, "ci.build-2026"));
    assert_eq!(add(gate.port, &ann).status, 200);
    let steps = json!([
        {"do": "key", "name": "ci.build-2026", "holds": "never"},
        {"do": "key", "name": "ann", "holds": "by"},
        {"do": "wait"},
        // What happens is told without a reload.
        {"do": "key", "name": "late", "holds": "never"},
        {"do": "shot", "path": shot("keys.png")},
        {"do": "narrow", "width": 375},
        {"do": "shot", "path": shot("keys-narrow.png")},
        {"do": "revoke_key", "name": "ann"},
        {"do": "key", "name": "ann", "holds": "revoked"},
    ]);
    let mut page = Script::browser(&real, &gate.console(), steps);
    let shown = page.event("key")["text"].as_str().unwrap().to_owned();
    assert!(
        shown.contains("key:ci.build-2026") && shown.contains("no expiry"),
        "{shown}"
    );
    let used = page.event("key")["text"].as_str().unwrap().to_owned();
    assert!(
        !used.contains("never") && used.contains("terminal"),
        "{used}"
    );
    page.event("waiting");
    created(&gate, "late");
    page.go_on();
    page.event("key");
    assert_eq!(page.event("narrow")["wide"], 375);
    page.event("revoke_key");
    let over = page.event("key");
    assert_eq!(over["buttons"], 0, "{over}");
    page.event("done");
    page.assert_no_page_error();
    assert_eq!(add(gate.port, &ann).status, 401);
    assert_eq!(add(gate.port, &ci).status, 200);
    let who = gate
        .audit()
        .into_iter()
        .filter(|r| r["ev"] == "key" && r["state"] == "revoked");
    assert_eq!(
        who.map(|r| r["by"].clone()).collect::<Vec<_>>(),
        ["console"]
    );
    // Nothing of the keys themselves is there.
    let page = gate.state().to_string();
    assert!(!page.contains("tg_") && !page.contains("sha256"), "{page}");
}

#[test]
fn a_key_that_is_created_in_the_browser_is_shown_once_and_authenticates() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let gate = Setup::fast_demo("[auth]\nrequired = true\n").start();
    let steps = json!([
        {"do": "go", "to": "#/keys"},
        {"do": "fill", "at": "[data-field=key-name]", "text": "web"},
        {"do": "click", "at": "[data-act=create-key]"},
        {"do": "see", "at": "[data-key-once]", "holds": "tg_"},
        {"do": "click", "at": "[data-act=key-stored]"},
        {"do": "hidden", "at": "[data-key-once]"},
        {"do": "key", "name": "web", "holds": "console"},
        {"do": "reload"},
        {"do": "key", "name": "web", "holds": "console"},
        {"do": "rows", "at": "body", "names": []},
    ]);
    let mut page = Script::browser(&real, &gate.console(), steps);
    let key = page.event("see")["text"].as_str().unwrap().to_owned();
    let left = page.event("rows")["rows"].to_string();
    page.event("done");
    assert!(!left.contains("tg_"), "{left}");
    assert!(!gate.state().to_string().contains("tg_"));
    assert_eq!(add(gate.port, &key).status, 200);
    let created = gate
        .audit()
        .into_iter()
        .filter(|r| r["ev"] == "key" && r["state"] == "created");
    assert_eq!(
        created.map(|r| r["by"].clone()).collect::<Vec<_>>(),
        ["console"]
    );
}

/// Keeps the last use of a key across a restart of the gateway.
#[test]
fn the_last_use_of_a_key_is_kept() {
    let gate = Setup::fast_demo("[auth]\nrequired = true\n").start();
    let (ann, _) = (created(&gate, "ann"), created(&gate, "ci"));
    assert_eq!(add(gate.port, &ann).status, 200);
    let line = |list: &str, name: &str| {
        let of = |line: &&str| line.starts_with(&format!("key:{name} "));
        list.lines().find(of).unwrap().to_owned()
    };
    crate::help::until("the use is kept", crate::help::SOON, || {
        let list = gate.cli(&["keys", "list"]);
        assert!(line(&list, "ci").contains("never used"), "{list}");
        line(&list, "ann").contains("last used ").then_some(())
    });
}
