//! Servers as child processes: settings of the process, and its start.

use super::{
    Client, ClientBuilder, errors::open_failure, opening::ConnectionOwner, server_process,
};
use crate::client::{EraPreference, OpenError, RemoteOptions, RemoteServer};
use std::{ffi::OsString, path::PathBuf, sync::Arc, time::Duration};
use toolgate_core::Error;

impl Client {
    /// Starts a server as a child process and connects to it over stdio; see [`ClientBuilder::spawn`].
    ///
    /// # Errors
    /// The server cannot be started or opened.
    pub async fn spawn<S: Into<OsString>>(
        command: impl IntoIterator<Item = S>,
    ) -> Result<Client, Error> {
        Client::builder().spawn(command).await
    }
}

impl ClientBuilder {
    /// Sets an environment variable of the server process that [`ClientBuilder::spawn`] starts. Of our own environment
    /// the server gets only an allowlist: `PATH`, `HOME`, the locale and similar.
    pub fn env(mut self, name: &str, value: &str) -> ClientBuilder {
        self.process
            .variables
            .push((name.to_owned(), value.to_owned()));
        self
    }

    /// Passes variables of this process's environment to the server process that [`ClientBuilder::spawn`] starts.
    pub fn pass_env<S: Into<String>>(
        mut self,
        names: impl IntoIterator<Item = S>,
    ) -> ClientBuilder {
        self.process
            .passed_variables
            .extend(names.into_iter().map(Into::into));
        self
    }

    /// Sets the working directory of the server process that [`ClientBuilder::spawn`] starts. Default: that of this
    /// process.
    pub fn working_directory(mut self, directory: impl Into<PathBuf>) -> ClientBuilder {
        self.process.working_directory = Some(directory.into());
        self
    }

    /// Sets the function that receives each line of the server process's standard error. By default it goes to that of
    /// this process. Output there does not mean a failure. The function must not block.
    pub fn on_stderr(mut self, on_line: impl Fn(String) + Send + Sync + 'static) -> ClientBuilder {
        self.process.stderr = Some(Arc::new(on_line));
        self
    }

    /// Sets the time that the server process may take to exit after its input is closed, and again after SIGTERM.
    /// Default: 2 s.
    pub fn grace(mut self, grace: Duration) -> ClientBuilder {
        self.process.grace = grace;
        self
    }

    /// Starts a server as a child process and connects to it over stdio.
    ///
    /// The process leads its own process group, which ends with the client: its input is closed, then the group gets
    /// SIGTERM, then SIGKILL. Its environment contains only an allowlist; see [`ClientBuilder::env`]. The command is
    /// not run in a shell.
    ///
    /// # Errors
    /// The process cannot be started, or the server cannot be opened.
    pub async fn spawn<S: Into<OsString>>(
        self,
        command: impl IntoIterator<Item = S>,
    ) -> Result<Client, Error> {
        let command: Vec<OsString> = command.into_iter().map(Into::into).collect();
        let id = self.id_or(|| server_process::program_name(&command));
        let plan = self.prepare(&id)?;
        let start = || server_process::start(&command, &self.process, &id);
        let (mut process, reader, writer) = start()?;
        let first = RemoteServer::open(reader, writer, plan.options.clone()).await;
        let remote = match first {
            // Some servers exit if the first request is of an era that they do not support.
            Err(OpenError::ClosedDuringProbe) => {
                let (again, reader, writer) = start()?;
                process = again;
                let options = RemoteOptions {
                    probe: self.era == EraPreference::Session,
                    era: EraPreference::Newest,
                    ..plan.options.clone()
                };
                RemoteServer::open(reader, writer, options).await
            }
            first => first,
        };
        let remote = remote.map_err(|error| open_failure(&id, error))?;
        self.finish(remote, plan, "stdio", ConnectionOwner::Process(process))
            .await
    }
}
