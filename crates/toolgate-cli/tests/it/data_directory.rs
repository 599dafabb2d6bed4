//! Data directory of the commands: the one that the config names.

use crate::help::{Setup, TempDir, output, toolgate};
use crate::keys::add;
use std::path::Path;
use std::process::Output;

/// Without `--data`, and with a home of its own, where no data may appear.
fn run(folder: &Path, args: &[&str]) -> Output {
    let mut run = toolgate();
    run.args(args)
        .env("HOME", folder.join("home"))
        .env("XDG_CONFIG_HOME", folder.join("config"))
        .env_remove("XDG_DATA_HOME");
    output(&mut run)
}

fn well(folder: &Path, args: &[&str]) -> String {
    let out = run(folder, args);
    assert!(out.status.success(), "{args:?}: {out:?}");
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn every_command_works_on_the_data_directory_of_the_config() {
    let gate = Setup::fast_demo("[auth]\nrequired = true\n")
        .top("data = \"state\"")
        .start();
    let folder = gate.data.path();
    let file = gate.data.file("toolgate.toml");
    let given = file.to_str().unwrap();

    let key = well(folder, &["keys", "create", "ci", "--config", given]);
    assert_eq!(
        add(gate.port, key.trim()).status,
        200,
        "the gateway knows it"
    );
    for args in [
        &["status"][..],
        &["tools"],
        &["calls"],
        &["inbox"],
        &["keys", "list"],
        &["pins", "list"],
        &["tasks", "list"],
        &["grants", "list"],
        &["console"],
        &["audit", "tail"],
        &["freeze", "all"],
        &["thaw", "all"],
        &["explain", "demo.add"],
    ] {
        let args = [args, &["--config", given]].concat();
        // An explanation by a config that is given is asked of that, not of a gateway.
        let said = well(folder, &args);
        assert!(args[0] != "status" || said.contains("/state"), "{said}");
    }
    let config = folder.join("config/toolgate");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(
        config.join("toolgate.toml"),
        format!("data = {:?}\n", folder.join("state")),
    )
    .unwrap();
    assert!(
        well(folder, &["keys", "list"]).contains("key:ci"),
        "the usual config"
    );
    let explained = well(folder, &["explain", "demo.add"]);
    assert!(
        explained.contains("according to a running gateway"),
        "{explained}"
    );
    let data = gate.stop();
    // Without a gateway as well.
    well(data.path(), &["keys", "create", "ann", "--config", given]);
    assert!(well(data.path(), &["keys", "list"]).contains("key:ann"));
    assert!(!data.path().join("home").exists(), "nothing lies elsewhere");
}

#[test]
fn a_config_that_is_wrong_keeps_nobody_from_freezing_and_no_other_directory_is_taken() {
    let gate = Setup::fast_demo("").start();
    let folder = TempDir::new("wrong");
    let data = gate.data.path().join("state");
    for wrong in [
        "lisen = 1\n",
        "[server.a]\nurl = 7\n",
        "[[rule]]\ntools = [\"a\n",
    ] {
        let config = folder.write("wrong.toml", &format!("data = {data:?}\n{wrong}"));
        let given = config.to_str().unwrap();
        well(folder.path(), &["freeze", "all", "--config", given]);
        assert!(gate.cli(&["freeze", "list"]).contains("all"), "{wrong}");
        well(folder.path(), &["thaw", "all", "--config", given]);
        well(folder.path(), &["inbox", "--config", given]);
        let id = run(
            folder.path(),
            &["deny", "a-1", "-m", "no", "--config", given],
        );
        let said = String::from_utf8_lossy(&id.stderr).into_owned();
        assert!(
            id.status.code() == Some(1) && said.contains("a-1"),
            "{said}"
        );
    }
    for wrong in ["data = 7\n", "data = \"\n"] {
        let config = folder.write("wrong.toml", wrong);
        let given = config.to_str().unwrap();
        let out = run(folder.path(), &["freeze", "all", "--config", given]);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert!(
            said.contains("wrong.toml:1:") && said.contains("--data DIR"),
            "{said}"
        );
        // With the directory, the config is not looked at.
        let data = data.to_str().unwrap();
        well(folder.path(), &["inbox", "--config", given, "--data", data]);
    }
    let missing = run(
        folder.path(),
        &["status", "--config", "/nowhere/toolgate.toml"],
    );
    assert_eq!(missing.status.code(), Some(2), "{missing:?}");
    assert!(
        !folder.path().join("home").exists(),
        "nothing lies elsewhere"
    );
}
