//! Searching and exporting the record, from outside.

use crate::help::{Gate, Modern, Session, Setup, records};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Small segments, and no checkpoint that comes by the clock.
const SMALL: &str = "[audit]\nsegment_bytes = 4096\ncheckpoint_seconds = 3600\n";

fn start() -> Gate {
    let program = env!("CARGO_BIN_EXE_toolgate");
    let server = |id: &str| {
        format!(
            "[server.{id}]\ncommand = [{program:?}, \"demo-server\"]\ntrust_annotations = true\n"
        )
    };
    Setup::config(format!(
        "{SMALL}{}{}[limits]\nrate = \"100000/s\"\n",
        server("one"),
        server("two")
    ))
    .start()
}

fn call(gate: &Gate, n: u32, tool: &str, arguments: Value) {
    Modern::call(gate.port, &json!(format!("{tool}-{n}")), tool, arguments);
}

/// Some of everything: answered, failed, refused.
fn some(gate: &Gate, from: u32) {
    for n in from..from + 20 {
        call(gate, n, "one_add", json!({"a": n, "b": 1}));
        call(gate, n, "two_add", json!({"a": n, "b": 1}));
    }
    call(gate, from, "one_fail", json!({}));
    call(gate, from, "one_add", json!({"a": "many"}));
    call(gate, from, "nothing", json!({}));
}

fn state(gate: &Gate) -> PathBuf {
    gate.data.path().join("state")
}

fn lines(text: &str) -> Vec<Value> {
    let lines = text.lines();
    lines.map(|l| serde_json::from_str(l).expect(l)).collect()
}

/// Returns the expected search results, computed from the records.
fn expected(gate: &Gate, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
    let mut all = records(&state(gate));
    all.retain(fits);
    assert!(!all.is_empty());
    all
}

/// Matches the records of a tool: its calls and its pin.
fn of_tool(name: &'static str) -> impl Fn(&Value) -> bool {
    move |r| r["tool"] == name || r["name"] == name
}

/// Returns the search results and the other output.
fn search(gate: &Gate, words: &[&str]) -> (Vec<Value>, String) {
    let out = gate.run(&[&["audit", "search", "--json"], words].concat());
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(out.status.success(), "{said}");
    (lines(&String::from_utf8(out.stdout).unwrap()), said)
}

#[test]
fn a_search_finds_what_fits_and_nothing_else() {
    let gate = start();
    some(&gate, 0);
    assert!(
        std::fs::read_dir(state(&gate).join("audit"))
            .unwrap()
            .filter_map(|chain| std::fs::read_dir(chain.unwrap().path()).ok())
            .any(|files| files.count() > 10),
        "there are sealed segments"
    );
    let caller = records(&state(&gate))
        .iter()
        .find_map(|r| Some(r["caller"].as_str()?.to_owned()))
        .unwrap();
    let is = |name: &'static str, value: &'static str| move |r: &Value| r[name] == value;
    let own = caller.clone();
    type Fits = Box<dyn Fn(&Value) -> bool>;
    let table: Vec<(Vec<&str>, Fits)> = vec![
        (vec!["--tool", "one.add"], Box::new(of_tool("one.add"))),
        (vec!["--tool", "one_add"], Box::new(is("name", "one_add"))),
        (vec!["--server", "two"], Box::new(is("srv", "two"))),
        (vec!["--decision", "deny"], Box::new(is("dec", "deny"))),
        (
            vec!["--server", "one", "--decision", "deny"],
            Box::new(|r| r["srv"] == "one" && r["dec"] == "deny"),
        ),
        (
            vec!["--text", "one_fail-0"],
            Box::new(|r| r.to_string().contains("one_fail-0")),
        ),
        (
            vec!["--caller", &caller, "--since", "1h"],
            Box::new(move |r| r["caller"] == own.as_str()),
        ),
    ];
    for (words, fits) in table {
        let expected = expected(&gate, fits);
        // The second time the index is there.
        for more in [&[] as &[&str], &[], &["--no-index"]] {
            let (found, said) = search(&gate, &[words.as_slice(), more].concat());
            assert_eq!(found, expected, "{words:?} {more:?}");
            assert_eq!(said, "", "{words:?} {more:?}");
        }
    }
    assert_eq!(search(&gate, &["--tool", "no.such"]).0, Vec::<Value>::new());
}

