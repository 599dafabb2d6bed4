//! Erasure of recorded contents: `encrypt_contents`, `toolgate audit erase` and `keep_contents_days`.

use crate::help::{Gate, Modern, Response, SOON, Setup, output, send, toolgate, until};
use serde_json::{Value, json};
use std::{fs, path::Path};
use toolgate_testkit::postgres::PostgresServer;
use toolgate_verify::{VerifyOptions, verify};

const TEXT: &str =
    "[audit]\narguments = \"redacted\"\nresults = \"redacted\"\nencrypt_contents = true\n";
const RULE: &str = "\n[[rule]]\ntools = [\"demo.note\"]\naction = \"allow\"\n";

fn start(more: &str) -> Gate {
    Setup::fast_demo(&format!("{TEXT}{more}{RULE}")).start()
}

/// Writes a note with the key of a caller.
fn try_note(gate: &Gate, key: &str, text: &str) -> Response {
    let params = json!({"name": "demo_note", "arguments": {"name": "n", "text": text}});
    let body = Modern::body(&json!(1), "tools/call", params).to_string();
    let mut headers = Modern::headers("tools/call", Some("demo_note"));
    headers.push(format!("Authorization: Bearer {key}"));
    send(gate.port, "POST", "/mcp", &headers, body.as_bytes())
}

fn note(gate: &Gate, key: &str, text: &str) {
    let answer = try_note(gate, key, text);
    assert_eq!(answer.status, 200, "{answer:?}");
}

fn key(gate: &Gate, name: &str) -> String {
    gate.cli(&["keys", "create", name]).trim().to_owned()
}

/// Returns the contents of one field in the records of a caller, as the command line reads them.
fn contents(gate: &Gate, caller: &str, field: &str) -> Vec<String> {
    let records = gate.audit();
    let of = records.iter().filter(|record| record["caller"] == caller);
    let texts = of.filter_map(|record| record[field].as_str());
    texts.map(str::to_owned).collect()
}

/// Returns the arguments of a caller's calls, as the console shows them.
fn console_arguments(gate: &Gate, caller: &str) -> Vec<String> {
    let login = gate.log_in("");
    let found = login.post("audit/search", &json!({"caller": caller, "most": 100}));
    let records = found["records"].as_array().unwrap();
    let texts = records.iter().filter_map(|record| {
        assert_eq!(record["fields"].get("args_enc"), None, "{record}");
        record["fields"]["args"].as_str()
    });
    texts.map(str::to_owned).collect()
}

/// Returns the number of past calls that cannot be judged under a rule that reads their arguments.
fn unknown_calls(gate: &Gate) -> Value {
    let rule = RULE.replace(
        "action",
        "when = '''args.text.startsWith(\"the-address\")'''\naction",
    );
    let config = format!(
        "[server.demo]\ncommand = [{:?}, \"demo-server\"]\ntrust_annotations = true\n{rule}",
        env!("CARGO_BIN_EXE_toolgate")
    );
    let config = gate.data.write("rules.toml", &config);
    let config = config.to_str().unwrap();
    let out = gate.cli(&["explain", "--history", "1d", "--json", "--config", config]);
    let out: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(out["calls"], 2, "{out}");
    out["unknown"].clone()
}

/// Returns the files below a folder whose bytes have a text.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if let Ok(bytes) = fs::read(&path)
            && bytes
                .windows(text.len())
                .any(|part| part == text.as_bytes())
        {
            found.push(path.display().to_string());
        }
    }
    found
}

/// Returns the secret of a row in the store.
fn secret(gate: &Gate, row: &str) -> String {
    let file = gate.data.path().join("state/state/state.sqlite");
    let database = rusqlite::Connection::open(file).unwrap();
    let sql = "SELECT value FROM entries WHERE tbl = 'content_keys' AND key = ?1";
    let value: String = database.query_row(sql, [row], |row| row.get(0)).unwrap();
    let value: Value = serde_json::from_str(&value).unwrap();
    value["secret"].as_str().unwrap().to_owned()
}

/// Verifies the audit log with both verifiers.
#[track_caller]
fn is_intact(gate: &Gate) {
    gate.cli(&["audit", "verify"]);
    let against = VerifyOptions {
        live: true,
        ..VerifyOptions::default()
    };
    let audit = gate.data.path().join("state/audit");
    assert_eq!(verify(&audit, &against).unwrap().exit_code(), 0);
}

