//! `toolgate service`: the unit, and what is asked of the service manager.

use crate::help::{TempDir, command, output, tool, toolgate};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

/// An account, with a program `systemctl` that writes down how it was called.
struct Account {
    dir: TempDir,
}

impl Account {
    fn new(systemctl: &str) -> Account {
        let dir = TempDir::new("service");
        let config = dir.file(".config/toolgate/toolgate.toml");
        fs::create_dir_all(config.parent().unwrap()).unwrap();
        fs::write(&config, "[server.demo]\ncommand = [\"demo\"]\n").unwrap();
        let program = dir.file("bin/systemctl");
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        let log = dir.file("calls");
        fs::write(
            &program,
            format!(
                "#!/bin/sh\necho \"$*\" >> '{}'\n{systemctl}\n",
                log.display()
            ),
        )
        .unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Account { dir }
    }

    fn run(&self, words: &[&str]) -> Output {
        let mut run = toolgate();
        let path = format!("{}:/usr/bin:/bin", self.dir.file("bin").display());
        output(
            run.args(words)
                .env_remove("XDG_CONFIG_HOME")
                .env_remove("XDG_DATA_HOME")
                .env("HOME", self.dir.path())
                .env("PATH", path),
        )
    }

    fn calls(&self) -> String {
        fs::read_to_string(self.dir.file("calls")).unwrap_or_default()
    }
}

#[test]
fn a_service_is_installed_and_removed() {
    let account = Account::new("");
    let unit = account.dir.file(".config/systemd/user/toolgate.service");
    let shown = account.run(&["service", "install", "--dry-run"]);
    assert!(shown.status.success(), "{shown:?}");
    assert!(!unit.exists() && account.calls().is_empty());
    let out = account.run(&["service", "install", "--data", "a b"]);
    assert!(out.status.success(), "{out:?}");
    let text = fs::read_to_string(&unit).unwrap();
    assert!(
        text.contains("/a b\"\n") && text.contains("Environment=PATH="),
        "{text}"
    );
    assert_eq!(
        account.calls(),
        "--user daemon-reload\n--user enable toolgate.service\n--user restart toolgate.service\n"
    );
    account.run(&["service", "status"]);
    let out = account.run(&["service", "uninstall"]);
    assert!(out.status.success() && !unit.exists(), "{out:?}");
    assert!(account.calls().ends_with(
        "--user status --no-pager toolgate.service\n--user disable --now toolgate.service\n"
    ));
    let out = account.run(&["service", "uninstall"]);
    assert_eq!(out.status.code(), Some(1));
}

/// systemd itself reads both units.
#[test]
fn systemd_accepts_the_units() {
    if tool("systemd-analyze").is_none() {
        return;
    }
    let account = Account::new("");
    let config = account.dir.file(".config/toolgate/toolgate.toml");
    let config = config.to_str().unwrap();
    for words in [
        vec!["service", "install", "--dry-run"],
        vec![
            "service",
            "install",
            "--dry-run",
            "--system",
            "--config",
            config,
        ],
    ] {
        let out = account.run(&words);
        assert!(out.status.success(), "{out:?}");
        let file = account.dir.file("toolgate.service");
        fs::write(&file, &out.stdout).unwrap();
        let checked = output(
            command("systemd-analyze")
                .args(["verify", "--man=no"])
                .arg(&file),
        );
        let text = String::from_utf8_lossy(&checked.stderr);
        let ours: Vec<&str> = text
            .lines()
            .filter(|line| line.contains("toolgate.service"))
            .collect();
        assert!(ours.is_empty(), "{words:?}: {ours:?}");
    }
}

#[test]
fn what_goes_wrong_is_explained() {
    let account = Account::new("echo 'Failed to connect to bus' >&2; exit 1");
    let out = account.run(&["service", "install"]);
    assert_eq!(out.status.code(), Some(1));
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(
        text.contains("is written, but the service is not running: `systemctl --user daemon-reload` failed: Failed to connect to bus"),
        "{text}"
    );
    let out = account.run(&["service", "install", "--system"]);
    assert_eq!(out.status.code(), Some(2));
    fs::write(
        account.dir.file(".config/toolgate/toolgate.toml"),
        "nonsense",
    )
    .unwrap();
    let out = account.run(&["service", "install"]);
    assert_eq!(out.status.code(), Some(2), "{out:?}");
}