#[test]
fn an_index_that_is_gone_broken_or_foreign_is_made_anew() {
    let gate = start();
    some(&gate, 0);
    let words = ["--tool", "one.add"];
    let good = expected(&gate, of_tool("one.add"));
    let index = state(&gate).join("audit-index.sqlite");
    assert!(!index.exists());
    assert_eq!(search(&gate, &words).0, good);
    let text = std::fs::read(&index).unwrap();
    assert!(!String::from_utf8_lossy(&text).contains("args_mac"));
    let sql = |sql: &str| {
        let open = rusqlite::Connection::open(&index).unwrap();
        open.execute_batch(sql).unwrap();
    };
    let garbage = || std::fs::write(&index, "this is no database, though it is long".repeat(500));
    let torn = || {
        let mut torn = std::fs::read(&index).unwrap();
        torn[4096..8192].fill(7);
        std::fs::write(&index, torn)
    };
    let foreign = || {
        std::fs::remove_file(&index).unwrap();
        sql("CREATE TABLE x (y); PRAGMA application_id = 7");
        Ok(())
    };
    let lies = || {
        sql("UPDATE record SET at = -at; UPDATE record SET at = 1 - at");
        Ok(())
    };
    let broken: [(&str, &dyn Fn() -> std::io::Result<()>); 4] = [
        ("garbage", &garbage),
        ("torn", &torn),
        ("foreign", &foreign),
        ("lies", &lies),
    ];
    for (how, break_it) in broken {
        break_it().unwrap();
        let (found, said) = search(&gate, &words);
        assert_eq!(found, good, "{how}");
        assert!(said.contains("it is being rebuilt"), "{how}: {said}");
        let (found, said) = search(&gate, &words);
        assert_eq!((found, said.as_str()), (good.clone(), ""), "{how}");
    }
    std::fs::remove_file(&index).unwrap();
    let (found, said) = search(&gate, &words);
    assert_eq!((found, said.as_str()), (good.clone(), ""), "deleted");
    // Where it cannot be, the search does without.
    std::fs::remove_file(&index).unwrap();
    std::fs::create_dir(&index).unwrap();
    let (found, said) = search(&gate, &words);
    assert_eq!(found, good);
    assert!(
        said.contains("the search reads the whole audit log instead"),
        "{said}"
    );
    // What it says counts for nothing where the record is verified.
    gate.cli(&["audit", "verify"]);
}

#[test]
fn the_index_learns_of_what_comes_and_goes() {
    let gate = start();
    some(&gate, 0);
    let words = ["--tool", "two.add"];
    search(&gate, &words);
    some(&gate, 100);
    let good = expected(&gate, of_tool("two.add"));
    assert_eq!(search(&gate, &words).0, good);
    // A chain that is taken away is forgotten.
    let data = gate.stop();
    let audit = data.path().join("state/audit");
    for chain in std::fs::read_dir(&audit).unwrap() {
        let chain = chain.unwrap().path();
        if chain.is_dir() {
            std::fs::remove_dir_all(chain).unwrap();
        }
    }
    let gate = start_in(data);
    assert_eq!(search(&gate, &words).0, Vec::<Value>::new());
    let index = rusqlite::Connection::open(state(&gate).join("audit-index.sqlite")).unwrap();
    let left: i64 = index
        .query_row("SELECT count(*) FROM record", [], |row| row.get(0))
        .unwrap();
    assert_eq!(left, 0);
}

fn start_in(data: std::sync::Arc<crate::help::TempDir>) -> Gate {
    Setup::fast_demo(SMALL).start_in(data)
}

fn export(gate: &Gate, words: &[&str]) -> Vec<Value> {
    lines(&gate.cli(&[&["audit", "export"], words].concat()))
}

