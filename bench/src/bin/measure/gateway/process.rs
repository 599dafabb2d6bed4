//! The gateway as a process: its program, its config and its data directory.

use crate::http::Http;
use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
};

/// The program, which `cargo xtask bench` builds.
pub fn program() -> PathBuf {
    let given = std::env::var_os("TOOLGATE_PROGRAM").map(PathBuf::from);
    given.unwrap_or_else(|| {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("target/gateway/pgo/toolgate")
    })
}

/// Returns the path of a folder that does not exist, on a disk or in memory.
pub fn new_folder(disk: bool) -> PathBuf {
    let parent = match disk {
        true => Path::new(env!("CARGO_MANIFEST_DIR")).join("target/data"),
        false => PathBuf::from("/dev/shm"),
    };
    let folder = parent.join(format!("toolgate-bench-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    folder
}

/// Returns the data directory of the gateway of a folder.
pub fn data(folder: &Path) -> PathBuf {
    folder.join("data")
}

/// Starts the gateway of a folder with this config, and waits until it names its endpoint. `wrap` precedes its command.
pub fn start(config: &str, folder: &Path, wrap: Option<Command>) -> Http {
    fs::create_dir_all(folder).expect("a folder");
    let file = folder.join("toolgate.toml");
    fs::write(&file, config).expect("a config");
    let mut command = Command::new(program());
    command.arg("serve").args(["--listen", "127.0.0.1:0"]);
    command.arg("--config").arg(file);
    command.arg("--data").arg(data(folder));
    listening(wrapped(command, wrap))
}

/// Returns a command with another one before it.
pub fn wrapped(command: Command, wrap: Option<Command>) -> Command {
    match wrap {
        None => command,
        Some(mut wrap) => {
            wrap.arg(command.get_program()).args(command.get_args());
            wrap
        }
    }
}

/// Starts the gateway and waits until it names its endpoint.
fn listening(mut command: Command) -> Http {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut child: Child = command
        .stderr(Stdio::piped())
        .spawn()
        .expect("the gateway starts; `cargo xtask bench` builds it");
    let mut lines = BufReader::new(child.stderr.take().expect("its errors")).lines();
    let mut said = Vec::new();
    let port = lines.by_ref().map_while(Result::ok).find_map(|line| {
        let port = line.strip_prefix("MCP endpoint").and_then(|url| {
            url.trim()
                .strip_suffix("/mcp")?
                .rsplit(':')
                .next()?
                .parse()
                .ok()
        });
        said.push(line);
        port
    });
    thread::spawn(move || lines.for_each(drop));
    Http::connect(
        child,
        port.unwrap_or_else(|| panic!("no endpoint: {said:?}")),
    )
}
