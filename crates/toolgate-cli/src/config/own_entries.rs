//! Config entries that point back to this gateway. A host lists toolgate beside its other servers, so a gateway that
//! starts all of them would start itself endlessly.

use super::{Config, ConfigError, ConfigSource, ServerSettings};
use crate::args::{Cli, CliCommand};
use clap::Parser;
use std::{
    ffi::OsStr,
    net::{IpAddr, SocketAddr},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// The name of this program.
const PROGRAM_NAME: &str = "toolgate";
/// Wrapper programs that start the program in their arguments.
const WRAPPER_PROGRAMS: [&str; 5] = ["env", "nohup", "npx", "bunx", "uvx"];

impl Config {
    /// Removes servers that are this gateway and adds a note for each.
    ///
    /// # Errors
    /// No other server remains.
    pub(crate) fn remove_own_entries(&mut self) -> Result<(), ConfigError> {
        let ConfigSource::File(file) = self.source.clone() else {
            return Ok(());
        };
        let listen = self.listen;
        let own: Vec<String> = self
            .servers
            .iter()
            .filter(|server| server.is_own_entry(&file, listen))
            .map(|s| s.id.clone())
            .collect();
        if own.len() == self.servers.len() && !own.is_empty() {
            let text = "every server in it is toolgate itself with this config, which would start itself endlessly; add the servers that the gateway should serve";
            return Err(ConfigError::new(file.display(), text));
        }
        self.servers.retain(|server| !own.contains(&server.id));
        self.notes.extend(own.iter().map(|id| {
            format!("the server {id:?} is skipped: it is this gateway itself, which would start itself endlessly")
        }));
        Ok(())
    }
}

impl ServerSettings {
    /// Returns true if the server is the gateway with that config file and listen address.
    pub(crate) fn is_own_entry(&self, config: &Path, listen: SocketAddr) -> bool {
        match &self.address {
            Some(address) => is_listener(&address.url, listen),
            None => starts_gateway_of(self, config),
        }
    }
}

/// Returns true if the server's command starts a gateway with that config file, which may not exist yet.
fn starts_gateway_of(server: &ServerSettings, config: &Path) -> bool {
    let Some(words) = unwrap_command(&server.command) else {
        return false;
    };
    let Some((program, arguments)) = words.split_first() else {
        return false;
    };
    if !is_this_program(program, server) {
        return false;
    }
    let words = [PROGRAM_NAME].into_iter().chain(arguments.iter().copied());
    let Ok(cli) = Cli::try_parse_from(words) else {
        return false;
    };
    if !matches!(cli.command, None | Some(CliCommand::Serve(_))) {
        return false;
    }
    let theirs = match cli.config {
        Some(path) => Some(server.cwd.as_deref().unwrap_or(Path::new("")).join(path)),
        None => crate::config::paths::default_config_location(),
    };
    theirs.is_some_and(|theirs| theirs == config || same_file(&theirs, config))
}

/// Returns the command without wrapper programs; `None` if the program is unknown.
fn unwrap_command(command: &[String]) -> Option<Vec<&str>> {
    let mut words: Vec<&str> = command.iter().map(String::as_str).collect();
    loop {
        let name = Path::new(words.first()?)
            .file_name()
            .and_then(OsStr::to_str)?;
        if !WRAPPER_PROGRAMS.contains(&name) {
            return Some(words);
        }
        let is_env = name == "env";
        // Options that take a separate value are not supported.
        let skipped = |word: &&str| {
            let plain = ["-i", "-", "--", "-y", "--yes", "-q", "--quiet"].contains(word);
            plain || (is_env && !word.starts_with('-') && word.contains('='))
        };
        let rest = words.iter().skip(1).skip_while(|word| skipped(word));
        words = rest.copied().collect();
    }
}

/// Returns true if the program is this executable or has its name.
fn is_this_program(program: &str, server: &ServerSettings) -> bool {
    let path = Path::new(program);
    // Package runners allow a version after the name.
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    if name.split('@').next() == Some(PROGRAM_NAME) {
        return true;
    }
    let Ok(own) = std::env::current_exe() else {
        return false;
    };
    find_program(path, server).is_some_and(|found| same_file(&found, &own))
}

/// Returns the file of a program: a path unchanged, a name looked up in `PATH`.
fn find_program(program: &Path, server: &ServerSettings) -> Option<PathBuf> {
    if program.components().count() > 1 || program.is_absolute() {
        return Some(server.cwd.as_deref().unwrap_or(Path::new("")).join(program));
    }
    let path = std::env::var_os("PATH")?;
    let mut files = std::env::split_paths(&path).map(|folder| folder.join(program));
    files.find(|file| file.is_file())
}

/// Returns true if two paths refer to the same file.
fn same_file(one: &Path, two: &Path) -> bool {
    match (one.metadata(), two.metadata()) {
        (Ok(one), Ok(two)) => (one.dev(), one.ino()) == (two.dev(), two.ino()),
        _ => false,
    }
}

/// Returns true if a URL is that of the gateway's own listener.
fn is_listener(url: &str, listen: SocketAddr) -> bool {
    let rest = url
        .strip_prefix("http://")
        .or_else(|| url.strip_prefix("https://"));
    let Some(rest) = rest else {
        return false;
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.replace("localhost", "127.0.0.1");
    let Ok(address) = host.parse::<SocketAddr>() else {
        return false;
    };
    let here = |ip: IpAddr| ip.is_loopback() || ip == listen.ip();
    address.port() == listen.port() && listen.port() != 0 && here(address.ip())
}

#[cfg(test)]
#[path = "own_entries/tests.rs"]
mod tests;
