//! Calls that wait for a person when their gateway is killed: what becomes of each is recorded once, whoever is there.

use crate::help::{Gate, LONG, Modern, Setup, TempDir, try_raw, until};
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

/// Lifetime of an approval request. On a loaded machine, the gateway that asked is killed within it.
const LIFE: Duration = Duration::from_secs(15);

fn start(data: &Arc<TempDir>) -> Gate {
    let program = env!("CARGO_BIN_EXE_toolgate");
    let life = LIFE.as_secs();
    let config = format!(
        "[limits]\napproval_seconds = {life}\n[server.demo]\ncommand = [{program:?}, \"demo-server\"]\n"
    );
    Setup::config(config).start_in(data.clone())
}

/// The records of approvals in this state.
fn approvals(records: &[Value], state: &str) -> Vec<Value> {
    let of = |record: &&Value| record["ev"] == "approval" && record["state"] == state;
    records.iter().filter(of).cloned().collect()
}

/// A call that waits, whose gateway is killed; its approval's id.
fn orphan(gate: Gate) -> Value {
    let port = gate.port;
    let call = thread::spawn(move || {
        let arguments = json!({"name": "a", "text": "b"});
        try_raw(
            port,
            &Modern::request(port, &json!(1), "demo_note", arguments),
        )
    });
    let asked = until("a call waits", LONG, || {
        approvals(&gate.audit_files(), "asked").pop()
    });
    // Its row comes after its record. The text of the row is in the file before the row is committed.
    until("the question is kept", LONG, || {
        let database = gate.data.file("state/state/state.sqlite");
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let database = Connection::open_with_flags(database, flags).ok()?;
        let sql = "SELECT 1 FROM entries WHERE tbl = 'approvals' AND key = ?1";
        let id = asked["approval"].as_str().unwrap();
        database.query_row(sql, [id], |_| Ok(())).ok()
    });
    gate.kill();
    let answer = call.join().unwrap();
    assert!(answer.is_none_or(|answer| answer.body.is_empty() || answer.body.starts_with(':')));
    asked["approval"].clone()
}

/// Each of these gateways looks, and ends politely, so that all that it had to say is written.
fn recorded_once(gates: Vec<Gate>, id: &Value) {
    let expired = |gate: &Gate| approvals(&gate.audit_files(), "expired");
    until("its end is recorded", LONG, || {
        (!expired(&gates[0]).is_empty()).then_some(())
    });
    for gate in &gates {
        assert!(!gate.inbox().iter().any(|waits| id == waits));
    }
    let last = gates.into_iter().map(Gate::stop).last().unwrap();
    let gate = start(&last);
    let expired = expired(&gate);
    assert_eq!(expired.len(), 1, "{expired:#?}");
    assert_eq!(&expired[0]["approval"], id);
    assert_eq!(expired[0]["tool"], "demo.note");
}

/// Waits until whatever is asked now is over.
fn pass() {
    let over = SystemTime::now() + LIFE;
    until("the time of the question passes", LONG, || {
        (SystemTime::now() > over).then_some(())
    });
}

#[test]
fn a_question_that_expires_while_no_gateway_runs_is_recorded_at_the_next_start() {
    let data = Arc::new(TempDir::new("orphan"));
    let id = orphan(start(&data));
    pass();
    recorded_once(vec![start(&data)], &id);
}

#[test]
fn of_two_gateways_that_find_an_expired_question_one_records_it() {
    let data = Arc::new(TempDir::new("orphan"));
    let id = orphan(start(&data));
    pass();
    let both = vec![start(&data), start(&data)];
    recorded_once(both, &id);
}

#[test]
fn of_two_gateways_that_see_a_question_expire_one_records_it() {
    let data = Arc::new(TempDir::new("orphan"));
    let others = vec![start(&data), start(&data)];
    let id = orphan(start(&data));
    recorded_once(others, &id);
}
