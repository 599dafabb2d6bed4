//! The past at the console: overview, calls of the audit log, search, verification, export.

use super::{call, note};
use crate::help::{Gate, Modern, Script, Setup, browser, real, shot};
use serde_json::{Value, json};

const RULES: &str = "[[rule]]\ntools = [\"demo.add\"]\nwhen = \"args.a == 13\"\naction = \"deny\"\n\
     [[notify]]\nname = \"pictures\"\nchannel = \"desktop\"\ntools = [\"demo.picture\"]\n";

/// Six calls of `add`, two that a rule denies, one with invalid arguments, and three that a person approves.
pub(super) fn busy_gate() -> Gate {
    let gate = Setup::fast_demo(RULES).start();
    let add = |a: u32| Modern::call(gate.port, &json!(1), "demo_add", json!({"a": a, "b": 1}));
    (1..=6).for_each(|a| drop(add(a)));
    (0..2).for_each(|_| drop(add(13)));
    Modern::call(gate.port, &json!(1), "demo_fail", json!({"x": 1}));
    for n in 0..3 {
        let waits = call(
            &gate,
            "demo_note",
            json!({"name": format!("n{n}"), "text": "x"}),
        );
        let id = gate.pending();
        gate.cli(&["approve", &id]);
        waits.join().unwrap();
    }
    gate
}

#[test]
fn the_overview_shows_decisions_flows_refusals_and_what_stands_out() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let gate = busy_gate();
    let waits = note(gate.port, "still waiting");
    gate.pending();
    let steps = json!([
        {"do": "go", "to": "#/overview"},
        {"do": "see", "at": "[data-tile=Calls]", "holds": "12"},
        {"do": "see", "at": "[data-tile='Waiting now']", "holds": "1"},
        {"do": "see", "at": "svg.bars[aria-label*='6 allowed']"},
        {"do": "rows", "at": "svg.bars", "names": ["aria-label"]},
        {"do": "see", "at": "[data-map='caller anonymous@http']"},
        {"do": "see", "at": "[data-map='server demo']"},
        {"do": "see", "at": "#view-overview", "holds": "denied by a rule"},
        {"do": "see", "at": "#view-overview", "holds": "rule 1"},
        {"do": "see", "at": "[data-insight=always-approved]", "holds": "demo.note"},
        {"do": "see", "at": "[data-insight=never-called]", "holds": "demo.picture"},
        {"do": "shot", "path": shot("overview.png")},
        {"do": "click", "at": "[data-map='server demo']"},
        {"do": "see", "at": "[data-filters]", "holds": "server demo"},
        {"do": "see", "at": "[data-map='server demo'] rect:focus"},
        {"do": "click", "at": "[data-act=clear-server]"},
        {"do": "click", "at": "[data-range='7d']"},
        {"do": "see", "at": "[data-tile=Calls]", "holds": "12"},
        {"do": "click", "at": "#view-overview a:text-is('2')"},
        {"do": "see", "at": "[data-only]", "holds": "denied by a rule"},
        {"do": "see", "at": "#view-calls", "holds": "2 calls"},
        {"do": "see", "at": "[data-call][data-refusal=rule]"},
        {"do": "count", "at": "[data-call]"},
    ]);
    let mut page = Script::browser(&real, &gate.console(), steps);
    let charts = page.event("rows")["rows"].to_string();
    assert!(
        charts.contains("3 approved") && charts.contains("3 refused"),
        "{charts}"
    );
    assert_eq!(page.event("count")["count"], 2, "the two calls of the link");
    page.event("done");
    page.assert_no_page_error();
    gate.cli(&["freeze", "all"]);
    waits.join().unwrap();
}

