//! Handle of the guardian process.

use std::ffi::{OsStr, OsString};
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use tokio::net::unix::pipe;

use crate::child::ChildProcess;
use crate::error::Error;
use crate::link::GuardianLink;
use crate::message::WireCommand;
use crate::{GUARDIAN_ARGUMENT, start};

/// Command line, environment and working directory of a child process to start.
#[derive(Debug, Clone)]
pub struct SpawnCommand {
    /// Program to run: a name that is looked up in the `PATH` of `env`, or a path (relative to `cwd`). No shell is
    /// involved.
    pub program: OsString,
    /// Arguments of the program, without its name.
    pub args: Vec<OsString>,
    /// Complete environment of the child process; see [`environment`](crate::environment).
    pub env: Vec<(OsString, OsString)>,
    /// Working directory of the child process; that of the gateway if `None`.
    pub cwd: Option<PathBuf>,
}

impl From<SpawnCommand> for WireCommand {
    fn from(command: SpawnCommand) -> Self {
        Self {
            program: command.program,
            args: command.args,
            env: command.env,
            cwd: command.cwd.map(PathBuf::into_os_string),
        }
    }
}

/// Handle of the guardian: a separate process that starts and ends the child processes of the gateway.
///
/// Clones share the process. When the last handle is dropped, the guardian ends every child with its descendants, even
/// if a [`ChildProcess`] still exists, and exits. It does the same when this process dies.
#[derive(Debug, Clone)]
pub struct Guardian {
    process: Arc<GuardianProcess>,
}

#[derive(Debug)]
struct GuardianProcess {
    link: Arc<GuardianLink>,
    pid: u32,
}

impl Drop for GuardianProcess {
    fn drop(&mut self) {
        self.link.close();
    }
}

impl Guardian {
    /// Starts the guardian process from this program's own binary. Its `main` must call
    /// [`run_if_asked`](crate::run_if_asked) first. Blocks until it is ready, at most 10 s.
    ///
    /// Call it once, before opening any listener.
    ///
    /// # Errors
    ///
    /// The binary cannot be run, or does not respond as a guardian.
    pub fn start() -> io::Result<Self> {
        Self::start_with(&std::env::current_exe()?, &[OsStr::new(GUARDIAN_ARGUMENT)])
    }

    /// Starts the guardian process from another program, for tests. The first of its arguments must be the hidden word
    /// that [`run_if_asked`](crate::run_if_asked) expects.
    ///
    /// # Errors
    ///
    /// As [`Guardian::start`].
    pub fn start_with(program: &Path, args: &[&OsStr]) -> io::Result<Self> {
        let (mut process, socket) = start::start(program, args)?;
        let pid = process.id();
        let link = Arc::new(GuardianLink::new(socket));
        let listening = Arc::clone(&link);
        let listen = move || {
            listening.listen();
            // Waits here, so that the guardian does not stay a zombie.
            let _ = process.wait();
        };
        let held = Arc::new(GuardianProcess { link, pid });
        thread::Builder::new()
            .name("guardian".into())
            .spawn(listen)?;
        Ok(Self { process: held })
    }

    /// Returns the process id of the guardian process.
    pub fn pid(&self) -> u32 {
        self.process.pid
    }

    /// Starts a child process through the guardian. Needs a tokio runtime with I/O.
    ///
    /// If the future is dropped, a child that was already started is ended.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the program or its settings are invalid, [`Error::Died`] if the guardian is gone.
    pub async fn spawn(&self, spawn: SpawnCommand) -> Result<ChildProcess, Error> {
        let name = spawn.program.clone();
        let link = Arc::clone(&self.process.link);
        let command = WireCommand::from(spawn);
        // The socket may be full for a moment, so the request is sent on a blocking thread.
        let answer = tokio::task::spawn_blocking(move || link.spawn(command));
        let (tie, pipes) = match answer.await {
            Ok(answer) => answer.await.map_err(|_| Error::Died)??,
            Err(_) => return Err(Error::Died),
        };
        let refused = |why: &dyn std::fmt::Display| {
            Error::Refused(format!(
                "{} was not started: its stdin, stdout or stderr {why}",
                name.display()
            ))
        };
        let [stdin, stdout, stderr] = <[_; 3]>::try_from(pipes).map_err(|_| {
            refused(&"could not be opened; raise the limit on open files (ulimit -n)")
        })?;
        let failed = |error: io::Error| refused(&format_args!("could not be opened: {error}"));
        Ok(ChildProcess::new(
            pipe::Sender::from_owned_fd(stdin).map_err(failed)?,
            pipe::Receiver::from_owned_fd(stdout).map_err(failed)?,
            pipe::Receiver::from_owned_fd(stderr).map_err(failed)?,
            tie,
        ))
    }

    /// Resolves when the guardian process has died.
    ///
    /// After the last handle was dropped, this means that every child has ended. Otherwise the guardian was killed:
    /// this process then sent SIGKILL to the children, and nothing can be started any more.
    pub fn died(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut died = self.process.link.died();
        async move {
            // An error means that the link is gone, and so is the guardian.
            let _ = died.wait_for(|died| *died).await;
        }
    }
}
