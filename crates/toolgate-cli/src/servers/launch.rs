//! Start of a server's process: by the guardian, or by a test.

use super::ServerSpec;
use crate::{
    config::keyring,
    config::{ConfigValue, RemoteAddress},
};
use std::{sync::Arc, time::Duration};
use tokio::io::{AsyncRead, AsyncWrite};
use toolgate_auth::Secret;
use toolgate_core::BoxFuture;
use toolgate_guardian::{ChildExit, ChildProcess, Error, Guardian, SpawnCommand, environment};

/// Reads the secret or private key of our OAuth client at a server's authorization server, if it has one.
///
/// # Errors
/// It cannot be read; the flag says whether a retry may help.
pub(super) async fn client_secret(
    address: &RemoteAddress,
    launch: &dyn ProcessLauncher,
    within: Duration,
) -> Result<Option<Secret>, (String, bool)> {
    let Some(given) = address.client.credential_value() else {
        return Ok(None);
    };
    let read = launch.read(given, within).await;
    read.map(Some).map_err(|why| {
        let why = format!("its client secret or private key cannot be read: {why}");
        (why, given.can_retry())
    })
}

/// Starts processes of servers.
pub(super) trait ProcessLauncher: Send + Sync + 'static {
    /// Starts the process of a server.
    fn launch<'a>(
        &'a self,
        spec: &'a ServerSpec,
    ) -> BoxFuture<'a, Result<Box<dyn ServerProcess>, LaunchError>>;

    /// Reads a secret of the config.
    fn read<'a>(
        &'a self,
        given: &'a ConfigValue,
        _within: Duration,
    ) -> BoxFuture<'a, Result<Secret, String>> {
        Box::pin(async { given.read() })
    }
}

/// Failure to start a process.
#[derive(Debug)]
pub(super) struct LaunchError {
    /// Error message.
    pub(super) reason: String,
    /// True if a retry may help.
    pub(super) may_retry: bool,
}

/// A running process. Dropping it ends it.
pub(super) trait ServerProcess: Send {
    /// Takes its pipes; `None` after the first call.
    fn pipes(&mut self) -> Option<ProcessPipes>;

    /// Resolves with the exit status when the process itself has exited.
    fn exited(&self) -> BoxFuture<'static, String>;

    /// Stops it in steps, and resolves with the exit status when all its processes have ended.
    fn end(&mut self) -> BoxFuture<'_, String>;
}

/// The pipes of a child.
pub(super) struct ProcessPipes {
    pub(super) stdin: Box<dyn AsyncWrite + Send + Unpin>,
    pub(super) stdout: Box<dyn AsyncRead + Send + Unpin>,
    pub(super) stderr: Box<dyn AsyncRead + Send + Unpin>,
}

impl ProcessLauncher for Arc<Guardian> {
    fn launch<'a>(
        &'a self,
        spec: &'a ServerSpec,
    ) -> BoxFuture<'a, Result<Box<dyn ServerProcess>, LaunchError>> {
        Box::pin(async move {
            let Some((program, args)) = spec.command.split_first() else {
                return Err(LaunchError {
                    reason: "it has no command; write one in its section of the config".to_owned(),
                    may_retry: false,
                });
            };
            let mut env = Vec::new();
            for (name, given) in &spec.env {
                let value = self.read(given, spec.start_timeout).await;
                let value = value.map_err(|why| LaunchError {
                    reason: format!(
                        "the value for its environment variable {name} cannot be read: {why}"
                    ),
                    may_retry: given.can_retry(),
                })?;
                env.push((name.clone(), value.reveal().to_owned()));
            }
            let passed: Vec<&str> = spec.pass_env.iter().map(String::as_str).collect();
            let spawn = SpawnCommand {
                program: program.into(),
                args: args.iter().map(Into::into).collect(),
                env: environment(&passed, &env),
                cwd: spec.cwd.clone(),
            };
            match self.spawn(spawn).await {
                Ok(child) => Ok(Box::new(child) as Box<dyn ServerProcess>),
                Err(error) => Err(LaunchError {
                    reason: error.to_string(),
                    may_retry: error != Error::Died,
                }),
            }
        })
    }

    fn read<'a>(
        &'a self,
        given: &'a ConfigValue,
        within: Duration,
    ) -> BoxFuture<'a, Result<Secret, String>> {
        Box::pin(keyring::read_secret(given, self, within))
    }
}

impl ServerProcess for ChildProcess {
    fn pipes(&mut self) -> Option<ProcessPipes> {
        let (stdin, stdout, stderr) =
            (self.stdin.take()?, self.stdout.take()?, self.stderr.take()?);
        Some(ProcessPipes {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            stderr: Box::new(stderr),
        })
    }

    fn exited(&self) -> BoxFuture<'static, String> {
        let exited = ChildProcess::exited(self);
        Box::pin(async move { exit_message(exited.await) })
    }

    fn end(&mut self) -> BoxFuture<'_, String> {
        Box::pin(async move { exit_message(ChildProcess::end(self).await) })
    }
}

fn exit_message(exit: ChildExit) -> String {
    match exit {
        ChildExit::Code(code) => format!("it exited with status {code}"),
        ChildExit::Signal(signal) => format!("signal {signal} terminated it"),
        ChildExit::Unknown => "it has ended".to_owned(),
    }
}