#[test]
fn a_call_of_the_past_shows_what_the_audit_log_has_of_it() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let gate = busy_gate();
    let ends = gate
        .audit()
        .into_iter()
        .filter(|r| r["ev"] == "call.begin" && r["tool"] == "demo.note");
    let id = ends
        .map(|r| r["call"].as_str().unwrap().to_owned())
        .next()
        .unwrap();
    // A gateway that was started since then knows the call from the log only.
    let (port, data) = (gate.port, gate.stop());
    let gate = Setup::fast_demo(RULES).at(port).start_in(data);
    let steps = json!([
        {"do": "go", "to": "#/calls"},
        {"do": "click", "at": "#view-calls [data-range='24h']"},
        {"do": "see", "at": "[data-call]"},
        {"do": "count", "at": "[data-call]"},
        {"do": "go", "to": format!("#/calls/{id}")},
        {"do": "see", "at": "[data-call-detail]", "holds": "approved"},
        {"do": "see", "at": "[data-call-detail] .steps", "holds": "granted"},
    ]);
    let mut page = Script::browser(
        &real,
        &gate.console(),
        steps.as_array().unwrap()[..6].into(),
    );
    assert_eq!(page.event("count")["count"], 12);
    let shown = page.event_where("see", |e| {
        e["text"].as_str().is_some_and(|t| t.contains("demo.note"))
    });
    let text = shown["text"].as_str().unwrap();
    for part in [
        "approval",
        "by",
        "digest of the arguments",
        "call.begin",
        "call.end",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    page.event("done");
    page.assert_no_page_error();
}

#[test]
fn the_audit_log_is_searched_verified_and_exported() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let gate = busy_gate();
    let steps = json!([
        {"do": "go", "to": "#/audit"},
        {"do": "see", "at": "[data-record]"},
        {"do": "select", "at": "select[aria-label=Event]", "value": "deny"},
        {"do": "see", "at": "#view-audit [role=status]", "holds": "3 records"},
        {"do": "fill", "at": "[data-field=decision]", "text": "refused"},
        {"do": "fill", "at": "[data-field=tool]", "text": "demo.add"},
        {"do": "fill", "at": "[data-field=caller]", "text": "anonymous@http"},
        {"do": "fill", "at": "[data-field=text]", "text": "refused_rule"},
        {"do": "click", "at": "[data-act=search]"},
        {"do": "see", "at": "#view-audit [role=status]", "holds": "2 records"},
        {"do": "click", "at": "[data-record] .open"},
        {"do": "see", "at": "#view-audit .card", "holds": "rule 1"},
        {"do": "shot", "path": shot("audit.png")},
        {"do": "click", "at": "[data-act=export]"},
        {"do": "see", "at": "#view-audit > [role=status]", "holds": "Exported 2 records"},
        {"do": "click", "at": "[data-act=verify]"},
        {"do": "see", "at": "[data-verdict=intact] [data-chain] svg.chain"},
        {"do": "shot", "path": shot("audit-verified.png")},
        {"do": "wait"},
        {"do": "click", "at": "[data-act=verify]"},
        {"do": "see", "at": "[data-verdict=broken]", "holds": "First fault"},
        {"do": "shot", "path": shot("audit-broken.png")},
    ]);
    let mut page = Script::browser(&real, &gate.console(), steps);
    page.event("waiting");
    // Somebody changes a record.
    let audit = gate.data.path().join("state/audit");
    let chains = std::fs::read_dir(&audit)
        .unwrap()
        .filter_map(|e| Some(e.ok()?.path()));
    let chain = chains.into_iter().find(|path| path.is_dir()).unwrap();
    let file = chain.join("seg-00000001.jsonl");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replacen("\"out\":\"ok\"", "\"out\":\"no\"", 1)).unwrap();
    page.go_on();
    page.event("done");
    page.assert_no_page_error();
}

#[test]
fn each_action_of_the_past_needs_a_session() {
    let gate = Setup::demo().start();
    let lines = ["Content-Type: application/json"].map(str::to_owned);
    for action in [
        "history/overview",
        "history/calls",
        "audit/search",
        "audit/export",
        "config/get",
        "config/save",
        "items",
        "requests/reveal",
    ] {
        let path = format!("/console/api/{action}");
        let answer = crate::help::send(gate.port, "POST", &path, &lines, b"{}");
        assert_eq!(answer.status, 401, "{action}");
    }
    let unknown = gate.log_in("").post("no/such", &Value::Null);
    assert!(
        unknown["error"].as_str().unwrap().contains("no/such"),
        "{unknown}"
    );
}
