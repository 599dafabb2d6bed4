//! Names the commit in `toolgate --version`. Builds without optimization leave it out, so that a commit does not
//! rebuild the program.

use std::{env, fs, path::Path, process::Command};

/// File that `cargo package` writes into a package; it names the commit.
const PACKAGE_COMMIT_FILE: &str = ".cargo_vcs_info.json";
/// Hexadecimal digits of the commit to show.
const COMMIT_DIGITS: usize = 12;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let commit = (env::var("PROFILE").as_deref() == Ok("release"))
        .then(|| packaged_commit().or_else(checked_out_commit))
        .flatten();
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let shown = match commit {
        Some(commit) => format!("{version} ({commit})"),
        None => version,
    };
    println!("cargo::rustc-env=TOOLGATE_VERSION={shown}");
}

fn packaged_commit() -> Option<String> {
    println!("cargo::rerun-if-changed={PACKAGE_COMMIT_FILE}");
    let text = fs::read_to_string(PACKAGE_COMMIT_FILE).ok()?;
    let (_, rest) = text.split_once("\"sha1\"")?;
    let digits: String = rest
        .chars()
        .skip_while(|c| !c.is_ascii_hexdigit())
        .take_while(char::is_ascii_hexdigit)
        .collect();
    digits.get(..COMMIT_DIGITS).map(str::to_owned)
}

#[allow(clippy::disallowed_methods, reason = "a step of the build")]
fn checked_out_commit() -> Option<String> {
    let git = |words: &[&str]| {
        let out = Command::new("git").args(words).output().ok()?;
        let text = String::from_utf8(out.stdout).ok()?;
        out.status.success().then(|| text.trim().to_owned())
    };
    // The log of HEAD changes with each commit, and with each checkout.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    if Path::new(&log).exists() {
        println!("cargo::rerun-if-changed={log}");
    }
    git(&["rev-parse", &format!("--short={COMMIT_DIGITS}"), "HEAD"])
}
