//! Job objects of Windows: a server ends with all processes that it started.
//!
//! The process starts suspended and is put into the job before it runs, so no process escapes. The system ends the job's
//! processes when its last handle is closed, also if this process dies.

use super::closed_or_dropped;
use process_wrap::tokio::{ChildWrapper, CommandWrap, JobObject, KillOnDrop};
use std::{
    ffi::{OsStr, OsString},
    io,
    path::PathBuf,
    time::Duration,
};
use tokio::{
    process::{ChildStderr, ChildStdin, ChildStdout, Command},
    sync::watch,
    time::timeout,
};

/// Explains why a process did not start: program and reason.
pub(super) fn explain_start(
    program: &OsStr,
    _: &[OsString],
    _: Vec<(OsString, OsString)>,
    _: Option<PathBuf>,
    error: &io::Error,
) -> String {
    format!("{} was not started: {error}", program.display())
}

/// A process in its own job object.
pub(super) struct OwnedProcess(Box<dyn ChildWrapper>);

impl OwnedProcess {
    /// Starts the process in a new job object.
    pub(super) fn start(command: Command) -> io::Result<OwnedProcess> {
        let mut command = CommandWrap::from(command);
        command.wrap(KillOnDrop).wrap(JobObject);
        command.spawn().map(OwnedProcess)
    }

    /// Takes the pipes of standard output and input.
    pub(super) fn pipes(&mut self) -> Option<(ChildStdout, ChildStdin)> {
        self.0.stdout().take().zip(self.0.stdin().take())
    }

    /// Takes the pipe of standard error.
    pub(super) fn stderr(&mut self) -> Option<ChildStderr> {
        self.0.stderr().take()
    }

    /// Waits until the process exits or is closed, and ends the rest of its job. Windows has no signal that asks a
    /// process to end: the end of its input is the request.
    pub(super) async fn end(mut self, mut closed: watch::Receiver<bool>, grace: Duration) {
        // The wrapper would wait for every process of the job; only the server itself counts.
        tokio::select! {
            _ = self.0.inner_mut().wait() => {}
            () = closed_or_dropped(&mut closed) => {
                let _ = timeout(grace, self.0.inner_mut().wait()).await;
            }
        }
        let _ = self.0.start_kill();
        let _ = self.0.inner_mut().wait().await;
    }
}
