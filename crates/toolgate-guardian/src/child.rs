//! Handle of a child process.

use std::future::Future;

use tokio::net::unix::pipe;
use tokio::sync::watch;

use crate::lifecycle::{ChildExit, ChildProgress, ShutdownSteps};
use crate::link::ChildGuard;

/// Running child process that the guardian started: its pipes and its shutdown.
///
/// Dropping it ends the child in the background, with the same steps as [`ChildProcess::end`].
#[derive(Debug)]
pub struct ChildProcess {
    /// Pipe to the standard input of the child process. Take it to write in another task; the child sees the end of its
    /// input once this is dropped.
    pub stdin: Option<pipe::Sender>,
    /// Pipe from the standard output of the child process.
    pub stdout: Option<pipe::Receiver>,
    /// Pipe from the standard error of the child process. Read it to its end, or the child blocks when the pipe is
    /// full.
    pub stderr: Option<pipe::Receiver>,
    guard: ChildGuard,
}

impl ChildProcess {
    pub(crate) fn new(
        stdin: pipe::Sender,
        stdout: pipe::Receiver,
        stderr: pipe::Receiver,
        tie: ChildGuard,
    ) -> Self {
        Self {
            stdin: Some(stdin),
            stdout: Some(stdout),
            stderr: Some(stderr),
            guard: tie,
        }
    }

    /// Returns the process id of the child process, which is also its process group id.
    pub fn pid(&self) -> i32 {
        self.guard.pid
    }

    /// Sets the time-outs of the child's shutdown steps (close of its input, SIGTERM, SIGKILL). Default:
    /// [`ShutdownSteps::default`].
    pub fn set_steps(&mut self, steps: ShutdownSteps) {
        self.guard.steps = steps;
    }

    /// Resolves when the child process itself has exited, for whatever reason; at once if it already has. The future is
    /// independent of this value and may move to another task.
    pub fn exited(&self) -> impl Future<Output = ChildExit> + Send + 'static {
        let progress = self.guard.progress.clone();
        async move { wait_for_progress(progress, |progress| progress.exit).await }
    }

    /// Ends the child's process group and its descendants in steps (SIGTERM, SIGKILL), and resolves when none is left.
    ///
    /// Closes `stdin_grace` if it was not taken; a caller that took it drops it first. A child that exits at the end of its
    /// input gets no signal. The whole group gets SIGTERM after [`ShutdownSteps::stdin_grace`], and SIGKILL after
    /// [`ShutdownSteps::term_grace`]. If the future is dropped, the shutdown continues.
    pub async fn end(&mut self) -> ChildExit {
        self.guard.end(self.stdin.take());
        wait_for_progress(self.guard.progress.clone(), |progress| {
            progress.exit.filter(|_| progress.ended)
        })
        .await
    }
}

/// Waits for a progress report. The exit is unknown if no more reports come.
async fn wait_for_progress(
    mut progress: watch::Receiver<ChildProgress>,
    answer: impl Fn(&ChildProgress) -> Option<ChildExit>,
) -> ChildExit {
    let seen = progress
        .wait_for(|progress| answer(progress).is_some())
        .await;
    seen.ok()
        .and_then(|progress| answer(&progress))
        .unwrap_or(ChildExit::Unknown)
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.guard.end(self.stdin.take());
    }
}
