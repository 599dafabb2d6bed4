//! `toolgate import`: homes with the files of hosts, and what becomes of them.
#![cfg(target_os = "linux")]

mod fixture;

use crate::help::{TempDir, output, tool, toolgate};
pub(crate) use fixture::Fixture;
use std::{fs, os::unix::fs::PermissionsExt, path::Path};

/// Environment variable that writes the snapshots instead of comparing them.
const WRITE_SNAPSHOTS: &str = "TOOLGATE_WRITE_SNAPSHOTS";
/// Text in every secret of the fixtures.
const SECRET_MARK: &str = "canary";

fn snapshot(name: &str) -> std::path::PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    tests.join(format!("snapshots/imports/{name}.txt"))
}

#[test]
fn each_home_has_the_expected_import() {
    let mut wrong = Vec::new();
    for fixture in Fixture::all() {
        let home = fixture.unpack();
        let shown = home.import(&["--dry-run"]).shown();
        let file = snapshot(&fixture.name);
        if std::env::var_os(WRITE_SNAPSHOTS).is_some() {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, &shown).unwrap();
        }
        if fs::read_to_string(&file).unwrap_or_default() != shown {
            wrong.push(format!("{}:\n{shown}", fixture.name));
        }
        assert!(
            !shown.contains(SECRET_MARK),
            "{} shows a secret:\n{shown}",
            fixture.name
        );
        assert!(fixture.is_unchanged(&home), "{} wrote a file", fixture.name);
    }
    assert!(
        wrong.is_empty(),
        "run with {WRITE_SNAPSHOTS}=1 and review the snapshots of:\n{}",
        wrong.join("\n")
    );
}

/// Whatever the import writes is a valid config without secrets, and a second import has nothing to add.
#[test]
fn an_import_is_valid_and_needs_no_second_one() {
    let mut written = 0;
    for fixture in Fixture::all().filter(|fixture| !fixture.args.contains(&"--keyring".to_owned()))
    {
        let name = &fixture.name;
        let home = fixture.unpack();
        let before = fs::read_to_string(home.config()).ok();
        let first = home.import(&["--yes", "--no-start"]);
        if first.code != 0 || !first.stdout.contains("\nwrote ") {
            let after = fs::read_to_string(home.config()).ok();
            assert_eq!(before, after, "{name}: {}", first.stderr);
            continue;
        }
        written += 1;
        let text = fs::read_to_string(home.config()).unwrap();
        assert!(
            text.starts_with(&before.unwrap_or_default()),
            "{name}: {text}"
        );
        assert!(!text.contains(SECRET_MARK), "{name}: {text}");
        let checked = home.run(&["check"]);
        // The programs of the fixtures do not exist.
        let is_valid = checked.stdout.contains("valid: ");
        assert!(is_valid, "{name}: {}", checked.stderr);
        let second = home.import(&["--yes", "--no-start"]);
        assert_eq!(second.code, 0, "{name}: {}", second.stderr);
        assert!(
            second.stdout.contains("nothing to add: "),
            "{name}: {}",
            second.stdout
        );
        assert_eq!(text, fs::read_to_string(home.config()).unwrap(), "{name}");
    }
    assert!(written > 25, "only {written} fixtures were written");
}

#[test]
fn secrets_move_to_private_files() {
    let home = Fixture::read("claude-code-headers").unpack();
    let run = home.import(&["--yes", "--no-start"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let secrets = home.config().parent().unwrap().join("secrets");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&secrets), 0o700);
    assert_eq!(mode(&home.config()), 0o600);
    for (name, value) in [
        ("set-Authorization", "Bearer canary-set-4711"),
        ("literal-Authorization", "Bearer canary-4711"),
    ] {
        let file = secrets.join(name);
        assert_eq!(fs::read_to_string(&file).unwrap(), value);
        assert_eq!(mode(&file), 0o600);
    }
    assert!(!secrets.join("unset-Authorization").exists());
}

