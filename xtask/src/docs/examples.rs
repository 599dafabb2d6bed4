//! Configs in the pages: `toolgate check` accepts each of them.
//!
//! A block marked `toml` is a config, or the part of one without its servers. `toml secret-rules` is a file of secret
//! rules. Others are not checked: `toml other` belongs to another program, and `toml invalid` shows a mistake.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::markdown::code_fences;
use super::pages;
use crate::run::{command, target};

/// The value of every environment variable that an example names; long enough for a secret.
const VARIABLE_VALUE: &str = "an-example-of-a-value-that-is-long-enough";
/// Message of the program about a file that the config names.
const MISSING_FILE: &str = ".pem cannot be read: No such file or directory";
/// The server of the examples that name none.
const DEFAULT_SERVER: &str = "example";

/// Checks the configs of all pages with the built program.
///
/// # Errors
/// Configs that the program rejects with its message, one line each.
pub(crate) fn check() -> Result<(), String> {
    let folder = target().join("docs-examples");
    fs::create_dir_all(&folder)
        .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    let (mut accepted, mut rejected) = (0, Vec::new());
    for page in pages::all()? {
        for fence in code_fences(&page.text) {
            let outcome = match fence.info.as_str() {
                "toml" => check_config(&folder, &fence.body),
                "toml secret-rules" => check_secret_rules(&folder, &fence.body),
                _ => continue,
            };
            match outcome {
                Ok(()) => accepted += 1,
                Err(why) => rejected.push(format!("{}:{}: {why}", page.path, fence.line)),
            }
        }
    }
    match rejected.as_slice() {
        [] => {
            println!("{accepted} configs in the pages pass `toolgate check`");
            Ok(())
        }
        rejected => Err(rejected.join("\n  ")),
    }
}

fn check_config(folder: &Path, text: &str) -> Result<(), String> {
    let mut config = text.to_owned();
    if !text.lines().any(|line| line.starts_with("[server.")) {
        servers(text)
            .into_iter()
            .for_each(|name| config.push_str(&server_section(name)));
    }
    run_check(folder, &config)
}

fn check_secret_rules(folder: &Path, text: &str) -> Result<(), String> {
    write_private(&folder.join("secret-rules.toml"), text)?;
    let server = server_section(DEFAULT_SERVER);
    let config = format!("secret_rules = [\"secret-rules.toml\"]\n{server}");
    run_check(folder, &config)
}

fn run_check(folder: &Path, config: &str) -> Result<(), String> {
    let file = folder.join("toolgate.toml");
    write_private(&file, config)?;
    let mut check = command(target().join("debug/toolgate"));
    check.arg("--data").arg(folder.join("data"));
    check.args(["check", "--config"]).arg(&file);
    for name in variables(config) {
        check.env(name, VARIABLE_VALUE);
    }
    let output = check
        .output()
        .map_err(|error| format!("cannot start toolgate: {error}"))?;
    // The exit code is 1 for a valid config whose programs are missing, and most examples name programs.
    if matches!(output.status.code(), Some(0 | 1)) {
        return Ok(());
    }
    // An example names certificates that are not there.
    if String::from_utf8_lossy(&output.stderr).contains(MISSING_FILE) {
        return Ok(());
    }
    let all = [output.stderr, output.stdout].concat();
    Err(String::from_utf8_lossy(&all).trim().replace('\n', "; "))
}

fn server_section(name: &str) -> String {
    format!("\n[server.{name}]\ncommand = [\"example-server\"]\n")
}

/// Returns the servers of the tools that an example without servers names.
fn servers(config: &str) -> BTreeSet<&str> {
    let is_name = |text: &&str| {
        let lower = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !text.is_empty() && text.chars().all(lower)
    };
    let named = config.lines().filter(|line| line.starts_with("tools = ["));
    let globs = named.flat_map(|line| line.split('"').skip(1).step_by(2));
    let servers = globs.filter_map(|glob| Some(glob.split_once('.')?.0));
    let servers = servers.filter(is_name).chain([DEFAULT_SERVER]);
    servers.collect()
}

/// Only the user may read a config: the program rejects others.
fn write_private(file: &Path, text: &str) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("cannot write {}: {error}", file.display());
    fs::write(file, text).map_err(wrong)?;
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).map_err(wrong)
}

/// Returns the quoted names in upper case, which are the environment variables of an example.
fn variables(config: &str) -> Vec<&str> {
    let is_name = |text: &&str| {
        let upper = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        !text.is_empty() && text.chars().all(upper)
    };
    let values = config.split('"').filter(is_name);
    let expanded = config.split('$').skip(1).map(|text| {
        let text = text.trim_start_matches('{');
        let end = text.find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'));
        &text[..end.unwrap_or(text.len())]
    });
    values.chain(expanded.filter(is_name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_servers_of_an_example() {
        let config = "[[rule]]\ntools = [\"files.*\", \"*.read\"]\nwhen = \"args.x\"";
        assert_eq!(Vec::from_iter(servers(config)), [DEFAULT_SERVER, "files"]);
    }

    #[test]
    fn finds_the_variables_of_an_example() {
        let config = "token = { env = \"ONE\" }\nenv_pass = [\"TWO_2\", \"lower\"]\nname = \"\"\nat = \"$HOST:1 ${DIR}/a\"";
        assert_eq!(variables(config), ["ONE", "TWO_2", "HOST", "DIR"]);
    }
}
