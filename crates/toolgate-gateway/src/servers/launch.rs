//! How a child comes to be: by the guardian, or by a test.

use super::ServerSpec;
use crate::{
    config::{Address, Given},
    keyring,
};
use std::{sync::Arc, time::Duration};
use tokio::io::{AsyncRead, AsyncWrite};
use toolgate::BoxFuture;
use toolgate_auth::Secret;
use toolgate_guardian::{Child, DEFAULT_ALLOW, Error, Exit, Guardian, Spawn, environment};

/// The secret or the private key of the client that we are to the authorization server of a server, where it has one.
///
/// # Errors
/// It cannot be had; whether there may be another try.
pub(super) async fn secret_of(
    address: &Address,
    launch: &dyn Launch,
    within: Duration,
) -> Result<Option<Secret>, (String, bool)> {
    let Some(given) = address.client.given() else {
        return Ok(None);
    };
    let read = launch.read(given, within).await;
    read.map(Some).map_err(|why| {
        let why = format!("what shows its client_id cannot be had: {why}");
        (why, given.may_come())
    })
}

/// Starts children.
pub(super) trait Launch: Send + Sync + 'static {
    /// Starts the child of a server.
    fn launch<'a>(
        &'a self,
        spec: &'a ServerSpec,
    ) -> BoxFuture<'a, Result<Box<dyn Process>, NotStarted>>;

    /// A value of the config.
    fn read<'a>(
        &'a self,
        given: &'a Given,
        _within: Duration,
    ) -> BoxFuture<'a, Result<Secret, String>> {
        Box::pin(async { given.read() })
    }
}

/// Why there is no child.
#[derive(Debug)]
pub(super) struct NotStarted {
    /// In words.
    pub(super) why: String,
    /// Whether it is worth another try.
    pub(super) again: bool,
}

/// A running child. Dropping it ends it.
pub(super) trait Process: Send {
    /// Its ends of the pipes, once.
    fn pipes(&mut self) -> Option<Pipes>;

    /// Resolves when the child itself has exited, with how it did.
    fn exited(&self) -> BoxFuture<'static, String>;

    /// Ends it in steps, and resolves when nothing of it is left, with how it exited.
    fn end(&mut self) -> BoxFuture<'_, String>;
}

/// The pipes of a child.
pub(super) struct Pipes {
    pub(super) stdin: Box<dyn AsyncWrite + Send + Unpin>,
    pub(super) stdout: Box<dyn AsyncRead + Send + Unpin>,
    pub(super) stderr: Box<dyn AsyncRead + Send + Unpin>,
}

impl Launch for Arc<Guardian> {
    fn launch<'a>(
        &'a self,
        spec: &'a ServerSpec,
    ) -> BoxFuture<'a, Result<Box<dyn Process>, NotStarted>> {
        Box::pin(async move {
            let Some((program, args)) = spec.command.split_first() else {
                return Err(NotStarted {
                    why: "it has no command".to_owned(),
                    again: false,
                });
            };
            let mut env = Vec::new();
            for (name, given) in &spec.env {
                let value = self.read(given, spec.start).await;
                let value = value.map_err(|why| NotStarted {
                    why: format!("its variable {name} cannot be set: {why}"),
                    again: given.may_come(),
                })?;
                env.push((name.clone(), value.reveal().to_owned()));
            }
            let passed = spec.pass_env.iter().map(String::as_str);
            let allow: Vec<&str> = DEFAULT_ALLOW.iter().copied().chain(passed).collect();
            let spawn = Spawn {
                program: program.into(),
                args: args.iter().map(Into::into).collect(),
                env: environment(&allow, &env),
                cwd: spec.cwd.clone(),
            };
            match self.spawn(spawn).await {
                Ok(child) => Ok(Box::new(child) as Box<dyn Process>),
                Err(error) => Err(NotStarted {
                    why: error.to_string(),
                    again: error != Error::Died,
                }),
            }
        })
    }

    fn read<'a>(
        &'a self,
        given: &'a Given,
        within: Duration,
    ) -> BoxFuture<'a, Result<Secret, String>> {
        Box::pin(keyring::read(given, self, within))
    }
}

impl Process for Child {
    fn pipes(&mut self) -> Option<Pipes> {
        let (stdin, stdout, stderr) =
            (self.stdin.take()?, self.stdout.take()?, self.stderr.take()?);
        Some(Pipes {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            stderr: Box::new(stderr),
        })
    }

    fn exited(&self) -> BoxFuture<'static, String> {
        let exited = Child::exited(self);
        Box::pin(async move { words(exited.await) })
    }

    fn end(&mut self) -> BoxFuture<'_, String> {
        Box::pin(async move { words(Child::end(self).await) })
    }
}

fn words(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("it exited with status {code}"),
        Exit::Signal(signal) => format!("it was ended by signal {signal}"),
        Exit::Unknown => "it is gone".to_owned(),
    }
}
