//! Sign-ins where no gateway runs: they stand in the record all the same.

use crate::{
    help::{TempDir, output, toolgate, typed_login},
    own_grants::Far,
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
