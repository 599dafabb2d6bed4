//! An installed program in use, with an empty home directory.

use std::path::Path;
use std::process::Stdio;

use crate::dist::empty;
use crate::run::{command, output};
use crate::running_program::{RunningProgram, wait_for_approval};

/// A tool of the demo server that needs approval.
const CALL: [&str; 3] = ["call", "demo.delete_note", r#"{"name": "shopping"}"#];

/// Asks for the version, starts the demo, and approves a call.
pub(super) fn use_program(program: &Path, home: &Path, version: &str) -> Result<(), String> {
    empty(home)?;
    let run = |words: &[&str]| {
        let mut run = command(program);
        // The shim of npm needs to find node.
        run.env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        run.env("HOME", home).current_dir(home).args(words);
        run
    };
    let shown = output(&mut run(&["--version"]))?;
    print!("   {shown}");
    if !shown.starts_with(&format!("toolgate {version} (")) {
        return Err(format!(
            "--version names no commit of version {version}: {shown}"
        ));
    }
    let mut serve = run(&["serve", "--listen", "127.0.0.1:0"]);
    let mut gateway = RunningProgram::start(serve.stderr(Stdio::piped()))?;
    gateway.wait_for_line("MCP endpoint")?;
    let mut calling = run(&CALL);
    let mut calling = RunningProgram::start(calling.stdout(Stdio::piped()))?;
    let id = wait_for_approval(&run)?;
    println!("   {id} waits for approval");
    output(&mut run(&["approve", &id]))?;
    calling.wait_for_line("{\"content\":[{\"text\":\"the note \\\"shopping\\\" is deleted\"")?;
    calling.wait_for_success()?;
    // Through the shim of npm, too, SIGTERM has to end the gateway itself.
    gateway.terminate()?;
    gateway.wait_for_success()?;
    match output(&mut run(&["audit", "verify"])) {
        Ok(text) => {
            print!("   {text}");
            Ok(())
        }
        Err(why) => Err(why),
    }
}
