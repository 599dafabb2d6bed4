//! `toolgate logins`, and `logout` of what no server of the config uses any more.

use crate::{
    help::{TempDir, output, toolgate, typed_login},
    own_grants::Far,
};
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    process::Output,
};

/// A data directory and a config, and no gateway.
struct Alone {
    far: Far,
    folder: TempDir,
    config: PathBuf,
}

impl Alone {
    fn new() -> Alone {
        let far = Far::new();
        let folder = TempDir::new("logins");
        let config = folder.write("toolgate.toml", &far.config("", ""));
        Alone {
            far,
            folder,
            config,
        }
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn sign_in(&self, caller: &str) {
        if let Some(name) = caller.strip_prefix("key:") {
            self.well(&["keys", "create", name]);
        }
        typed_login(&self.config, &self.state(), &["far", "--caller", caller]);
    }

    fn run(&self, args: &[&str], config: &Path) -> Output {
        let mut run = toolgate();
        run.args(args).arg("--config").arg(config);
        output(run.arg("--data").arg(self.state()))
    }

    #[track_caller]
    fn well(&self, args: &[&str]) -> String {
        let out = self.run(args, &self.config);
        assert!(out.status.success(), "{args:?} {out:?}");
        String::from_utf8([out.stdout, out.stderr].concat()).unwrap()
    }

    /// The same server under another name: what was granted belongs to nobody.
    fn rename(&self) {
        let renamed = self.far.config("", "").replace("server.far", "server.near");
        self.folder
            .write("toolgate.toml", &renamed.replace("far.*", "near.*"));
    }

    fn given_back(&self, account: usize) -> bool {
        self.far.seen(|seen| {
            let token = format!("canary-refresh-of-account{account}");
            seen.back.iter().any(|body| body.contains(&token))
        })
    }
}

#[test]
fn who_signed_in_where_is_listed_without_what_was_granted() {
    let alone = Alone::new();
    assert!(
        alone
            .well(&["logins"])
            .contains("no credentials are stored")
    );
    assert!(!alone.state().join("grants").exists(), "nothing is made");
    let words = ["login", "far", "--no-browser", "--caller", "key:nosuch"];
    let none = alone.run(&words, &alone.config);
    let said = String::from_utf8_lossy(&none.stderr).into_owned();
    assert_eq!(none.status.code(), Some(1), "{said}");
    let then = "there is no valid key nosuch; run: toolgate keys create nosuch";
    assert!(said.contains(then) && !said.contains("http"), "{said}");
    let none = alone.run(&["logout"], &alone.config);
    assert_eq!(none.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&none.stderr).contains("--all"));
    alone.sign_in("key:ann");
    let said = alone.well(&["logins"]);
    assert!(
        said.contains("far ") && said.contains("for key:ann; issued by http"),
        "{said}"
    );
    assert!(
        said.contains("refreshed automatically") && !said.contains("no configured server"),
        "{said}"
    );
    let all = alone.well(&["logins", "--json"]);
    let list = crate::json_outputs::check_output("logins", &all);
    let one = &list[0][0];
    assert_eq!(
        json!([one["server"], one["caller"], one["renews"], one["used"]]),
        json!(["far", "key:ann", true, true])
    );
    assert!(!format!("{said}{all}").contains("canary"), "{said} {all}");
    alone.rename();
    let said = alone.well(&["logins"]);
    assert!(said.contains("no configured server uses them"), "{said}");
}

#[test]
fn what_no_server_uses_any_more_is_forgotten_and_given_back() {
    let alone = Alone::new();
    for caller in ["key:ann", "key:bob", "key:eve"] {
        alone.sign_in(caller);
    }
    alone.rename();
    // Of another caller there is nothing, and the words say where to look.
    let none = alone.run(&["logout", "far", "--caller", "key:mallory"], &alone.config);
    let said = String::from_utf8_lossy(&none.stderr).into_owned();
    assert!(
        !none.status.success() && said.contains("toolgate logins"),
        "{said}"
    );
    let said = alone.well(&["logout", "far", "--caller", "key:ann"]);
    assert!(said.contains("revoked them"), "{said}");
    assert!(alone.given_back(1) && !alone.given_back(2));
    let left: Vec<Value> = serde_json::from_str(&alone.well(&["logins", "--json"])).unwrap();
    assert_eq!(left.len(), 2);
    // All at once.
    let said = alone.well(&["logout", "--all"]);
    assert_eq!(said.matches("revoked them").count(), 2, "{said}");
    assert!(alone.given_back(2) && alone.given_back(3));
    assert!(
        alone
            .well(&["logins"])
            .contains("no credentials are stored")
    );
    let records = alone.well(&["audit", "tail", "--json", "-n", "1000"]);
    assert_eq!(records.matches("\"signed_out\"").count(), 3, "{records}");
    assert_eq!(
        alone.run(&["logout", "--all"], &alone.config).status.code(),
        Some(1)
    );
}
