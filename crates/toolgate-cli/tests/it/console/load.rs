//! The console beside many calls, tools and requests. The test prints its figures: `cargo xtask long` has the full counts.

use super::{call, config, tool};
use crate::help::{
    Gate, LONG, Modern, Script, Setup, TempDir, browser, real, rss_of, try_raw, until,
};
use serde_json::{Value, json};
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// Numbers of recorded calls, tools, waiting requests, and calls a second.
struct Counts {
    calls: usize,
    tools: usize,
    requests: usize,
    rate: u32,
}

fn counts() -> Counts {
    match std::env::var_os("TOOLGATE_CONSOLE_LOAD").is_some() {
        true => Counts {
            calls: 10_000,
            tools: 2_000,
            requests: 200,
            rate: 500,
        },
        false => Counts {
            calls: 300,
            tools: 300,
            requests: 40,
            rate: 100,
        },
    }
}

fn loaded_gate(counts: &Counts) -> Gate {
    let data = Arc::new(TempDir::new("load"));
    let text = json!({"text": {"type": "string", "description": "The text."}});
    let tools: Vec<Value> = (0..counts.tools)
        .map(|n| {
            tool(
                &format!("tool_{n}"),
                "Reads one of many texts.",
                text.clone(),
            )
        })
        .collect();
    let file = data.write("offer.json", &json!({"tools": tools}).to_string());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/servers/changing.py");
    let many = format!("[server.many]\ncommand = [\"python3\", {script:?}, {file:?}]\n");
    let limits = "[limits]\nrate = \"1000000/s\"\napprovals_per_caller = 256\n\n";
    Setup::config(config(&format!("{limits}{many}"))).start_in(data)
}

/// Sends calls at a rate until the number of the next one is too large. Returns their number.
fn send_calls(port: u16, rate: u32, is_over: impl Fn(usize) -> bool + Sync) -> usize {
    let sent = AtomicUsize::new(0);
    let started = Instant::now();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let add = Modern::request(port, &json!(1), "demo_add", json!({"a": 1, "b": 2}));
                loop {
                    let number = sent.fetch_add(1, Ordering::Relaxed);
                    if is_over(number) {
                        break;
                    }
                    // An open loop: a call is due at its time, however slow the others are.
                    let due = started + Duration::from_secs(1) / rate * number as u32;
                    thread::sleep(due.saturating_duration_since(Instant::now()));
                    let answer = try_raw(port, &add).expect("an answer");
                    assert!(answer.body.contains("\"result\""), "{answer:?}");
                }
            });
        }
    });
    sent.into_inner()
}

