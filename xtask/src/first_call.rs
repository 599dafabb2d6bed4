//! From the servers of a host to a governed call, in a home directory that has nothing else: what is typed, and how long
//! it takes.

use std::env;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::install;
use crate::run::{command, output, target};
use crate::running_program::{RunningProgram, wait_for_approval};

/// Longest time from the first command to the result of the approved call.
const MAX_DURATION: Duration = Duration::from_secs(90);
/// Largest number of commands that are typed.
const MAX_COMMANDS: usize = 10;
/// Variables of the network that this machine is in.
const NETWORK_VARIABLES: &[&str] = &[
    "HTTPS_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
];
/// File of a host with a server from npm and one from PyPI.
const HOST_FILE: &str = r#"{
  "mcpServers": {
    "files": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "${userHome}/docs"] },
    "time": { "command": "uvx", "args": ["mcp-server-time", "--local-timezone", "UTC"] }
  }
}
"#;

/// Imports the servers, serves them, connects the host, and makes a call that is allowed and one that needs approval.
pub(crate) fn after_import() -> Result<(), String> {
    let home = target().join("interop/import-home");
    let wrong = |error: std::io::Error| format!("{}: {error}", home.display());
    let _ = fs::remove_dir_all(&home);
    fs::create_dir_all(home.join("docs")).map_err(wrong)?;
    fs::create_dir_all(home.join(".cursor")).map_err(wrong)?;
    fs::write(home.join(".cursor/mcp.json"), HOST_FILE).map_err(wrong)?;
    fs::write(home.join("docs/a.txt"), "hello").map_err(wrong)?;

    let path = env::var_os("PATH").unwrap_or_default();
    let tools = install::uv()?;
    let path = env::join_paths(std::iter::once(tools).chain(env::split_paths(&path)));
    let path = path.map_err(|error| format!("PATH: {error}"))?;
    let typed = std::cell::Cell::new(0);
    let began = Instant::now();
    let run = |words: &[&str]| -> Command {
        let mut run = command(target().join("debug/toolgate"));
        run.env_clear().env("PATH", &path).env("HOME", &home);
        for name in NETWORK_VARIABLES {
            if let Some(value) = env::var_os(name) {
                run.env(name, value);
            }
        }
        run.current_dir(&home).args(words);
        run
    };
    let type_command = |words: &[&str]| -> Command {
        typed.set(typed.get() + 1);
        println!(
            "   {:>5.1} s  $ toolgate {}",
            began.elapsed().as_secs_f64(),
            words.join(" ")
        );
        run(words)
    };

    let imported = output(&mut type_command(&["import", "--yes"]))?;
    for line in ["files: 14 tools", "time: 2 tools"] {
        if !imported.contains(line) {
            return Err(format!(
                "`toolgate import` did not print `{line}`:\n{imported}"
            ));
        }
    }
    let mut serve = type_command(&["serve", "--listen", "127.0.0.1:0"]);
    let mut gateway = RunningProgram::start(serve.stderr(Stdio::piped()))?;
    gateway.wait_for_line("MCP endpoint")?;
    output(&mut type_command(&["connect", "cursor"]))?;
    let time = output(&mut type_command(&[
        "call",
        "time.get_current_time",
        "timezone=UTC",
    ]))?;
    if !time.contains("datetime") {
        return Err(format!("the allowed call returned {time}"));
    }
    println!(
        "   {:>5.1} s  the allowed call has its result",
        began.elapsed().as_secs_f64()
    );
    let note = home.join("docs/note.txt");
    let arguments = [
        format!("path={}", note.display()),
        "content=hello".to_owned(),
    ];
    let mut calling = type_command(&["call", "files.write_file", &arguments[0], &arguments[1]]);
    let mut calling = RunningProgram::start(calling.stdout(Stdio::piped()))?;
    let id = wait_for_approval(&run)?;
    output(&mut type_command(&["inbox"]))?;
    output(&mut type_command(&["approve", &id]))?;
    calling.wait_for_line("{\"content\"")?;
    calling.wait_for_success()?;
    let took = began.elapsed();
    println!(
        "   {:>5.1} s  the approved call has its result",
        took.as_secs_f64()
    );
    if fs::read_to_string(&note).map_err(wrong)? != "hello" {
        return Err("the approved call wrote no file".to_owned());
    }
    output(&mut type_command(&["audit", "tail"]))?;
    output(&mut type_command(&["disconnect", "cursor"]))?;
    gateway.terminate()?;
    gateway.wait_for_success()?;
    if fs::read_to_string(home.join(".cursor/mcp.json")).map_err(wrong)? != HOST_FILE {
        return Err("`toolgate disconnect` did not restore the host's file".to_owned());
    }
    println!("   {} commands, {:.1} s", typed.get(), took.as_secs_f64());
    match took <= MAX_DURATION && typed.get() <= MAX_COMMANDS {
        true => Ok(()),
        false => Err(format!(
            "the limits are {MAX_COMMANDS} commands and {} s",
            MAX_DURATION.as_secs()
        )),
    }
}