#[test]
fn without_a_terminal_nothing_is_written() {
    let home = Fixture::read("cursor").unpack();
    let run = home.import(&[]);
    assert_eq!(run.code, 2);
    assert!(
        run.stderr
            .contains("there is no terminal to ask on; pass --yes"),
        "{}",
        run.stderr
    );
    assert!(!home.config().exists());
}

#[test]
fn the_answer_on_a_terminal_decides() {
    if tool("script").is_none() {
        return;
    }
    for (answer, is_written) in [("n", false), ("", false), ("y", true)] {
        let home = Fixture::read("cursor").unpack();
        let run = home.import_on_a_terminal(answer);
        assert!(
            run.stdout.contains("Write these changes? [y/N]"),
            "{}",
            run.stdout
        );
        assert_eq!(
            home.config().exists(),
            is_written,
            "{answer:?}: {}",
            run.stdout
        );
    }
}

#[test]
fn a_config_that_is_a_link_stays_one() {
    let home = Fixture::read("existing-config").unpack();
    let (config, real) = (home.config(), home.path("dotfiles.toml"));
    fs::rename(&config, &real).unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&real, &config).unwrap();
    let run = home.import(&["--yes", "--no-start"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(config.symlink_metadata().unwrap().is_symlink());
    assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    assert!(
        fs::read_to_string(&real)
            .unwrap()
            .contains("[server.weather-2]")
    );
}

/// The imported server is started once; its definitions are pinned, and a gateway knows them.
#[test]
fn the_first_start_pins_and_shows_the_decisions() {
    let home = Fixture::real().unpack();
    let run = home.import(&["--yes"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let start = run.stdout.split("added\n").nth(1).unwrap();
    let (demo, ends) = start.split_once("ends: ").unwrap();
    assert_eq!(
        demo,
        "\ndemo: 7 tools\n\
         \x20 allowed (1): add\n\
         \x20 needs approval (3): ask_name, delete_note, fail\n\
         \x20 denied (1): picture\n\
         \x20 depends on the arguments (2): note, slow_count\n"
    );
    assert!(ends.starts_with("did not start: it ended before the handshake was complete; it exited with status 3\n  stderr: no such database\n"), "{ends}");
    assert!(
        ends.ends_with("\nnext:\n  toolgate serve\n  toolgate connect cursor\n"),
        "{ends}"
    );
    let explained = home.run(&["explain", "demo.add", "{\"a\": 1, \"b\": 2}"]);
    assert!(
        explained.stdout.contains("decision: allow"),
        "{}{}",
        explained.stdout,
        explained.stderr
    );
    let verified = home.run(&["audit", "verify"]);
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
}

/// With `first = "ask"`, the tools stay hidden until the operator accepts their definitions.
#[test]
fn the_first_start_shows_definitions_to_accept() {
    let home = Fixture::real().unpack();
    fs::write(home.config(), "[pins]\nfirst = \"ask\"\n").unwrap();
    let run = home.import(&["--yes"]);
    assert!(
        run.stdout
            .contains("demo: 7 tools\n  hidden until you accept the definition (7): "),
        "{}{}",
        run.stdout,
        run.stderr
    );
}

/// The entry that `toolgate connect` writes is no server to import.
#[test]
fn the_entry_of_connect_is_left_out() {
    for options in [
        vec!["connect", "cursor"],
        vec!["connect", "cursor", "--http"],
    ] {
        let home = Fixture::real().unpack();
        assert_eq!(home.import(&["--yes", "--no-start"]).code, 0);
        let connected = home.run(&options);
        assert_eq!(connected.code, 0, "{}", connected.stderr);
        let run = home.import(&["--yes", "--no-start"]);
        assert!(
            run.stderr
                .contains("left out \"toolgate\" (~/.cursor/mcp.json:"),
            "{}",
            run.stderr
        );
        assert!(run.stdout.contains("nothing to add: "), "{}", run.stdout);
    }
}
