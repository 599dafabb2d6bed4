//! Inbox of the console: what a person sees of a request, and what they have to do before they approve it.

use super::{call, note, offering, tool};
use crate::event_lines::heard;
use crate::help::{Gate, Response, SOON, Script, Setup, browser, real, shot, until};
use serde_json::{Value, json};
use std::thread::JoinHandle;

fn waiting(gate: &Gate, count: usize) {
    until("so many calls wait", SOON, || {
        (gate.inbox().len() == count).then_some(())
    });
}

#[test]
fn calls_of_one_form_are_a_table_and_eight_of_nine_are_approved_at_once() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let gate = Setup::fast_demo("").start();
    let calls: Vec<JoinHandle<Response>> = (0..9)
        .map(|n| {
            call(
                &gate,
                "demo_note",
                json!({"name": format!("n{n}"), "text": "same"}),
            )
        })
        .collect();
    waiting(&gate, 9);
    let steps = json!([
        {"do": "see", "at": "[data-requests]", "holds": "9 calls of the same form"},
        {"do": "click", "at": "[data-requests]"},
        {"do": "see", "at": "[data-same]", "holds": "text: same"},
        {"do": "rows", "at": ".same-shape ins", "names": []},
        {"do": "shot", "path": shot("inbox-group.png")},
        {"do": "click", "at": "[data-act=mark-all]"},
        {"do": "click", "at": "[data-row]:nth-child(4) input"},
        {"do": "see", "at": "[data-act=approve-marked]", "holds": "Approve 8"},
        {"do": "click", "at": "[data-act=approve-marked]"},
        {"do": "hidden", "at": "[data-row]:nth-child(2)"},
        {"do": "wait"},
    ]);
    let mut page = Script::browser(&real, &gate.console(), steps);
    let marked = page.event("rows")["rows"].take();
    let marked = marked.as_array().unwrap().iter();
    let mut marked: Vec<&str> = marked.map(|row| row["text"].as_str().unwrap()).collect();
    marked.sort_unstable();
    let names = ["n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"];
    assert_eq!(marked, names, "only what differs");
    page.event("waiting");
    let left = gate.inbox();
    assert_eq!(left.len(), 1, "{left:?}");
    gate.cli(&["deny", &left[0], "-m", "no"]);
    let ends = calls.into_iter().map(|call| call.join().unwrap().body);
    assert_eq!(
        ends.filter(|body| body.contains("\"isError\":true"))
            .count(),
        1
    );
    page.assert_no_page_error();
}

