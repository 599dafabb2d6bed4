//! The config read again while the gateway runs.

use crate::help::{
    Family, Gate, LONG, Modern, SOON, Session, Setup, answer_of, message_of, raw, request, until,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

const CALLERS: u32 = 6;
/// Reloads of T76, unless `TOOLGATE_T76` says how many.
const RELOADS: u32 = 60;

/// A config with these servers, all of them the demo server, and more.
fn config(servers: &[&str], more: &str) -> String {
    let program = env!("CARGO_BIN_EXE_toolgate");
    let server = |id: &&str| {
        format!(
            "[server.{id}]\ncommand = [{program:?}, \"demo-server\"]\ntrust_annotations = true\n"
        )
    };
    let servers: String = servers.iter().map(server).collect();
    format!("[limits]\nrate = \"1000000/s\"\n{servers}{more}")
}

/// Nobody may use the tool that fails.
const NO_FAIL: &str = "[[rule]]\ntools = [\"demo.fail\"]\naction = \"deny\"\n";

fn sha256(text: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Results of many callers during repeated reloads.
#[derive(Default)]
struct Load {
    over: AtomicBool,
    answered: AtomicU64,
    wrong: Mutex<Vec<String>>,
}

fn call_on(port: u16, who: u32, load: &Load) {
    for number in 0.. {
        if load.over.load(Ordering::Relaxed) {
            return;
        }
        let id = json!(format!("{who}-{number}"));
        let sum = Modern::call(port, &id, "demo_add", json!({"a": number, "b": who}));
        let answer = message_of(&sum, &id);
        let right =
            |answer: &Value| answer["result"]["structuredContent"]["sum"] == json!(number + who);
        if !answer.as_ref().is_some_and(right) {
            load.wrong.lock().unwrap().push(format!("{sum:?}"));
        }
        // Allowed by one of the two, hidden by the other; nothing else can come of it.
        let id = json!(format!("fail-{who}-{number}"));
        let fail = Modern::call(port, &id, "demo_fail", json!({}));
        let (allowed, hidden) = (
            fail.body.contains("printer is on fire"),
            fail.body.contains("nknown tool"),
        );
        if allowed == hidden {
            load.wrong.lock().unwrap().push(format!("{fail:?}"));
        }
        load.answered.fetch_add(2, Ordering::Relaxed);
    }
}

#[test]
fn t76_reloads_under_load_fail_no_call_and_each_call_has_one_policy() {
    let reloads = std::env::var("TOOLGATE_T76")
        .ok()
        .and_then(|n| n.parse().ok());
    let reloads: u32 = reloads.unwrap_or(RELOADS);
    let (open, shut) = (config(&["demo"], ""), config(&["demo"], NO_FAIL));
    let gate = Setup::config(open.clone()).start();
    let child = Family::of(gate.pid());
    let load = Arc::new(Load::default());
    let port = gate.port;
    let callers: Vec<_> = (0..CALLERS)
        .map(|who| {
            let load = load.clone();
            thread::spawn(move || call_on(port, who, &load))
        })
        .collect();
    // One call that runs all the while.
    let slow = thread::spawn(move || {
        let arguments = json!({"to": 40, "delay_ms": 100});
        Modern::call(port, &json!("slow"), "demo_slow_count", arguments)
    });
    for n in 0..reloads {
        gate.configure(if n % 2 == 0 { &shut } else { &open });
        gate.cli(&["reload"]);
        let hash = sha256(if n % 2 == 0 { &shut } else { &open });
        let id = json!(format!("after-{n}"));
        let fail = Modern::call(port, &id, "demo_fail", json!({}));
        // What comes after the answer to `toolgate reload` is judged by the new config.
        assert_eq!(
            fail.body.contains("nknown tool"),
            n % 2 == 0,
            "{hash} {fail:?}"
        );
    }
    let slow = answer_of(&slow.join().unwrap(), &json!("slow"));
    assert!(
        slow["result"].is_object() && slow["result"]["isError"] != true,
        "{slow}"
    );
    load.over.store(true, Ordering::Relaxed);
    callers
        .into_iter()
        .for_each(|caller| caller.join().unwrap());
    let wrong = load.wrong.lock().unwrap();
    assert!(
        wrong.is_empty(),
        "{} wrong: {:#?}",
        wrong.len(),
        wrong.first()
    );
    assert_eq!(
        Family::of(gate.pid()).names(),
        child.names(),
        "the server kept running"
    );
    let records = gate.audit_files();
    let taken = |r: &&Value| r["ev"] == "policy.reload" && r["verdict"] == "taken";
    let taken = records.iter().filter(taken).count();
    // The watcher of the file may have been first now and then.
    assert!(taken >= reloads as usize, "{taken}");
    let judged = judged(&records, &sha256(&open), &sha256(&shut));
    let answered = load.answered.load(Ordering::Relaxed);
    println!(
        "T76: {reloads} reloads, {answered} calls under load, 0 failed; {judged} records, each with one policy"
    );
    gate.stop();
}

/// Counts the records that name a policy, and checks that each has the decision of that policy.
fn judged(records: &[Value], open: &str, shut: &str) -> usize {
    let mut policies: BTreeMap<&str, &str> = BTreeMap::new();
    for record in records {
        let Some(policy) = record["policy_hash"].as_str() else {
            continue;
        };
        assert!(policy == open || policy == shut, "{record}");
        let call = record["call"].as_str().unwrap();
        assert!(
            policies
                .insert(call, policy)
                .is_none_or(|first| first == policy),
            "{record}"
        );
        if record["rid"]
            .as_str()
            .is_some_and(|rid| rid.contains("fail-"))
        {
            let refused = record["ev"] == "deny";
            assert_eq!(refused, policy == shut, "{record}");
        }
    }
    policies.len()
}

#[test]
fn a_bad_config_changes_nothing_and_says_why() {
    let good = config(&["demo"], NO_FAIL);
    let gate = Setup::config(good.clone()).start();
    for (bad, why) in [
        ("[server.demo\n", "toolgate.toml:1"),
        (
            "[server.demo]\ncommand = [\"x\"]\nsurprise = 1\n",
            "surprise",
        ),
        ("", "no server is configured"),
    ] {
        gate.configure(bad);
        let out = gate.run(&["reload"]);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(1), "{said}");
        assert!(
            said.contains(why) && said.contains("the previous one stays active"),
            "{said}"
        );
        let fail = Modern::call(gate.port, &json!(1), "demo_fail", json!({}));
        assert!(
            fail.body.contains("nknown tool"),
            "the rule holds: {fail:?}"
        );
        let sum = Modern::call(gate.port, &json!(2), "demo_add", json!({"a": 1, "b": 1}));
        assert_eq!(
            answer_of(&sum, &json!(2))["result"]["structuredContent"]["sum"],
            2
        );
        let policy = &gate.state()["policy"];
        assert!(
            policy["refused"].as_str().is_some_and(|w| w.contains(why)),
            "{policy}"
        );
        assert_eq!(policy["hash"], sha256(&good), "{policy}");
        assert!(
            gate.said().iter().any(|line| line.contains(why)),
            "{:?}",
            gate.said()
        );
        let records = gate.audit();
        let told = records
            .iter()
            .rev()
            .find(|r| r["ev"] == "policy.reload")
            .unwrap();
        assert_eq!(told["verdict"], "refused", "{told}");
        assert_eq!(told["old"], sha256(&good), "{told}");
        assert!(
            told["why"].as_str().is_some_and(|w| w.contains(why)),
            "{told}"
        );
    }
    gate.configure(&good);
    gate.cli(&["reload"]);
    assert!(gate.state()["policy"]["refused"].is_null());
    gate.stop();
}

fn in_force(gate: &Gate, text: &str) {
    let hash = sha256(text);
    until("the config is in force", SOON, || {
        (gate.state()["policy"]["hash"] == hash.as_str()).then_some(())
    });
}

#[test]
fn a_signal_and_a_changed_file_are_enough() {
    let gate = Setup::config(config(&["demo"], "")).start();
    let shut = config(&["demo"], NO_FAIL);
    gate.configure(&shut);
    in_force(&gate, &shut);
    let again = config(&["demo"], "# once more\n");
    gate.configure(&again);
    gate.signal("HUP");
    in_force(&gate, &again);
    let by = gate.state()["policy"]["by"].clone();
    assert!(by == "signal" || by == "file", "{by}");
    gate.signal("HUP");
    until("a signal reads the same file again", SOON, || {
        (gate.state()["policy"]["by"] == "signal").then_some(())
    });
    gate.stop();
}

#[test]
fn servers_come_and_go_and_those_that_stay_keep_running() {
    let gate = Setup::config(config(&["demo", "two"], "")).start();
    let port = gate.port;
    until("both run", LONG, || {
        (gate.cli(&["tools"]).contains("two.add")).then_some(())
    });
    let both = Family::of(gate.pid());
    let slow = thread::spawn(move || {
        Modern::call(
            port,
            &json!("slow"),
            "two_slow_count",
            json!({"to": 20, "delay_ms": 100}),
        )
    });
    until("the call runs", SOON, || {
        gate.cli(&["calls"]).contains("running").then_some(())
    });
    gate.configure(&config(&["demo", "three"], ""));
    gate.cli(&["reload"]);
    let call = |tool: &str| Modern::call(port, &json!(7), tool, json!({"a": 1, "b": 1})).body;
    assert!(call("demo_add").contains("\"sum\":2"));
    until("the new one runs", LONG, || {
        call("three_add").contains("\"sum\":2").then_some(())
    });
    // While a server starts, an unknown name may still be one of its tools.
    let removed = call("two_add");
    assert!(removed.contains("nknown tool"), "{removed}");
    let slow = answer_of(&slow.join().unwrap(), &json!("slow"));
    assert!(
        slow["result"].is_object() && slow["result"]["isError"] != true,
        "the call ended on the gone server: {slow}"
    );
    until("the gone server ends", SOON, || {
        (Family::of(gate.pid()).len() == both.len()).then_some(())
    });
    assert_eq!(
        Family::of(gate.pid()).in_common(&both),
        both.len() - 1,
        "the one that stays was not touched"
    );
    let state = gate.state();
    let ids: Vec<_> = state["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["id"].clone())
        .collect();
    assert_eq!(ids, ["demo", "three"]);
    assert!(state["servers"][0]["restarts"] == 0, "{state}");
    gate.stop();
}

#[test]
fn clients_hear_that_the_lists_are_stale() {
    let gate = Setup::config(config(&["demo"], "")).start();
    let session = Session::open(gate.port);
    let mut stream = TcpStream::connect(("127.0.0.1", gate.port)).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let mut lines = session.headers();
    lines.retain(|line| !line.starts_with("Accept"));
    lines.push("Accept: text/event-stream".to_owned());
    stream
        .write_all(&request(gate.port, "GET", "/mcp", &lines, b""))
        .unwrap();
    let mut heard = String::new();
    let mut read = |until: &str| {
        let mut buffer = [0; 4096];
        while !heard.contains(until) {
            match stream.read(&mut buffer) {
                Ok(n @ 1..) => heard.push_str(&String::from_utf8_lossy(&buffer[..n])),
                end => panic!("no {until:?}: {end:?} after {heard:?}"),
            }
        }
    };
    read("\r\n\r\n");
    gate.configure(&config(&["demo"], NO_FAIL));
    gate.cli(&["reload"]);
    read("notifications/tools/list_changed");
    gate.stop();
}

#[test]
fn what_waits_for_a_restart_is_said() {
    let gate = Setup::config(config(&["demo"], "")).start();
    let other = config(&["demo"], "").replace("[limits]\n", "[limits]\nconnections = 99\n");
    gate.configure(&format!(
        "listen = \"127.0.0.1:1\"\ndata = \"/elsewhere\"\n{other}"
    ));
    let out = gate.run(&["reload"]);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{said}");
    assert!(said.contains("restart toolgate to listen there"), "{said}");
    assert!(said.contains("data is another directory now"), "{said}");
    assert!(said.contains("connections"), "{said}");
    // Without a token nothing is served beyond this machine, and a token can come in while it runs.
    gate.configure(&format!(
        "token = {{ file = \"token\" }}\n{}",
        config(&["demo"], "")
    ));
    let out = gate.run(&["reload"]);
    assert!(!out.status.success(), "there is no such file");
    let open = Modern::call(gate.port, &json!(1), "demo_add", json!({"a": 1, "b": 1}));
    assert_eq!(open.status, 200);
    gate.stop();
}

#[test]
fn there_is_nothing_to_read_again_without_a_file() {
    let gate = Setup::demo().start();
    let out = gate.run(&["reload"]);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(
        !out.status.success() && said.contains("there is no config file"),
        "{said}"
    );
    gate.signal("HUP");
    let list = Modern::body(&json!(1), "tools/list", json!({})).to_string();
    let list = raw(
        gate.port,
        &request(
            gate.port,
            "POST",
            "/mcp",
            &Modern::headers("tools/list", None),
            list.as_bytes(),
        ),
    );
    assert_eq!(list.status, 200, "SIGHUP ends nothing");
    gate.stop();
}
