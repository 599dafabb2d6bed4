//! Process of a spawned server, and its termination.

#[cfg(windows)]
#[path = "server_process/job_object.rs"]
mod platform;
#[cfg(unix)]
#[path = "server_process/process_group.rs"]
mod platform;

use super::{EventCallback, errors::unusable_setting};
use crate::client::line_codec::{LineReader, StreamLine};
use platform::OwnedProcess;
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use tokio::{
    process::{ChildStderr, ChildStdin, ChildStdout},
    sync::watch,
    task::JoinHandle,
    time::timeout,
};
use toolgate_core::{Error, ErrorKind};
use toolgate_guardian::environment;
use toolgate_protocol::memory_budget::BudgetScope;

/// Maximum length of a line of standard error, in bytes.
const MAX_STDERR_LINE_BYTES: usize = 64 << 10;
/// Time for the last lines of standard error to arrive.
const STDERR_DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
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
    let env = environment(&pass.collect::<Vec<_>>(), &settings.variables);
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
        });
    if let Some(folder) = &settings.working_directory {
        process.current_dir(folder);
    }
    let mut child = OwnedProcess::start(process).map_err(|error| {
        let folder = settings.working_directory.clone();
        failed(platform::explain_start(
            program, arguments, env, folder, &error,
        ))
    })?;
    let Some((stdout, stdin)) = child.pipes() else {
        return Err(failed(format!(
            "{} was not started: its stdin or stdout could not be opened; raise the limit of open files (ulimit -n)",
            program.display()
        )));
    };
    let stderr = child.stderr().zip(settings.stderr.clone());
    let process = supervise(child, settings.grace, stderr.map(forward_stderr));
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
    child: OwnedProcess,
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
        child.end(closed, grace).await;
        if let Some(mut stderr) = stderr
            && timeout(STDERR_DRAIN_TIMEOUT, &mut stderr).await.is_err()
        {
            stderr.abort();
        }
        ended.send_replace(true);
    });
    SpawnedProcess { closing, gone }
}

/// Waits until the process is closed or dropped.
async fn closed_or_dropped(closed: &mut watch::Receiver<bool>) {
    let _ = closed.wait_for(|closed| *closed).await;
}