#[test]
fn a_long_text_has_to_be_read_to_its_end_before_the_call_can_be_approved() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let offer =
        json!({"tools": [tool("write", "Writes a file", json!({"text": {"type": "string"}}))]});
    let gate = offering(&offer, "");
    let lines = (1..=1200).map(|n| {
        if n == 700 {
            "rm -rf /".to_owned()
        } else {
            format!("line number {n}")
        }
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    let waits = call(&gate, "s_write", json!({"text": text}));
    gate.pending();
    let steps = json!([
        {"do": "pending", "holds": "line number 1"},
        {"do": "see", "at": "[data-seen=no]", "holds": "% seen"},
        {"do": "rows", "at": "[data-act=approve]", "names": ["disabled"]},
        {"do": "fill", "at": "[data-field=find]", "text": "rm -rf"},
        {"do": "see", "at": ".ln.hit", "holds": "rm -rf /"},
        {"do": "shot", "path": shot("inbox-long-text.png")},
        {"do": "rows", "at": "[data-act=approve]", "names": ["disabled"]},
        {"do": "read_through", "at": "[data-arguments] pre.numbered"},
        {"do": "see", "at": "[data-seen=yes]", "holds": "seen to the end"},
        {"do": "approve"},
    ]);
    let mut page = Script::browser(&real, &gate.console(), steps);
    for _ in 0..2 {
        let button = page.event("rows")["rows"].take();
        assert_eq!(button[0]["disabled"], "", "it is not read yet: {button}");
    }
    page.event("approve");
    page.event("done");
    page.assert_no_page_error();
    assert!(!waits.join().unwrap().body.contains("\"isError\":true"));
}

#[test]
fn a_destructive_call_is_approved_only_with_the_name_of_its_tool() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let gate = Setup::fast_demo("").start();
    let waits = call(&gate, "demo_delete_note", json!({"name": "n"}));
    let id = gate.pending();
    let at = format!("[data-detail={id}]");
    let approve = format!("{at} [data-act=approve]");
    let steps = json!([
        {"do": "see", "at": format!("{at}.destructive [data-arguments]")},
        {"do": "rows", "at": approve, "names": ["disabled", "class"]},
        {"do": "keys", "keys": ["a"]},
        {"do": "fill", "at": "[data-field=typed-name]", "text": "delete_not"},
        {"do": "rows", "at": approve, "names": ["disabled", "class"]},
        {"do": "shot", "path": shot("inbox-destructive.png")},
        {"do": "fill", "at": "[data-field=typed-name]", "text": "delete_note"},
        {"do": "click", "at": approve},
        {"do": "hidden", "at": format!("[data-pending={id}]")},
    ]);
    let mut page = Script::browser(&real, &gate.console(), steps);
    for _ in 0..2 {
        let button = page.event("rows")["rows"].take();
        assert_eq!(button[0]["disabled"], "", "{button}");
        assert_eq!(button[0]["class"], "destroy");
    }
    page.event("done");
    page.assert_no_page_error();
    let ran = waits.join().unwrap().body;
    assert!(!ran.contains("approv"), "{ran}");
}

#[test]
fn a_remembered_approval_proposes_conditions_with_the_past_calls_that_they_cover() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let gate = Setup::fast_demo("").start();
    for name in ["docs/a", "docs/b", "src/c"] {
        let waits = call(&gate, "demo_note", json!({"name": name, "text": "x"}));
        let id = gate.pending();
        // The gateway prints both states when it keeps the call for the next comparison.
        heard(&gate, &format!("approval {id}: anonymous@http calls "));
        gate.cli(&["approve", &id]);
        heard(&gate, &format!("approval {id}: approved by "));
        waits.join().unwrap();
    }
    let waits = call(&gate, "demo_note", json!({"name": "docs/d", "text": "x"}));
    let id = gate.pending();
    let steps = json!([
        {"do": "pending", "holds": "docs/d"},
        {"do": "see", "at": "[data-last-approved=differs]", "holds": "Differs from the last approved call of this tool in name"},
        {"do": "click", "at": "[data-mode=diff]"},
        {"do": "see", "at": "[data-arguments] del", "holds": "src"},
        {"do": "see", "at": "[data-arguments] ins", "holds": "docs"},
        {"do": "shot", "path": shot("inbox-changes.png")},
        {"do": "click", "at": "[data-act=remember]"},
        {"do": "see", "at": "[data-proposals] li:has(code:text('startsWith'))", "holds": "covers 2 of the last 3"},
        {"do": "shot", "path": shot("inbox-remember.png")},
        {"do": "click", "at": "[data-proposals] li:has(code:text('startsWith')) button"},
        {"do": "click", "at": "[data-act=approve-remembered]"},
        {"do": "hidden", "at": format!("[data-pending={id}]")},
    ]);
    let mut page = Script::browser(&real, &gate.console(), steps);
    page.event("done");
    page.assert_no_page_error();
    waits.join().unwrap();
    let grants = gate.cli(&["grants", "list"]);
    assert!(grants.contains("startsWith(\"docs/\")"), "{grants}");
}

/// A made-up token of the form that the secret rules know.
const TOKEN: &str = "ghp_1234567890abcdefghijABCDEFGHIJ123456";

