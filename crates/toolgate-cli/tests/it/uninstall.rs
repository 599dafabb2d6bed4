//! `toolgate uninstall`: the list of files, and the removal of parts.

use crate::editing::Home;
use crate::help::{SOON, until};
use std::{fs, os::unix::fs::PermissionsExt, process::Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_toolgate");
const HOST_FILE: &str = "{\n  \"mcpServers\": {}\n}\n";

/// A home directory with a config, a secret file, two connections and a data directory.
fn installed(name: &str) -> Home {
    let home = Home::new(name);
    let config = home.write(&format!(
        "listen = \"127.0.0.1:0\"\n[server.demo]\ncommand = [{PROGRAM:?}, \"demo-server\"]\nenv = {{ A = {{ file = \"a.secret\" }} }}\n"
    ));
    let secret = config.with_file_name("a.secret");
    fs::write(&secret, "x").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    fs::create_dir_all(home.path().join(".cursor")).unwrap();
    fs::write(home.path().join(".cursor/mcp.json"), HOST_FILE).unwrap();
    for words in [
        ["connect", "cursor", "--project"].as_slice(),
        &["connect", "cursor"],
        &["connect", "codex", "--hooks"],
    ] {
        let (code, _, said) = home.run(words);
        assert_eq!(code, 0, "{words:?}: {said}");
    }
    home
}

#[test]
fn parts_are_listed_and_removed_one_by_one() {
    let home = installed("uninstall");
    let (code, list, _) = home.run(&["uninstall"]);
    assert_eq!(code, 0);
    for line in [
        format!("program  {PROGRAM}: "),
        format!(
            "codex (hook): {}",
            home.path().join(".codex/hooks.json").display()
        ),
        format!("cursor: {}", home.path().join(".cursor/mcp.json").display()),
        "service  none".to_owned(),
        "keyring  none".to_owned(),
        home.config().display().to_string(),
        home.config()
            .with_file_name("a.secret")
            .display()
            .to_string(),
        format!("data     {}: audit log", home.data().display()),
    ] {
        assert!(list.contains(&line), "{line} in {list}");
    }
    let (code, _, said) = home.run(&["uninstall", "all"]);
    assert_eq!(code, 2, "nobody can be asked");
    assert!(said.contains("pass --yes"), "{said}");
    assert!(home.config().exists());

    let (code, _, said) = home.run(&["uninstall", "hosts", "--yes"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(
        fs::read_to_string(home.path().join(".cursor/mcp.json")).unwrap(),
        HOST_FILE
    );
    assert!(!home.path().join(".codex/hooks.json").exists());
    assert!(home.config().exists(), "other parts stay");
    let (_, list, _) = home.run(&["uninstall"]);
    assert!(list.contains("hosts    none"), "{list}");

    // A file of somebody else in the data directory stays.
    let foreign = home.data().join("notes.txt");
    fs::write(&foreign, "mine").unwrap();
    let (code, _, said) = home.run(&["uninstall", "all", "--yes"]);
    assert_eq!(code, 1);
    assert!(
        said.contains("it contains files that toolgate did not write"),
        "{said}"
    );
    assert_eq!(fs::read_dir(home.data()).unwrap().count(), 1);
    fs::remove_file(foreign).unwrap();
    assert!(!home.config().parent().unwrap().exists());
}

#[test]
fn a_running_gateway_keeps_its_data() {
    let home = installed("uninstall-running");
    let mut gateway = home
        .command(&["serve", "--quiet"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("the gateway runs", SOON, || {
        (home.run(&["status"]).0 == 0).then_some(())
    });
    let (code, _, said) = home.run(&["uninstall", "data", "--yes"]);
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    assert_eq!(code, 1);
    assert!(
        said.contains("a gateway is running on the data directory"),
        "{said}"
    );
    assert!(home.data().join("audit").exists());
    let (code, _, said) = home.run(&["uninstall", "data", "--yes"]);
    assert_eq!(code, 0, "{said}");
    assert!(!home.data().exists());
}
