//! Status strip: the problems that every page shows.

use super::{config, note};
use crate::help::{Script, Setup, browser, real, shot};
use serde_json::json;

#[test]
fn a_freeze_is_shown_on_every_page_with_thaw_and_at_each_call_that_it_refuses() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let gate = Setup::demo().start();
    let first = note(gate.port, "one that waits");
    gate.pending();
    let steps = json!([
        {"do": "pending", "holds": "one that waits"},
        {"do": "hidden", "at": "#frozen"},
        {"do": "wait"},
        {"do": "see", "at": "#frozen", "holds": "look into it"},
        {"do": "see", "at": "[data-detail] [data-frozen]", "holds": "Frozen: everything"},
        {"do": "rows", "at": "#frozen time", "names": ["title"]},
        {"do": "shot", "path": shot("frozen.png")},
        {"do": "click", "at": "[data-tab=calls]"},
        {"do": "see", "at": "#frozen", "holds": "look into it"},
        {"do": "click", "at": "[data-tab=tasks]"},
        {"do": "see", "at": "#frozen", "holds": "look into it"},
        {"do": "click", "at": "#frozen [data-act=thaw]"},
        {"do": "hidden", "at": "#frozen"},
        {"do": "click", "at": "[data-tab=inbox]"},
        {"do": "hidden", "at": "[data-detail] [data-frozen]"},
        {"do": "wait"},
        {"do": "see", "at": "[data-detail] [data-frozen]", "holds": "Frozen: server demo"},
        {"do": "see", "at": "#strip [data-freeze=\"server demo\"]", "holds": "The server demo is frozen by"},
        {"do": "hidden", "at": "#frozen"},
        {"do": "wait"},
        {"do": "see", "at": "[data-detail] [data-frozen]", "holds": "Frozen: caller anonymous@http"},
    ]);
    let mut page = Script::browser(&real, &gate.console(), steps);
    page.event("waiting");
    gate.cli(&["freeze", "all", "--reason", "we look into it"]);
    page.go_on();
    let told = page.event("see")["text"].to_string();
    assert!(told.contains("Everything is frozen by "), "{told}");
    assert!(told.contains("Thaw"), "{told}");
    let times = page.event("rows")["rows"].take();
    assert!(
        times[0]["title"].as_str().unwrap().ends_with(" UTC"),
        "{times}"
    );
    page.event("waiting");
    assert_eq!(gate.cli(&["freeze", "list"]), "", "nothing is frozen");
    gate.cli(&["freeze", "server", "demo"]);
    page.go_on();
    page.event("waiting");
    gate.cli(&["thaw", "server", "demo"]);
    gate.cli(&["freeze", "caller", "anonymous@http"]);
    page.go_on();
    page.event("done");
    first.join().unwrap();
}

#[test]
fn a_refused_config_is_shown_with_its_line_until_a_good_one_is_in_force() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let gate = Setup::config(config("")).start();
    let steps = json!([
        {"do": "see", "at": "#link[data-link=live]"},
        {"do": "hidden", "at": "#policy"},
        {"do": "wait"},
        {"do": "see", "at": "#policy", "holds": "toolgate.toml:1"},
        {"do": "click", "at": "[data-tab=servers]"},
        {"do": "see", "at": "#policy", "holds": "no_such_key"},
        {"do": "shot", "path": shot("refused-config.png")},
        {"do": "reload"},
        {"do": "see", "at": "#policy", "holds": "no_such_key"},
        {"do": "wait"},
        {"do": "hidden", "at": "#policy"},
    ]);
    let mut page = Script::browser(&real, &gate.console(), steps);
    page.event("waiting");
    gate.configure(&config("no_such_key = 1"));
    assert!(!gate.run(&["reload"]).status.success());
    page.go_on();
    page.event("waiting");
    gate.configure(&config(""));
    gate.cli(&["reload"]);
    page.go_on();
    page.event("done");
}

/// The limit is above the free space of any disk.
#[test]
fn a_disk_that_is_almost_full_is_shown_on_every_page() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let limits = "[limits]\nlow_disk_bytes = 1_099_511_627_776\n";
    let gate = Setup::config(config(limits)).start();
    let steps = json!([
        {"do": "see", "at": "#disk", "holds": "MiB free"},
        {"do": "click", "at": "[data-tab=tasks]"},
        {"do": "see", "at": "#disk", "holds": "almost full"},
        {"do": "wait"},
        {"do": "reload"},
        {"do": "see", "at": "#link[data-link=live]"},
        {"do": "hidden", "at": "#disk"},
    ]);
    let mut page = Script::browser(&real, &gate.console(), steps);
    page.event("waiting");
    gate.configure(&config("[limits]\nlow_disk_bytes = 0\n"));
    gate.cli(&["reload"]);
    page.go_on();
    page.event("done");
}

#[test]
fn everything_is_frozen_and_thawed_from_the_header() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let gate = Setup::demo().start();
    let steps = json!([
        {"do": "freeze", "reason": "an incident"},
        {"do": "see", "at": "#freeze[aria-pressed=true]", "holds": "Frozen"},
        {"do": "wait"},
        {"do": "thaw", "what": "all"},
        {"do": "see", "at": "#freeze[aria-pressed=false]"},
    ]);
    let mut page = Script::browser(&real, &gate.console(), steps);
    page.event("waiting");
    let frozen = gate.cli(&["freeze", "list"]);
    assert!(frozen.contains("an incident"), "{frozen}");
    page.go_on();
    page.event("done");
    assert_eq!(gate.cli(&["freeze", "list"]), "");
}
