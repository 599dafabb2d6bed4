//! Each page of the console by keyboard alone, in light and dark, on a wide and on a narrow screen: axe-core finds nothing, and nothing is
//! wider than the screen. The test writes a screenshot of each into `target/screenshots`.

use super::{call, record::busy_gate};
use crate::help::{SOON, Script, browser, real, shot, until};
use serde_json::{Value, json};

/// Pages with the steps that open their parts: the name, and the steps.
fn pages(request: &str, destructive: &str) -> Vec<(&'static str, Value)> {
    let go = |to: &str| json!({"do": "go", "to": to});
    let see = |at: &str| json!({"do": "see", "at": at});
    let click = |at: &str| json!({"do": "click", "at": at});
    vec![
        (
            "overview",
            json!([
                go("#/overview"),
                see("[data-map='server demo']"),
                see("[data-insight]")
            ]),
        ),
        (
            "inbox",
            json!([
                go(&format!("#/inbox/{request}")),
                see(&format!("[data-detail={request}] [data-arguments]"))
            ]),
        ),
        (
            "inbox-destructive",
            json!([
                go(&format!("#/inbox/{destructive}")),
                see(&format!("[data-detail={destructive}] [data-arguments]"))
            ]),
        ),
        (
            "calls",
            json!([
                go("#/calls"),
                click("#view-calls [data-range=live]"),
                see("[data-call]")
            ]),
        ),
        (
            "calls-past",
            json!([
                click("#view-calls [data-range='24h']"),
                see("#view-calls .calls:not([aria-busy]) [data-call]"),
            ]),
        ),
        (
            "call",
            json!([click("[data-call] .open"), see("[data-call-detail] .steps")]),
        ),
        ("tasks", json!([go("#/tasks"), see("#view-tasks h2")])),
        ("tools", json!([go("#/tools"), see("[data-tool]")])),
        (
            "tool",
            json!([
                click("[data-tool$='add'] .open"),
                see("[data-tool-detail] .facts")
            ]),
        ),
        (
            "servers",
            json!([go("#/servers"), see("[data-server=demo] [data-traffic] dd")]),
        ),
        ("changes", json!([go("#/changes"), see("#view-changes h2")])),
        (
            "sign-ins",
            json!([go("#/sign-ins"), see("#view-sign-ins h2")]),
        ),
        ("rules", json!([go("#/rules"), see("[data-rule='1']")])),
        (
            "rules-edit",
            json!([
                click("[data-act=edit-rule]"),
                see("[data-field=code]"),
                click("[data-act=preview]"),
                see("[data-effect-sum]")
            ]),
        ),
        (
            "grants",
            json!([
                click("[data-act=cancel-edit]"),
                go("#/grants"),
                see("#view-grants h2")
            ]),
        ),
        (
            "callers",
            json!([go("#/callers"), see("#view-callers tbody tr")]),
        ),
        ("keys", json!([go("#/keys"), see("[data-field=key-name]")])),
        (
            "audit",
            json!([
                go("#/audit"),
                see("[data-record]"),
                click("[data-record] .open"),
                click("[data-act=verify]"),
                see("[data-verdict=intact]")
            ]),
        ),
        (
            "notifications",
            json!([go("#/notifications"), see("[data-notification]")]),
        ),
        (
            "settings",
            json!([
                go("#/settings"),
                see("#view-settings [data-version]"),
                see("[data-session]")
            ]),
        ),
        (
            "freeze",
            json!([click("#freeze"), see("[data-field=freeze-reason]")]),
        ),
    ]
}

#[test]
fn every_page_is_accessible_and_fits_in_light_and_dark_on_wide_and_narrow_screens() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let gate = busy_gate();
    let note = call(
        &gate,
        "demo_note",
        json!({"name": "shopping", "text": "milk\nbread"}),
    );
    let request = gate.pending();
    let delete = call(&gate, "demo_delete_note", json!({"name": "shopping"}));
    let destructive = until("both wait", SOON, || {
        gate.inbox().into_iter().find(|id| *id != request)
    });
    let mut steps = vec![json!({"do": "see", "at": "#link[data-link=live]"})];
    for (name, open) in pages(&request, &destructive) {
        steps.extend([
            json!({"do": "size", "width": 1440}),
            json!({"do": "colors", "scheme": "light"}),
        ]);
        steps.extend(open.as_array().unwrap().iter().cloned());
        steps.push(json!({"do": "tab_through", "page": name}));
        for (width, scheme) in [
            (1440, "light"),
            (1440, "dark"),
            (390, "dark"),
            (390, "light"),
        ] {
            let of = format!("{name}-{scheme}-{width}");
            steps.push(json!({"do": "colors", "scheme": scheme}));
            steps.push(json!({"do": "size", "width": width}));
            steps.push(json!({"do": "view", "path": shot(&format!("{of}.png"))}));
            steps.push(json!({"do": "axe", "page": of}));
        }
    }
    let checks = steps.iter().filter(|step| step["do"] == "axe").count();
    let mut page = Script::browser(&real, &gate.console(), json!(steps));
    for _ in 0..checks {
        page.event("axe");
    }
    page.event("done");
    let violations: Vec<String> = page
        .seen("axe")
        .into_iter()
        .filter(|found| found["violations"] != json!([]))
        .map(|found| format!("{}: {}", found["page"], found["violations"]))
        .collect();
    assert!(
        violations.is_empty(),
        "{} of {checks}:\n{}",
        violations.len(),
        violations.join("\n")
    );
    let wide: Vec<&Value> = page
        .seen("size")
        .into_iter()
        .filter(|size| size["wide"].as_u64() > size["width"].as_u64())
        .collect();
    assert!(wide.is_empty(), "wider than the screen: {wide:?}");
    let unreached: Vec<&Value> = page
        .seen("tab_through")
        .into_iter()
        .filter(|found| {
            ["missed", "unmarked", "mouse"]
                .iter()
                .any(|key| found[*key] != json!([]))
        })
        .collect();
    assert!(unreached.is_empty(), "not for the keyboard: {unreached:#?}");
    page.assert_no_page_error();
    gate.cli(&["freeze", "all"]);
    drop((note.join(), delete.join()));
}
