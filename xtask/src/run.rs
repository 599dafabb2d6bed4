//! Starting other programs, and where their files go.

use std::env;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program to be started in the workspace's root, with nothing to read.
#[allow(
    clippy::disallowed_methods,
    reason = "a development tool; the ban is for the gateway"
)]
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root()).stdin(Stdio::null());
    command
}

/// The same cargo that runs this chore.
pub(crate) fn cargo() -> Command {
    let mut cargo = command(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // `cargo run` tells its child about the chore's own package; the cargo below must not hear it.
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("CARGO_PKG_") || name == "CARGO_MANIFEST_DIR" {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// Runs to the end and turns a bad exit into words.
pub(crate) fn must(command: &mut Command) -> Result<(), String> {
    let words = shown(command);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{words}` ended with {status}")),
        Err(error) => Err(format!("`{words}` could not be started: {error}")),
    }
}

/// Runs to the end and gives what was written to standard output.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let words = shown(command);
    let output = command.stderr(Stdio::inherit()).output();
    match output {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Ok(output) => Err(format!("`{words}` ended with {}", output.status)),
        Err(error) => Err(format!("`{words}` could not be started: {error}")),
    }
}

/// Runs to the end, shows standard output as it comes and hands over every line of it.
pub(crate) fn each_line(command: &mut Command, mut line: impl FnMut(&str)) -> Result<(), String> {
    let words = shown(command);
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("`{words}` could not be started: {error}"))?;
    if let Some(out) = child.stdout.take() {
        for text in BufReader::new(out).split(b'\n').map_while(Result::ok) {
            let text = String::from_utf8_lossy(&text);
            println!("{text}");
            line(&text);
        }
    }
    let status = child
        .wait()
        .map_err(|error| format!("`{words}` was lost: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("`{words}` ended with {status}"))
    }
}

/// Runs to the end, shows standard error as it comes, and takes a warning of cargo itself for a failure.
pub(crate) fn without_warnings(command: &mut Command) -> Result<(), String> {
    let words = shown(command);
    let mut child = command
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("`{words}` could not be started: {error}"))?;
    let mut warned = false;
    if let Some(err) = child.stderr.take() {
        for text in BufReader::new(err).split(b'\n').map_while(Result::ok) {
            let text = String::from_utf8_lossy(&text);
            eprintln!("{text}");
            warned |= text.starts_with("warning");
        }
    }
    match child.wait() {
        Ok(status) if status.success() && !warned => Ok(()),
        Ok(status) if status.success() => Err(format!("`{words}` warned")),
        Ok(status) => Err(format!("`{words}` ended with {status}")),
        Err(error) => Err(format!("`{words}` was lost: {error}")),
    }
}

fn shown(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(
        command
            .get_args()
            .map(|arg| arg.to_string_lossy().into_owned()),
    );
    words.join(" ")
}

/// The workspace's root: the folder above this crate.
pub(crate) fn root() -> PathBuf {
    // `cargo run` sets the variable. The folder of the build may be that of another clone with the same target folder.
    let here = env::var_os("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").into());
    let here = Path::new(&here);
    here.parent().unwrap_or(here).to_path_buf()
}

/// The folder cargo builds into. This program stands in its `debug`.
pub(crate) fn target() -> PathBuf {
    let beside = env::current_exe()
        .ok()
        .and_then(|exe| Some(exe.parent()?.parent()?.to_path_buf()));
    beside.unwrap_or_else(|| root().join("target"))
}

/// Returns the folder of the Rust toolchain that a folder uses.
pub(crate) fn sysroot(folder: &Path) -> Result<PathBuf, String> {
    let mut rustc = command("rustc");
    rustc.args(["--print", "sysroot"]).current_dir(folder);
    output(&mut rustc).map(|path| PathBuf::from(path.trim()))
}

/// Looks for a program on `PATH`.
pub(crate) fn which(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}
