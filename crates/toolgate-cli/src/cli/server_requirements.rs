//! What a server needs before it can start: its program, its directory and its secrets. Nothing is started.

use crate::config::{ConfigValue, SecretUse, ServerSettings};
use toolgate_guardian::{SpawnCommand, environment, find_program};

/// Requirements of a server that are not met, each with what to do.
#[derive(Debug, Default)]
pub(crate) struct UnmetRequirements {
    /// Program that cannot be started.
    pub(crate) program: Option<String>,
    /// Secrets that cannot be read. The keyring is not asked.
    pub(crate) secrets: Vec<String>,
    /// Variables to pass on that are not set. The server starts without them.
    pub(crate) unset: Vec<String>,
}

impl UnmetRequirements {
    /// Checks a server.
    pub(crate) fn of(server: &ServerSettings) -> UnmetRequirements {
        let unread = |used: SecretUse<'_>| match used.value {
            ConfigValue::Plaintext(_) | ConfigValue::Keyring(_) => None,
            value => {
                let why = value.read().err()?;
                Some(format!(
                    "the value for {} cannot be read: {why}",
                    used.purpose
                ))
            }
        };
        let unset = server
            .env_pass
            .iter()
            .filter(|name| std::env::var_os(name).is_none());
        UnmetRequirements {
            program: missing_program(server),
            secrets: server
                .secret_uses()
                .into_iter()
                .filter_map(unread)
                .collect(),
            unset: unset.cloned().collect(),
        }
    }

    /// Returns why the server cannot start, one text for each reason.
    pub(crate) fn reasons(&self) -> impl Iterator<Item = &String> {
        self.program.iter().chain(&self.secrets)
    }
}

/// Returns why the program of a server cannot be started.
fn missing_program(server: &ServerSettings) -> Option<String> {
    let program = server.command.first()?;
    let path = server.env.iter().filter(|(name, _)| name == "PATH");
    let path = path
        .filter_map(|(name, value)| Some((name.clone(), value.read().ok()?.reveal().to_owned())));
    let path: Vec<_> = path.collect();
    let passed: Vec<&str> = server.env_pass.iter().map(String::as_str).collect();
    let command = SpawnCommand {
        program: program.into(),
        args: Vec::new(),
        env: environment(&passed, &path),
        cwd: server.cwd.clone(),
    };
    find_program(command).err()
}
