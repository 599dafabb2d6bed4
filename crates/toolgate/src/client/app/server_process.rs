//! Process of a spawned server, and its termination.

use super::{EventCallback, errors::unusable_setting};
use crate::client::line_codec::{LineReader, StreamLine};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use tokio::{
    process::{Child, ChildStderr, ChildStdin, ChildStdout},
    signal::unix::{SignalKind, signal},
    sync::watch,
    task::JoinHandle,
    time::{sleep, timeout},
};
use toolgate_core::{Error, ErrorKind};
use toolgate_guardian::{DEFAULT_ALLOWLIST, SpawnCommand, environment, explain_start_error};
use toolgate_protocol::memory_budget::BudgetScope;

/// Maximum length of a line of standard error, in bytes.
const MAX_STDERR_LINE_BYTES: usize = 64 << 10;
/// Time for the last lines of standard error to arrive.
const STDERR_DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// Interval at which a process is polled in case a signal is lost.
const EXIT_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Settings for starting a server process.
#[derive(Clone)]
pub(super) struct ProcessSettings {
    pub(super) variables: Vec<(String, String)>,
    pub(super) passed_variables: Vec<String>,
    pub(super) working_directory: Option<PathBuf>,
    pub(super) stderr: Option<EventCallback<String>>,
    pub(super) grace: Duration,
}

impl Default for ProcessSettings {
    fn default() -> ProcessSettings {
        ProcessSettings {
            variables: Vec::new(),
            passed_variables: Vec::new(),
            working_directory: None,
            stderr: None,
            grace: Duration::from_secs(2),
        }
    }
}

/// Running process; dropping it starts its termination.
pub(super) struct SpawnedProcess {
    closing: watch::Sender<bool>,
    gone: watch::Receiver<bool>,
}

impl SpawnedProcess {
    /// Terminates the process, and waits until it has exited.
    pub(super) async fn close(&self) {
        self.closing.send_replace(true);
        let mut gone = self.gone.clone();
        // An error means that the supervising task is gone, and the process with it.
        let _ = gone.wait_for(|gone| *gone).await;
    }
}

/// Returns the file name of a program, without directories and extension.
pub(super) fn program_name(command: &[OsString]) -> String {
    let program = command.first().and_then(|p| Path::new(p).file_stem());
    program.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// Starts a process.
///
/// # Errors
/// The command is empty or cannot be run.
pub(super) fn start(
    command: &[OsString],
    settings: &ProcessSettings,
    server: &str,
) -> Result<(SpawnedProcess, ChildStdout, ChildStdin), Error> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(unusable_setting("the command is empty"));
    };
    let failed =
        |why: String| Error::new(ErrorKind::Upstream, format!("the server {server}: {why}"));
    let pass = settings.passed_variables.iter().map(String::as_str);
    let allow: Vec<&str> = DEFAULT_ALLOWLIST.iter().copied().chain(pass).collect();
    let env = environment(&allow, &settings.variables);
    #[allow(
        clippy::disallowed_methods,
        reason = "an application has no guardian process; the server's process group ends with the client"
    )]
    let mut process = tokio::process::Command::new(program);
    process
        .args(arguments)
        .env_clear()
        .envs(env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(match settings.stderr {
            Some(_) => Stdio::piped(),
            None => Stdio::inherit(),
        })
        .process_group(0);
    if let Some(folder) = &settings.working_directory {
        process.current_dir(folder);
    }
    let mut child = process.spawn().map_err(|error| {
        let command = SpawnCommand {
            program: program.clone(),
            args: arguments.to_vec(),
            env,
            cwd: settings.working_directory.clone(),
        };
        failed(explain_start_error(command, &error))
    })?;
    let pipes = child.stdout.take().zip(child.stdin.take());
    let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let (Some((stdout, stdin)), Some(group)) = (pipes, group) else {
        return Err(failed(format!(
            "{} was not started: its stdin or stdout could not be opened; raise the limit of open files (ulimit -n)",
            program.display()
        )));
    };
    let stderr = child.stderr.take().zip(settings.stderr.clone());
    let process = supervise(child, group, settings.grace, stderr.map(forward_stderr));
    Ok((process, stdout, stdin))
}

/// Passes on the server's standard error, line by line.
fn forward_stderr((stderr, told): (ChildStderr, EventCallback<String>)) -> JoinHandle<()> {
    #[allow(
        clippy::disallowed_methods,
        reason = "one stderr reader per process; ends with the process"
    )]
    tokio::spawn(async move {
        let mut lines = LineReader::new(stderr, MAX_STDERR_LINE_BYTES, BudgetScope::default());
        while let Ok(Some(line)) = lines.next().await {
            if let StreamLine::Text(line, _) = line {
                told(String::from_utf8_lossy(&line).into_owned());
            }
        }
    })
}

/// Supervises a process until it has exited.
fn supervise(
    child: Child,
    group: Pid,
    grace: Duration,
    stderr: Option<JoinHandle<()>>,
) -> SpawnedProcess {
    let (closing, closed) = watch::channel(false);
    let (ended, gone) = watch::channel(false);
    #[allow(
        clippy::disallowed_methods,
        reason = "one supervisor per process; ends with the process"
    )]
    tokio::spawn(async move {
        let mut group = OwnedProcessGroup(Some(group));
        group.end(closed, grace).await;
        reap(child).await;
        if let Some(mut stderr) = stderr
            && timeout(STDERR_DRAIN_TIMEOUT, &mut stderr).await.is_err()
        {
            stderr.abort();
        }
        ended.send_replace(true);
    });
    SpawnedProcess { closing, gone }
}

async fn reap(mut child: Child) {
    let _ = child.wait().await;
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

/// Waits until the process is closed or dropped.
async fn closed_or_dropped(closed: &mut watch::Receiver<bool>) {
    let _ = closed.wait_for(|closed| *closed).await;
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
