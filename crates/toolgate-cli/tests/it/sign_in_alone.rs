//! Sign-ins where no gateway runs, or none knows the server: they stand in the record all the same.

use crate::{
    help::{Gate, Setup, TempDir, get, output, toolgate, typed_login},
    own_grants::{Far, post},
};
use serde_json::{Value, json};

#[test]
fn what_is_done_without_a_gateway_is_recorded() {
    let far = Far::new();
    let folder = TempDir::new("alone");
    let config = folder.write("toolgate.toml", &far.config("", ""));
    let state = folder.path().join("state");
    let run = |args: &[&str]| {
        let mut run = toolgate();
        run.args(args).arg("--config").arg(&config);
        let out = output(run.arg("--data").arg(&state));
        assert!(out.status.success(), "{args:?} {out:?}");
        String::from_utf8(out.stdout).unwrap()
    };
    for name in ["ann", "bob"] {
        run(&["keys", "create", name]);
        typed_login(
            &config,
            &state,
            &["far", "--caller", &format!("key:{name}")],
        );
    }
    run(&["logout", "far", "--caller", "key:bob"]);
    let said = run(&["keys", "revoke", "ann"]);
    assert!(said.contains("signed out: far"), "{said}");
    let records = run(&["audit", "tail", "--json", "-n", "1000"]);
    let records = records
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let told: Vec<Value> = records
        .filter(|r: &Value| r["ev"] == "sign_in")
        .map(|r| json!([r["state"], r["server"], r["caller"], r["by"]]))
        .collect();
    assert_eq!(
        Value::from(told),
        json!([
            ["signed_in", "far", "key:ann", "terminal"],
            ["signed_in", "far", "key:bob", "terminal"],
            ["signed_out", "far", "key:bob", "terminal"],
            ["signed_out", "far", "key:ann", "terminal"],
        ])
    );
    run(&["audit", "verify"]);
}

/// Returns the audit records of sign-ins.
fn told(gate: &Gate) -> Vec<Value> {
    let records = gate.audit().into_iter().filter(|r| r["ev"] == "sign_in");
    let told = records.map(|r| json!([r["state"], r["server"], r["caller"], r["by"]]));
    told.collect()
}

#[test]
fn what_a_gateway_hears_of_a_server_that_it_does_not_know_is_recorded() {
    let far = Far::new();
    let gate = Setup::fast_demo("").start();
    gate.cli(&["keys", "create", "ann"]);
    let config = gate.data.write("far.toml", &far.config("", ""));
    let state = gate.data.path().join("state");
    typed_login(&config, &state, &["far", "--caller", "key:ann"]);
    assert_eq!(
        told(&gate),
        [json!(["signed_in", "far", "key:ann", "terminal"])]
    );
}

#[test]
fn a_sign_in_at_a_server_that_a_reload_took_away_is_recorded() {
    let far = Far::new();
    let gate = far.gate("");
    gate.cli(&["keys", "create", "bob"]);
    let login = gate.log_in("");
    let with = json!({"server": "far", "caller": "key:bob"});
    let (_, page) = post(&gate, &login, "begin", &with);
    let led = get(page["page"].as_str().unwrap());
    gate.configure(&far.config("", "").replace("far", "near"));
    gate.cli(&["reload"]);
    let back = led.header("location").unwrap().to_owned();
    let query = back.split_once('?').unwrap().1;
    let (status, done) = post(&gate, &login, "end", &json!({"query": query}));
    assert_eq!(status, 200, "{done}");
    assert_eq!(
        told(&gate),
        [json!(["signed_in", "far", "key:bob", "console"])]
    );
}
