//! T57: config files that somebody else may have written, or that say what must not be done.

use crate::help::{Family, SOON, Setup, TempDir, output, toolgate, until};
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use toolgate_guardian::DEFAULT_ALLOWLIST;

/// Serving with this file must be refused with exit code 2 and one line that names the file and holds each word.
#[track_caller]
fn refused(file: &Path, words: &[&str]) {
    let data = TempDir::new("state");
    let mut start = toolgate();
    start
        .args(["serve", "--listen", "127.0.0.1:0", "--config"])
        .arg(file)
        .arg("--data")
        .arg(data.path());
    let out = output(&mut start);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert_eq!(said.lines().count(), 1, "one clear message: {said}");
    let name = file.file_name().unwrap().to_string_lossy().into_owned();
    for word in words.iter().copied().chain([name.as_str()]) {
        assert!(said.contains(word), "{word:?} in {said}");
    }
}

#[track_caller]
fn text(text: &str, words: &[&str]) {
    let folder = TempDir::new("config");
    refused(&folder.write("toolgate.toml", text), words);
}

const GOOD: &str = "[server.demo]\ncommand = [\"toolgate\", \"demo-server\"]\n";

#[test]
fn t57_a_file_that_others_may_write_is_refused() {
    let folder = TempDir::new("config");
    let file = folder.write("toolgate.toml", GOOD);
    for mode in [0o666, 0o646, 0o664] {
        std::fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        refused(&file, &["chmod"]);
    }
}

#[test]
fn t57_a_link_to_a_file_that_others_may_write_is_refused() {
    let folder = TempDir::new("config");
    let file = folder.write("other.toml", GOOD);
    std::fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
    let link = folder.file("toolgate.toml");
    symlink(&file, &link).unwrap();
    refused(&link, &[]);
}

#[test]
fn t57_no_file_and_no_plain_file() {
    let folder = TempDir::new("config");
    refused(&folder.file("toolgate.toml"), &[]);
    std::fs::create_dir(folder.file("folder.toml")).unwrap();
    refused(&folder.file("folder.toml"), &[]);
}

/// Holds: BASE-44
#[test]
fn t57_variables_that_load_code_do_not_pass_even_where_the_config_asks() {
    let program = env!("CARGO_BIN_EXE_toolgate");
    let config = format!(
        "[server.demo]\ncommand = [{program:?}, \"demo-server\"]\nenv = {{ OWN = \"1\" }}\n\
         env_pass = [\"NODE_OPTIONS\", \"LD_LIBRARY_PATH\", \"BASH_ENV\", \"ASKED_FOR\"]\n"
    );
    let mut setup = Setup::config(config);
    for name in [
        "NODE_OPTIONS",
        "LD_LIBRARY_PATH",
        "BASH_ENV",
        "ASKED_FOR",
        "SECRET_OF_THE_HOST",
    ] {
        setup = setup.env(name, "/nowhere");
    }
    let gate = setup.start();
    let mut names = until("the demo server runs", SOON, || {
        let names = Family::of(gate.pid()).variables_of("demo-server");
        names.filter(|names| !names.is_empty())
    });
    names.retain(|name| !DEFAULT_ALLOWLIST.contains(&name.as_str()));
    names.sort();
    // The last one is ours: behind which gateways it is.
    assert_eq!(names, ["ASKED_FOR", "OWN", "TOOLGATE_PARENTS"]);
}

#[test]
fn t57_what_a_config_says_wrong_is_named_with_its_line() {
    text(
        "[server.demo]\ncomand = [\"x\"]\n",
        &["toolgate.toml:2", "command"],
    );
    text(
        "[server.demo]\ncommand = \"sh -c 'id'\"\n",
        &["toolgate.toml:2", "["],
    );
    text("[server.demo]\ncommand = []\n", &["toolgate.toml:2"]);
    text(
        "[server.\"de_mo\"]\ncommand = [\"x\"]\n",
        &["toolgate.toml:1"],
    );
    text("[server.demo\n", &["toolgate.toml:1"]);
    text(
        &format!("{GOOD}[[rule]]\ntools = [\"demo.*\"]\naction = \"alow\"\n"),
        &["toolgate.toml:5", "allow"],
    );
    text(
        &format!("{GOOD}[[rule]]\ntools = [\"demo.[a]\"]\naction = \"allow\"\n"),
        &["toolgate.toml:4"],
    );
    text(
        &format!("{GOOD}[limits]\nbody_bytes = 99999999999999\n"),
        &["toolgate.toml:4"],
    );
    text(&format!("listen = \"0.0.0.0:80\"\n{GOOD}"), &["token"]);
}