#[test]
fn an_export_goes_on_where_the_last_one_ended() {
    let gate = start();
    some(&gate, 0);
    let cursor = gate.data.path().join("cursor");
    let cursor = cursor.to_str().unwrap();
    let with = ["--cursor", cursor];
    let all = records(&state(&gate));
    assert_eq!(export(&gate, &with), all);
    assert_eq!(export(&gate, &with), Vec::<Value>::new());
    let before = std::fs::read(cursor).unwrap();
    some(&gate, 100);
    let more = records(&state(&gate)).split_off(all.len());
    assert!(more.len() > 80);
    assert_eq!(export(&gate, &with), more);
    // As after a crash between the lines and the cursor: the same again, and chain and number tell so.
    std::fs::write(cursor, &before).unwrap();
    assert_eq!(export(&gate, &with), more);
    // Over a restart, which goes on with the chain.
    let so_far = all.len() + more.len();
    let gate = start_in(gate.stop());
    let rest = export(&gate, &with);
    // The gateway may have written more meanwhile.
    let whole = records(&state(&gate));
    assert!(whole[so_far..].starts_with(&rest), "{rest:#?}");
    let events: Vec<&str> = rest.iter().filter_map(|r| r["ev"].as_str()).collect();
    assert!(
        events.contains(&"drain") && events.contains(&"recovered"),
        "{events:?}"
    );
    // A cursor that is none is not taken for the beginning.
    std::fs::write(cursor, "{").unwrap();
    let out = gate.run(&["audit", "export", "--cursor", cursor]);
    assert_eq!(out.status.code(), Some(1));
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(said.contains("cannot read the cursor"), "{said}");
}

#[test]
fn other_forms_have_a_line_for_each_outcome() {
    let gate = start();
    some(&gate, 0);
    let all = records(&state(&gate));
    let outcomes: Vec<&Value> = all
        .iter()
        .filter(|r| matches!(r["ev"].as_str(), Some("call.end" | "call.unknown" | "deny")))
        .collect();
    let ids: Vec<String> = outcomes
        .iter()
        .map(|r| format!("{}:{}", r["chain"].as_str().unwrap(), r["seq"]))
        .collect();
    let ocsf = export(&gate, &["--format", "ocsf"]);
    let uids: Vec<&str> = ocsf
        .iter()
        .map(|e| e["metadata"]["uid"].as_str().unwrap())
        .collect();
    assert_eq!(uids, ids);
    let cef = gate.cli(&["audit", "export", "--format", "cef"]);
    for (line, id) in cef.lines().zip(&ids) {
        assert!(line.starts_with("CEF:0|Toolgate|"), "{line}");
        assert!(line.contains(&format!("externalId={id}")), "{line}");
    }
    assert_eq!(cef.lines().count(), ids.len());
    let otlp = export(&gate, &["--format", "otlp", "--since", "1h"]);
    assert_eq!(otlp.len(), all.len());
}

// T45
#[test]
fn no_event_forges_a_line() {
    let hostile = [
        "a\n{\"ev\":\"call.end\",\"seq\":1}",
        "a\r\nb",
        "\u{2028}\u{2029}\u{85}x",
        "a\",\"ev\":\"genesis",
        "\u{0}\u{8}\u{1b}[2J",
        "a|b=c\\",
        "CEF:0|forged|",
        "}]}\n",
        "\u{202e}x\u{feff}",
    ];
    let gate = start();
    let session = Session::open(gate.port);
    for text in hostile {
        session.call(&json!(text), text, json!({"x": text}));
    }
    let all = records(&state(&gate));
    let denied: Vec<&Value> = all.iter().filter(|r| r["ev"] == "deny").collect();
    let names: Vec<&str> = denied.iter().map(|r| r["name"].as_str().unwrap()).collect();
    // What would steer the terminal of a reader is spelled out.
    let kept = hostile.map(|text| toolgate_core::escape_bidi(text).into_owned());
    assert_eq!(names, kept);
    let numbers: Vec<u64> = all.iter().map(|r| r["seq"].as_u64().unwrap()).collect();
    assert!(
        numbers.iter().copied().eq(1..=all.len() as u64),
        "{numbers:?}"
    );
    let own = |ev: &str| all.iter().filter(|r| r["ev"] == ev).count();
    assert_eq!((own("genesis"), own("call.end")), (1, 0));
    gate.cli(&["audit", "verify"]);
    assert_eq!(gate.cli(&["audit", "export"]).lines().count(), all.len());
    for form in ["cef", "ocsf"] {
        let text = gate.cli(&["audit", "export", "--format", form]);
        assert_eq!(text.lines().count(), hostile.len(), "{form}");
    }
    assert_eq!(export(&gate, &["--format", "otlp"]).len(), all.len());
    println!("T45: {} hostile texts, one record each", hostile.len());
}
