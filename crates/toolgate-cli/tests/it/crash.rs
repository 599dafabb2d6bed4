//! `kill -9` of the gateway under load: no orphan, no answer without its record, no broken log.

use crate::help::{Family, Gate, LONG, Modern, Setup, TempDir, ends, message_of, try_raw, until};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

const KILLS: u32 = 20;
const CALLERS: u32 = 4;
/// Answers in each life before the kill falls.
const ANSWERS: usize = 40;

#[derive(Default)]
struct Load {
    answered: Mutex<BTreeSet<String>>,
    over: AtomicBool,
}

/// Calls until the gateway is gone; notes the id of every call that was answered in full.
fn call_on(port: u16, who: String, load: &Load) {
    for number in 0.. {
        if load.over.load(Ordering::Relaxed) {
            return;
        }
        let id = json!(format!("{who}-{number}"));
        let request = Modern::request(port, &id, "demo_add", json!({"a": number, "b": 1}));
        let Some(response) = try_raw(port, &request) else {
            continue;
        };
        let Some(answer) = message_of(&response, &id) else {
            continue;
        };
        if answer["result"]["structuredContent"]["sum"] == json!(number + 1) {
            let id = id.as_str().unwrap().to_owned();
            load.answered.lock().unwrap().insert(id);
        }
    }
}

fn one_life(life: u32, gate: Gate, all: &mut BTreeSet<String>) {
    let load = Arc::new(Load::default());
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let (load, port) = (load.clone(), gate.port);
            thread::spawn(move || call_on(port, format!("life{life}-caller{caller}"), &load))
        })
        .collect();
    until("calls are answered", LONG, || {
        (load.answered.lock().unwrap().len() >= ANSWERS).then_some(())
    });
    let family = Family::of(gate.pid());
    assert!(
        family.len() >= 2,
        "the guardian and the demo server: {:?}",
        family.names()
    );
    gate.kill();
    load.over.store(true, Ordering::Relaxed);
    for caller in callers {
        let _ = caller.join();
    }
    family.is_gone();
    all.append(&mut load.answered.lock().unwrap());
}

#[test]
fn twenty_kills_under_load_lose_no_answered_call_and_leave_no_orphan() {
    let data = Arc::new(TempDir::new("crash"));
    let mut answered = BTreeSet::new();
    for life in 0..KILLS {
        one_life(
            life,
            Setup::fast_demo("").start_in(data.clone()),
            &mut answered,
        );
    }
    let gate = Setup::fast_demo("").start_in(data);
    let recorded = ends(&gate.audit());
    let lost: Vec<_> = answered.difference(&recorded).collect();
    assert!(lost.is_empty(), "answered but not recorded: {lost:?}");
    assert!(answered.len() >= ANSWERS * KILLS as usize);
    assert!(gate.cli(&["audit", "verify"]).contains("intact"));
    gate.stop();
}

/// A server that neither answers nor listens to anyone, and has a child of the same kind. It ends by itself, late.
const STUBBORN: &str = "[server.stubborn]\ncommand = [\"sh\", \"-c\", \"trap '' TERM INT HUP; \
    (trap '' TERM INT HUP; sleep 98) & sleep 99; sleep 1\"]\n";

#[test]
fn a_killed_gateway_takes_even_a_child_with_it_that_listens_to_nobody() {
    let gate = Setup::fast_demo(STUBBORN).start();
    let family = until("the stubborn server runs", LONG, || {
        let family = Family::of(gate.pid());
        let sleeps = family
            .names()
            .iter()
            .filter(|name| **name == "sleep")
            .count();
        (sleeps == 2).then_some(family)
    });
    gate.kill();
    family.is_gone();
}

#[test]
fn a_polite_end_leaves_no_orphan_either() {
    let gate = Setup::demo().start();
    let family = until("the demo server runs", LONG, || {
        let family = Family::of(gate.pid());
        (family.len() >= 2).then_some(family)
    });
    gate.stop();
    family.is_gone();
}