#[test]
fn a_secret_is_masked_until_somebody_asks_for_it_and_the_audit_log_has_who_did() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let gate = Setup::fast_demo("").start();
    let text = format!("the token is {TOKEN}");
    let waits = call(&gate, "demo_note", json!({"name": "n", "text": text}));
    let id = gate.pending();
    let login = gate.log_in("");
    let reads = |action: &str| login.post(action, &json!({"id": id})).to_string();
    for action in ["inbox", "requests/get", "requests/conditions"] {
        assert!(!reads(action).contains(TOKEN), "{action}");
    }
    assert!(!login.state().to_string().contains(TOKEN));
    let steps = json!([
        {"do": "pending", "holds": "the token is"},
        {"do": "see", "at": "[data-detail] .warning", "holds": "1 secret is masked"},
        {"do": "shot", "path": shot("inbox-masked.png")},
        {"do": "wait"},
        {"do": "click", "at": "[data-act=reveal]"},
        {"do": "see", "at": "[data-arguments]", "holds": TOKEN},
        {"do": "deny", "reason": "no secrets"},
    ]);
    let mut page = Script::browser(&real, &gate.console(), steps);
    let shown = page.event("pending").to_string();
    assert!(
        shown.contains("[redacted:") && !shown.contains(TOKEN),
        "{shown}"
    );
    page.event("waiting");
    let reveals = |gate: &Gate| {
        gate.audit()
            .into_iter()
            .filter(|r| r["ev"] == "reveal")
            .collect::<Vec<_>>()
    };
    assert_eq!(reveals(&gate), Vec::<Value>::new());
    page.go_on();
    page.event("done");
    page.assert_no_page_error();
    waits.join().unwrap();
    let reveals = reveals(&gate);
    assert_eq!(reveals.len(), 1);
    assert_eq!(
        (&reveals[0]["approval"], &reveals[0]["by"]),
        (&json!(id), &json!("console"))
    );
    assert!(!gate.audit().iter().any(|r| r.to_string().contains(TOKEN)));
}

#[test]
fn two_people_see_each_other_at_a_request_and_one_decision_counts() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let gate = Setup::fast_demo("").start();
    let waits = note(gate.port, "for two people");
    let id = gate.pending();
    let ann = json!([
        {"do": "pending", "holds": "for two people"},
        {"do": "see", "at": "[data-others]", "holds": "bob (console)"},
        {"do": "see", "at": format!("[data-pending={id}]"), "holds": "1 looking"},
        {"do": "shot", "path": shot("inbox-two-people.png")},
        {"do": "wait"},
        {"do": "hidden", "at": format!("[data-pending={id}]")},
        {"do": "see", "at": "#view-inbox", "holds": "Just decided"},
        {"do": "click", "at": "#view-inbox summary:text('Just decided')"},
        {"do": "see", "at": ".recent", "holds": "denied by bob (console) \u{201c}not today\u{201d}"},
    ]);
    let bob = json!([
        {"do": "pending", "holds": "for two people"},
        {"do": "see", "at": "[data-others]", "holds": "ann (console)"},
        {"do": "wait"},
        {"do": "deny", "reason": "not today"},
    ]);
    let link = |name: &str| {
        let out = gate.cli(&["console", "--as", name]);
        let link = out
            .split_whitespace()
            .find(|word| word.starts_with("http://"));
        link.unwrap().to_owned()
    };
    let mut ann = Script::browser(&real, &link("ann"), ann);
    let mut bob = Script::browser(&real, &link("bob"), bob);
    ann.event("waiting");
    bob.event("waiting");
    ann.go_on();
    bob.go_on();
    bob.event("done");
    ann.event("done");
    ann.assert_no_page_error();
    assert!(waits.join().unwrap().body.contains("not today"));
}

#[test]
fn a_claim_to_destroy_counts_beside_a_claim_to_be_read_only() {
    let mut wipe = tool("wipe", "Wipes a disk", json!({}));
    wipe["annotations"] = json!({"readOnlyHint": true, "destructiveHint": true});
    let gate = offering(&json!({"tools": [wipe]}), "");
    let waits = call(&gate, "s_wipe", json!({}));
    let id = gate.pending();
    let state = gate.log_in("ann").state();
    assert_eq!(state["pending"][0]["must_type"], true, "{state}");
    gate.cli(&["deny", &id, "-m", "no"]);
    waits.join().unwrap();
}
