//! Rotation, expiry, list and revocation of keys.

use crate::help::{Gate, SOON, Setup, TempDir, output, toolgate, until};
use crate::keys::{add, created};
use serde_json::Value;
use std::process::Output;

fn closed(more: &str) -> Setup {
    Setup::fast_demo(&format!("[auth]\nrequired = true\n{more}"))
}

fn recorded(gate: &Gate, state: &str) -> Vec<Value> {
    let records = gate.audit().into_iter();
    let of = |r: &Value| r["ev"] == "key" && r["state"] == state;
    records.filter(of).collect()
}

/// A store of grants that cannot be read: what was granted for a name before cannot be forgotten.
fn spoil(data: &TempDir) -> std::path::PathBuf {
    let grants = data.path().join("state/grants");
    std::fs::create_dir_all(&grants).unwrap();
    std::fs::write(grants.join("grants.sealed"), "nothing that was sealed").unwrap();
    grants
}

#[test]
fn a_key_that_nobody_is_shown_does_not_live() {
    let gate = closed("").start();
    let grants = spoil(&gate.data);
    let refused = |out: Output| {
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(!out.status.success() && out.stdout.is_empty(), "{out:?}");
        assert!(
            said.contains("no key was created") && said.contains("grants.sealed"),
            "{said}"
        );
    };
    refused(gate.run(&["keys", "create", "ci"]));
    let list = gate.cli(&["keys", "list"]);
    assert!(
        list.contains("revoked") && !list.contains("valid"),
        "{list}"
    );
    let data = gate.stop();
    // Without a gateway as well.
    let state = data.path().join("state");
    let run = |args: &[&str]| output(toolgate().args(args).arg("--data").arg(&state));
    refused(run(&["keys", "create", "ann"]));
    let list = run(&["keys", "list"]);
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    assert!(
        list.matches("revoked").count() == 2 && !list.contains("valid"),
        "{list}"
    );
    std::fs::remove_dir_all(grants).unwrap();
    assert!(run(&["keys", "create", "ann"]).status.success());
}

#[test]
fn a_key_is_made_anew_and_the_one_before_it_opens_for_a_while() {
    let gate = closed("").start();
    let first = created(&gate, "ci");
    let rotated = |more: &[&str]| {
        let key = gate.cli(&[&["keys", "rotate", "ci"], more].concat());
        key.trim().to_owned()
    };
    let status = |keys: &[&String]| -> Vec<u16> {
        let of = |key: &&String| add(gate.port, key).status;
        keys.iter().map(of).collect()
    };
    let second = rotated(&["--keep-old", "1h"]);
    assert_eq!(status(&[&first, &second]), [200, 200]);
    let list = gate.cli(&["keys", "list"]);
    assert!(
        list.contains("the old key until") && !list.contains("tg_"),
        "{list}"
    );
    let third = rotated(&[]);
    assert_eq!(status(&[&first, &second, &third]), [401, 401, 200]);
    let told = |key: &String| add(gate.port, key).body;
    assert!(told(&first).contains("unknown, or was rotated"));
    assert!(told(&second).contains("was rotated; ask"));
    // There is one of that name in all, and it is the same caller.
    let begun = gate.audit().into_iter().filter(|r| r["ev"] == "call.begin");
    let callers: Vec<Value> = begun.map(|r| r["caller"].clone()).collect();
    assert!(
        callers.iter().all(|caller| caller == "key:ci"),
        "{callers:?}"
    );
    let records = recorded(&gate, "rotated");
    assert!(
        records.len() == 2 && records[0]["old_until"].is_u64(),
        "{records:?}"
    );
    assert!(!gate.run(&["keys", "rotate", "nobody"]).status.success());
    // The same where no gateway runs.
    let data = gate.stop();
    let state = data.path().join("state");
    let mut run = toolgate();
    run.args(["keys", "rotate", "ci", "--keep-old", "1h", "--data"]);
    let fourth = output(run.arg(&state));
    let fourth = String::from_utf8(fourth.stdout).unwrap().trim().to_owned();
    let gate = closed("").start_in(data);
    let of = |key: &String| add(gate.port, key).status;
    assert_eq!([&second, &third, &fourth].map(of), [401, 200, 200]);
}

