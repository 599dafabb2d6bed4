//! All servers of the gateway.

use super::{
    LastLists, ServerLease, ServerOutputs, ServerSpec, ServerStatus,
    launch::{ProcessLauncher, client_secret},
    lifecycle::supervise,
};
use crate::authentication::CallerTokens;
use crate::config::{Config, ConfigValue, RemoteAddress};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, timeout_at},
};
use toolgate_auth::Secret;
use toolgate_guardian::Guardian;

/// Timeout for stopping all processes together.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(15);

/// Supervisor of all servers. Dropping it stops their processes, without waiting.
pub(crate) struct ServerSupervisor {
    launcher: Arc<dyn ProcessLauncher>,
    last_lists: Option<Arc<dyn LastLists>>,
    caller_tokens: Arc<CallerTokens>,
    outputs: ServerOutputs,
    /// Servers of the active config, in its order.
    current: Mutex<Vec<Arc<ServerLease>>>,
    /// All servers that were started and have not ended yet.
    tasks: Mutex<Vec<SupervisorTask>>,
    console_version: watch::Sender<u64>,
}

/// Task of one server, and the signal that stops it.
struct SupervisorTask {
    handle: JoinHandle<()>,
    stop: watch::Sender<bool>,
}

impl ServerSupervisor {
    /// Creates a supervisor without servers. Its processes are started by the guardian.
    pub(crate) fn new(guardian: Arc<Guardian>) -> ServerSupervisor {
        ServerSupervisor::with_launcher(Arc::new(guardian))
    }

    pub(super) fn with_launcher(launch: Arc<dyn ProcessLauncher>) -> ServerSupervisor {
        ServerSupervisor {
            launcher: launch,
            last_lists: None,
            caller_tokens: Arc::default(),
            outputs: ServerOutputs::default(),
            current: Mutex::default(),
            tasks: Mutex::default(),
            console_version: watch::Sender::new(0),
        }
    }

    /// Reads a secret of the config, with a timeout for the keyring.
    ///
    /// # Errors
    /// It cannot be read. The message never contains it.
    pub(crate) async fn read_secret(
        &self,
        given: &ConfigValue,
        within: Duration,
    ) -> Result<Secret, String> {
        self.launcher.read(given, within).await
    }

    /// Sets the storage of last known lists, and the tokens of callers.
    pub(crate) fn with_lists_and_tokens(
        mut self,
        last: Arc<dyn LastLists>,
        bearers: Arc<CallerTokens>,
    ) -> ServerSupervisor {
        self.last_lists = Some(last);
        self.caller_tokens = bearers;
        self
    }

    /// Sets the receivers of what servers report.
    pub(crate) fn with_outputs(mut self, outputs: ServerOutputs) -> ServerSupervisor {
        self.outputs = outputs;
        self
    }

    /// Retries a waiting server at once, or makes a caller connect to it again. Returns whether the server exists.
    pub(crate) fn retry(&self, id: &str, caller: Option<&str>) -> bool {
        let current = lock(&self.current);
        let named = current.iter().find(|lease| *lease.spec().id == *id);
        named
            .inspect(|lease| lease.server().retry(caller))
            .is_some()
    }

    /// Restarts a server: ends its process or connection and starts it again at once. Returns whether the server exists.
    pub(crate) fn restart(&self, id: &str) -> bool {
        let current = lock(&self.current);
        let named = current.iter().find(|lease| *lease.spec().id == *id);
        named.inspect(|lease| lease.server().restart()).is_some()
    }

    /// Closes the connections to a server that use the credentials of one caller or of all. Returns whether the
    /// server exists.
    pub(crate) fn drop_credentials(&self, id: &str, caller: Option<&str>) -> bool {
        let current = lock(&self.current).clone();
        let named = current.iter().find(|lease| *lease.spec().id == *id);
        named
            .inspect(|lease| lease.server().drop_credentials(caller))
            .is_some()
    }

    /// Closes the connections of a caller to all servers that use its credentials.
    pub(crate) fn drop_caller_credentials(&self, caller: &str) {
        let current = lock(&self.current).clone();
        current
            .iter()
            .for_each(|lease| lease.server().drop_credentials(Some(caller)));
    }

    /// Reads the secret or private key of our OAuth client at a server's authorization server.
    ///
    /// # Errors
    /// It cannot be read. The message never contains it.
    pub(crate) async fn client_secret(
        &self,
        config: &Config,
        address: &RemoteAddress,
    ) -> Result<Option<Secret>, String> {
        let within = Duration::from_secs(config.limits.start_seconds);
        let secret = client_secret(address, self.launcher.as_ref(), within).await;
        secret.map_err(|(why, _)| why)
    }

    /// Returns a lease on each server. An unchanged server keeps running. A new one starts now, and restarts whenever
    /// it ends. A server stops when its last lease is dropped.
    pub(crate) fn lease(&self, specs: Vec<ServerSpec>) -> Vec<Arc<ServerLease>> {
        let current = lock(&self.current).clone();
        let leased = |spec: ServerSpec| {
            let known = current.iter().find(|lease| *lease.spec() == spec);
            known.cloned().unwrap_or_else(|| self.start(spec))
        };
        specs.into_iter().map(leased).collect()
    }

    /// Replaces the servers of the active config.
    pub(crate) fn replace_servers(&self, leases: Vec<Arc<ServerLease>>) {
        // Dropped after the lock is released, because the last lease on a server may be among them.
        let _before = std::mem::replace(&mut *lock(&self.current), leases);
        self.console_version.send_modify(|version| *version += 1);
    }

    fn start(&self, spec: ServerSpec) -> Arc<ServerLease> {
        let lease = Arc::new(ServerLease::new(
            spec,
            self.console_version.clone(),
            self.last_lists.clone(),
            &self.caller_tokens,
            self.outputs.clone(),
        ));
        let life = supervise(lease.server(), self.launcher.clone(), lease.stopped());
        #[allow(
            clippy::disallowed_methods,
            reason = "the supervisor runs one task per server, and aborts it when dropped"
        )]
        let life = tokio::spawn(life);
        let stop = lease.stop();
        let mut tasks = lock(&self.tasks);
        tasks.retain(|task| !task.handle.is_finished());
        tasks.push(SupervisorTask { handle: life, stop });
        lease
    }

    /// Returns the status of all servers.
    pub(crate) fn status(&self) -> Vec<ServerStatus> {
        let current = lock(&self.current);
        current.iter().map(|lease| lease.status()).collect()
    }

    /// Returns a receiver that changes with everything that [`ServerSupervisor::status`] shows.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.console_version.subscribe()
    }

    /// Stops all processes in steps, and waits until they have ended.
    pub(crate) async fn stop(&self) {
        let tasks = std::mem::take(&mut *lock(&self.tasks));
        for task in &tasks {
            task.stop.send_replace(true);
        }
        let end = Instant::now() + SHUTDOWN_TIMEOUT;
        for task in tasks {
            let _ = timeout_at(end, task.handle).await;
        }
        if let Some(files) = &self.outputs.stderr_files {
            files.flush();
        }
    }
}

impl Drop for ServerSupervisor {
    fn drop(&mut self) {
        for task in lock(&self.tasks).iter() {
            task.stop.send_replace(true);
            task.handle.abort();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