#[test]
fn an_erased_caller_is_readable_nowhere_and_the_log_stays_intact() {
    let gate = start("");
    let (ann, bob) = (key(&gate, "ann"), key(&gate, "bob"));
    note(&gate, &ann, "the-address-of-ann");
    note(&gate, &bob, "the-address-of-bob");
    let folder = gate.data.path();
    for name in ["ann", "bob"] {
        let text = format!("the-address-of-{name}");
        assert_eq!(files_with(folder, &text), [""; 0], "plain text");
        let caller = format!("key:{name}");
        assert!(contents(&gate, &caller, "args")[0].contains(&text));
        assert_eq!(contents(&gate, &caller, "res").len(), 1);
    }
    let found = gate.cli(&["audit", "search", "--text", "the-address-of-ann", "--json"]);
    assert_eq!(found.lines().count(), 1, "a search reads contents");
    let secret = secret(&gate, "caller:key:ann");
    assert!(
        !files_with(folder, &secret).is_empty(),
        "it is in the store"
    );
    assert!(console_arguments(&gate, "key:ann")[0].contains("the-address-of-ann"));
    assert_eq!(unknown_calls(&gate), 0);
    is_intact(&gate);

    let erase = ["audit", "erase", "--caller", "key:ann"];
    let dry = gate.cli(&[&erase[..], &["--dry-run"]].concat());
    assert!(dry.contains("2 records"), "{dry}");
    assert!(!gate.run(&erase).status.success(), "nobody confirmed");
    assert!(contents(&gate, "key:ann", "args")[0].contains("the-address"));
    gate.cli(&[&erase[..], &["--yes"]].concat());

    assert_eq!(files_with(folder, &secret), [""; 0], "the secret is left");
    assert_eq!(contents(&gate, "key:ann", "args"), ["[erased]"]);
    assert_eq!(contents(&gate, "key:ann", "res"), ["[erased]"]);
    assert!(contents(&gate, "key:bob", "args")[0].contains("the-address-of-bob"));
    assert_eq!(console_arguments(&gate, "key:ann"), ["[erased]"]);
    assert!(console_arguments(&gate, "key:bob")[0].contains("the-address-of-bob"));
    assert_eq!(unknown_calls(&gate), 1);
    let records = gate.audit();
    let erased: Vec<&Value> = records
        .iter()
        .filter(|record| record["ev"] == "contents.erased")
        .collect();
    assert_eq!(erased.len(), 1);
    assert_eq!(
        (
            &erased[0]["caller"],
            &erased[0]["records"],
            &erased[0]["by"]
        ),
        (&json!("key:ann"), &json!(2), &json!("terminal"))
    );
    is_intact(&gate);

    // The gateway uses the destroyed secret until it reads the change, and never stores it again.
    until("contents of later calls are readable", SOON, || {
        note(&gate, &ann, "the-new-address");
        let last = contents(&gate, "key:ann", "args").pop()?;
        last.contains("the-new-address").then_some(())
    });
    assert_eq!(contents(&gate, "key:ann", "args")[0], "[erased]");
    assert_eq!(files_with(folder, &secret), [""; 0]);
    is_intact(&gate);
}

#[test]
fn the_contents_before_a_day_are_erased_for_all_callers() {
    let gate = start("");
    let ann = key(&gate, "ann");
    note(&gate, &ann, "the-address-of-ann");
    let none = gate.run(&["audit", "erase", "--before", "2026-01-01", "--yes"]);
    let said = String::from_utf8_lossy(&none.stderr).into_owned();
    assert!(said.contains("has no key for contents"), "{said}");
    let wrong = gate.run(&["audit", "erase", "--before", "yesterday", "--yes"]);
    assert_eq!(wrong.status.code(), Some(2));
    let data = gate.stop();
    let erase = || {
        let mut alone = toolgate();
        alone.args([
            "audit",
            "erase",
            "--before",
            "9999-01-01",
            "--yes",
            "--data",
        ]);
        output(alone.arg(data.path().join("state")))
    };
    let hold = data.write("state/audit/hold", "");
    let said = String::from_utf8_lossy(&erase().stderr).into_owned();
    assert!(said.contains("on hold"), "{said}");
    fs::remove_file(hold).unwrap();
    let done = erase();
    assert!(done.status.success(), "{done:?}");
    let gate = Setup::fast_demo(&format!("{TEXT}{RULE}")).start_in(data);
    assert_eq!(contents(&gate, "key:ann", "args"), ["[erased]"]);
    is_intact(&gate);
}

