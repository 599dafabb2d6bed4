//! Process groups of Unix: a server ends with all processes of its group.

use super::closed_or_dropped;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::{
    ffi::{OsStr, OsString},
    io,
    path::PathBuf,
    time::Duration,
};
use tokio::{
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    signal::unix::{SignalKind, signal},
    sync::watch,
    time::{sleep, timeout},
};
use toolgate_guardian::{SpawnCommand, explain_start_error};

/// Interval at which a process is polled in case a signal is lost.
const EXIT_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Explains why a process did not start: program, reason and remedy.
pub(super) fn explain_start(
    program: &OsStr,
    arguments: &[OsString],
    env: Vec<(OsString, OsString)>,
    cwd: Option<PathBuf>,
    error: &io::Error,
) -> String {
    let command = SpawnCommand {
        program: program.to_owned(),
        args: arguments.to_vec(),
        env,
        cwd,
    };
    explain_start_error(command, error)
}

/// A process that leads its own process group.
pub(super) struct OwnedProcess {
    child: Child,
    group: OwnedProcessGroup,
}

impl OwnedProcess {
    /// Starts the process as the leader of a new group.
    pub(super) fn start(mut command: Command) -> io::Result<OwnedProcess> {
        let child = command.process_group(0).spawn()?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let group = OwnedProcessGroup(group);
        Ok(OwnedProcess { child, group })
    }

    /// Takes the pipes of standard output and input.
    pub(super) fn pipes(&mut self) -> Option<(ChildStdout, ChildStdin)> {
        self.group.0?;
        self.child.stdout.take().zip(self.child.stdin.take())
    }

    /// Takes the pipe of standard error.
    pub(super) fn stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Waits until the process exits or is closed, ends the rest of its group, and reaps it.
    pub(super) async fn end(mut self, closed: watch::Receiver<bool>, grace: Duration) {
        self.group.end(closed, grace).await;
        let _ = self.child.wait().await;
    }
}

/// Process group; dropping it kills all its processes at once.
struct OwnedProcessGroup(Option<Pid>);

impl OwnedProcessGroup {
    /// Waits until the process exits or is closed; then terminates it in steps, and the rest of its group.
    async fn end(&mut self, mut closed: watch::Receiver<bool>, grace: Duration) {
        let Some(group) = self.0 else { return };
        tokio::select! {
            () = exited(group) => {}
            () = closed_or_dropped(&mut closed) => {
                // The process's input is already closed.
                if timeout(grace, exited(group)).await.is_err() {
                    let _ = kill_process_group(group, Signal::TERM);
                    let _ = timeout(grace, exited(group)).await;
                }
            }
        }
        // The leader is not reaped yet, so the id still belongs to this group.
        self.0 = None;
        let _ = kill_process_group(group, Signal::KILL);
    }
}

impl Drop for OwnedProcessGroup {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Waits until one of our processes has exited, without reaping it.
async fn exited(process: Pid) {
    let mut children = signal(SignalKind::child()).ok();
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    loop {
        match waitid(WaitId::Pid(process), how) {
            Ok(None) => {}
            Ok(Some(_)) | Err(_) => return,
        }
        let told = async {
            match &mut children {
                Some(children) => {
                    children.recv().await;
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = told => {}
            () = sleep(EXIT_POLL_INTERVAL) => {}
        }
    }
}