#[test]
fn a_key_that_ends_soon_is_told_of_and_put_off() {
    let gate = closed("").start();
    gate.cli(&["keys", "create", "ci", "--expires", "150h"]);
    gate.cli(&["keys", "create", "ann"]);
    let list = gate.cli(&["keys", "list"]);
    assert!(list.contains("(expires in 6 days)"), "{list}");
    let status = gate.cli(&["status"]);
    assert!(
        status.contains("key:ci expires in 6 days; run: toolgate keys extend ci --expires 90d --"),
        "{status}"
    );
    assert!(!status.contains("key:ann"), "{status}");
    let said = gate.cli(&["keys", "extend", "ci", "--expires", "90d"]);
    assert!(!gate.cli(&["status"]).contains("key:ci"));
    assert!(said.starts_with("key:ci is valid until 20"), "{said}");
    let list = gate.cli(&["keys", "list"]);
    assert!(
        list.contains("valid until") && !list.contains("expires in"),
        "{list}"
    );
    assert_eq!(recorded(&gate, "extended").len(), 1);
    let json = gate.cli(&["keys", "list", "--json"]);
    let keys: Vec<Value> = serde_json::from_str(&json).unwrap();
    assert_eq!(keys.len(), 2, "{json}");
    assert!(
        keys[0]["name"] == "ann"
            && keys[0]["expires_at"].is_null()
            && keys[0]["end_reason"].is_null()
    );
    assert!(
        keys[1]["expires_at"]
            .as_str()
            .is_some_and(|at| at.ends_with('Z'))
            && !json.contains("tg_"),
        "{json}"
    );
    let late = gate.run(&["keys", "extend", "nobody", "--expires", "1d"]);
    assert_eq!(late.status.code(), Some(1));
}

/// With a gateway that runs, and without one.
#[test]
fn what_cannot_be_done_with_a_key_is_said() {
    let gate = closed("").start();
    let said = |out: Output, code| {
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(code), "{said}");
        said
    };
    let check = |run: &dyn Fn(&[&str]) -> Output| {
        let run = |code: i32, args: &str, words: &str| {
            let args: Vec<&str> = ["keys"].into_iter().chain(args.split(' ')).collect();
            let said = said(run(&args), code);
            assert!(said.contains(words), "{args:?}: {said}");
        };
        run(2, "create key:x", "is added automatically");
        for far in [
            "create x --expires",
            "extend ci --expires",
            "rotate ci --keep-old",
        ] {
            run(2, &format!("{far} 99999999999d"), "longer than 100 years");
        }
        run(2, "create x --until 9999-01-01", "more than 100 years");
        let longer = "rotate ci --keep-old 1h --expires 1m";
        run(2, longer, "would expire before the end of --keep-old");
        run(
            0,
            "rotate key:ci --keep-old 1h --expires 1h",
            "is accepted until 20",
        );
        run(
            0,
            "rotate key:ci",
            "is no longer accepted; its running calls complete",
        );
        run(0, "extend key:ci --expires 90d", "");
        run(1, "extend ci --expires 80d", "already expires later, at 20");
        run(0, "create free", "");
        run(1, "extend free --expires 80d", "never expires");
        run(0, "revoke key:free", "");
    };
    created(&gate, "ci");
    check(&|args| gate.run(args));
    created(&gate, "old");
    crate::expiring::expire(&gate.data, "old");
    for args in [
        &["extend", "old", "--expires", "9d"][..],
        &["rotate", "old"],
    ] {
        until("it is said that it expired", SOON, || {
            let out = gate.run(&[&["keys"], args].concat());
            let said = String::from_utf8_lossy(&out.stderr).into_owned();
            said.contains("key:old expired at").then_some(())
        });
    }
    let data = gate.stop();
    let state = data.path().join("state");
    let alone = |args: &[&str]| output(toolgate().args(args).arg("--data").arg(&state));
    alone(&["keys", "revoke", "ci"]);
    assert!(alone(&["keys", "create", "ci"]).status.success());
    check(&alone);
    let late = said(alone(&["keys", "rotate", "key:old"]), 1);
    assert!(
        late.contains("expired at") && late.contains("keys create old"),
        "{late}"
    );
}

/// The name of a key that was revoked is free at once; its last use is its own.
#[test]
fn a_key_that_is_made_again_was_never_used() {
    let gate = closed("").start();
    let key = created(&gate, "ci");
    assert_eq!(add(gate.port, &key).status, 200);
    until("the use is kept", SOON, || {
        let list = gate.cli(&["keys", "list"]);
        list.contains("last used").then_some(())
    });
    let said = gate.cli(&["keys", "revoke", "ci"]);
    assert_eq!(
        said,
        "key:ci is revoked; its streams and sessions are closed\n"
    );
    created(&gate, "ci");
    let list = gate.cli(&["keys", "list"]);
    assert!(list.contains("never used"), "{list}");
}