#[test]
fn many_calls_tools_and_requests_leave_the_console_usable() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let counts = counts();
    let gate = loaded_gate(&counts);
    let is_over = AtomicBool::new(false);
    for n in 0..counts.calls {
        let answer = Modern::call(gate.port, &json!(1), "demo_add", json!({"a": n, "b": 1}));
        assert!(answer.body.contains("\"result\""), "{answer:?}");
    }
    let requests: Vec<_> = (0..counts.requests)
        .map(|n| {
            call(
                &gate,
                "demo_note",
                json!({"name": format!("n{n}"), "text": "x"}),
            )
        })
        .collect();
    // A gateway that takes up so many requests at once may answer later than the command waits.
    until("all requests wait", LONG, || {
        let listed = gate.run(&["inbox"]).stdout;
        let listed = String::from_utf8_lossy(&listed);
        let waiting = listed
            .lines()
            .filter(|line| line.trim_start().starts_with("a-"));
        (waiting.count() == counts.requests).then_some(())
    });
    let steps = json!([
        {"do": "see", "at": "#link[data-link=live]"},
        {"do": "go", "to": "#/inbox"},
        {"do": "usable", "at": "[data-requests]"},
        {"do": "go", "to": "#/tools"},
        {"do": "see", "at": "[data-tool]"},
        {"do": "usable", "at": "[data-tool]"},
        {"do": "go", "to": "#/calls"},
        {"do": "click", "at": "#view-calls [data-range=live]"},
        {"do": "wait"},
        {"do": "frames", "count": 200},
        {"do": "click", "at": "[data-act=pause]"},
        {"do": "see", "at": "#view-calls", "holds": "newer calls"},
        {"do": "go", "to": "#/inbox"},
        {"do": "frames", "count": 200},
        {"do": "wait"},
    ]);
    let mut page = Script::browser(&real, &gate.console(), steps);
    let inbox = page.event("usable");
    let tools = page.event("usable");
    page.event("waiting");
    let (calls, beside, sent, took) = thread::scope(|scope| {
        let started = Instant::now();
        let load =
            scope.spawn(|| send_calls(gate.port, counts.rate, |_| is_over.load(Ordering::Relaxed)));
        page.go_on();
        let calls = page.event("frames");
        let beside = page.event("frames");
        page.event("waiting");
        is_over.store(true, Ordering::Relaxed);
        (calls, beside, load.join().unwrap(), started.elapsed())
    });
    let show = |times: &Value, names: [&str; 3]| {
        let shown = names.map(|name| format!("{name} {} ms", times[name]));
        shown.join(", ")
    };
    println!(
        "{} recorded calls, {} tools, {} requests: inbox {} ms to the first paint and {} ms until usable, tools {} and {} ms; \
         at {:.0} calls/s, frames of the calls: {}, of the inbox: {}",
        counts.calls,
        counts.tools,
        counts.requests,
        inbox["paint"],
        inbox["ready"],
        tools["paint"],
        tools["ready"],
        sent as f64 / took.as_secs_f64(),
        show(&calls, ["median", "p95", "longest"]),
        show(&beside, ["median", "p95", "longest"]),
    );
    // Goals: 400 ms until usable, and a median frame of 33 ms. The bounds only find what hangs.
    for ready in [&inbox["ready"], &tools["ready"]] {
        assert!(ready.as_f64().unwrap() < 10_000.0, "{inbox} {tools}");
    }
    for frames in [&calls, &beside] {
        assert!(frames["median"].as_f64().unwrap() < 1_000.0, "{frames}");
    }
    page.assert_no_page_error();
    gate.cli(&["freeze", "all"]);
    requests
        .into_iter()
        .for_each(|call| drop(call.join().unwrap()));
}

#[test]
fn memory_of_the_gateway_and_of_the_page_stays_flat_over_many_calls() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let total =
        std::env::var("TOOLGATE_CONSOLE_CALLS").map_or(3_000, |count| count.parse().unwrap());
    // The lists of the page and of the gateway, and the allocators, are full by then.
    let begin = total / 2;
    let limits = "[limits]\nrate = \"1000000/s\"\n";
    let gate = Setup::config(config(limits)).start();
    let steps = json!([
        {"do": "go", "to": "#/calls"},
        {"do": "click", "at": "#view-calls [data-range=live]"},
        {"do": "wait"},
        {"do": "heap"},
        {"do": "wait"},
        {"do": "heap"},
    ]);
    let mut page = Script::browser(&real, &gate.console(), steps);
    let mut measure = |calls: usize| {
        page.event("waiting");
        send_calls(gate.port, 500, |number| number >= calls);
        page.go_on();
        let heap = page.event("heap")["bytes"].as_u64().unwrap();
        [rss_of(gate.pid()), heap].map(|bytes| bytes as f64 / 1_048_576.0)
    };
    let before = measure(begin);
    let after = measure(total - begin);
    println!(
        "after {begin} and {total} calls: gateway {:.1} and {:.1} MiB, page {:.1} and {:.1} MiB",
        before[0], after[0], before[1], after[1]
    );
    for (before, after) in before.into_iter().zip(after) {
        assert!(after < before * 1.2 + 4.0, "from {before} to {after} MiB");
    }
    page.assert_no_page_error();
}