#[test]
fn keys_of_days_that_are_too_old_are_destroyed() {
    let gate = start("keep_contents_days = 30\n");
    let ann = key(&gate, "ann");
    note(&gate, &ann, "the-address-of-ann");
    let file = gate.data.path().join("state/state/state.sqlite");
    let data = gate.stop();
    make_old(&file);
    let gate = Setup::fast_demo(&format!("{TEXT}keep_contents_days = 30\n{RULE}")).start_in(data);
    until("the old contents are erased", SOON, || {
        (contents(&gate, "key:ann", "args") == ["[erased]"]).then_some(())
    });
    let erased = until("the erasure is recorded", SOON, || {
        let records = gate.audit();
        records
            .into_iter()
            .find(|record| record["by"] == "retention")
    });
    assert_eq!(
        (&erased["ev"], &erased["keys"]),
        (&json!("contents.erased"), &json!(1))
    );
    note(&gate, &ann, "the-new-address");
    assert!(contents(&gate, "key:ann", "args")[1].contains("the-new-address"));
    is_intact(&gate);
}

/// Makes the secret of the current day one of a day in the past.
fn make_old(file: &Path) {
    let database = rusqlite::Connection::open(file).unwrap();
    let sql = "SELECT version, value FROM entries WHERE tbl = 'content_keys' AND key LIKE 'day:%'";
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let (version, value): (i64, String) = database.query_row(sql, [], row).unwrap();
    let (table, key) = ("content_keys", "day:2020-01-01");
    // As in `change.rs` of the store.
    let text = format!(
        "{version}:{}:{table}:{}:{key}:{value}",
        table.len(),
        key.len()
    );
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    let sql = "UPDATE entries SET key = ?1, digest = ?2 WHERE version = ?3";
    let set = rusqlite::params![key, digest.as_ref(), version];
    assert_eq!(database.execute(sql, set).unwrap(), 1);
}

#[test]
fn an_erasure_reaches_all_gateways_of_a_shared_store() {
    if !PostgresServer::is_installed() {
        return;
    }
    let server = PostgresServer::shared();
    let url = server.create_database();
    let more = format!("{TEXT}[store]\nurl = {url:?}\ngateways = 2\n{RULE}");
    let gates = [0, 1].map(|_| Setup::fast_demo(&more).start());
    let ann = key(&gates[0], "ann");
    let read = |gate: &Gate| {
        let config = gate.data.path().join("toolgate.toml");
        let mut run = toolgate();
        run.args(["audit", "tail", "-n", "1000", "--json", "--config"])
            .arg(config)
            .arg("--data")
            .arg(gate.data.path().join("state"));
        let lines = String::from_utf8(output(&mut run).stdout).unwrap();
        let records = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        let records: Vec<Value> = records.collect();
        let of = records.iter().filter_map(|record| record["args"].as_str());
        of.map(str::to_owned).collect::<Vec<_>>()
    };
    for gate in &gates {
        until("the key is known", SOON, || {
            let answer = try_note(gate, &ann, "the-address");
            (answer.status == 200).then_some(())
        });
        assert!(read(gate)[0].contains("the-address"));
    }
    let database = url.rsplit('/').next().unwrap();
    let rows = "SELECT count(*) FROM toolgate.entries WHERE key = 'caller:key:ann'";
    assert_eq!(server.execute(database, rows), "1", "both use one secret");
    let mut erase = toolgate();
    erase
        .args(["audit", "erase", "--caller", "key:ann", "--yes", "--config"])
        .arg(gates[1].data.path().join("toolgate.toml"))
        .arg("--data")
        .arg(gates[1].data.path().join("state"));
    let done = output(&mut erase);
    assert!(done.status.success(), "{done:?}");
    assert_eq!(server.execute(database, rows), "0");
    for gate in &gates {
        assert_eq!(read(gate)[0], "[erased]");
    }
    for gate in &gates {
        until("contents of later calls are readable", SOON, || {
            note(gate, &ann, "the-new-address");
            read(gate).pop()?.contains("the-new-address").then_some(())
        });
    }
}
