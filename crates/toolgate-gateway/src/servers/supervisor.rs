//! All servers of the gateway.

use super::{
    LastLists, ServerLease, ServerSpec, ServerStatus,
    launch::{ProcessLauncher, secret_of},
    life::supervise,
};
use crate::config::{Config, ConfigValue, RemoteAddress};
use crate::door::CallerTokens;
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
    launch: Arc<dyn ProcessLauncher>,
    last: Option<Arc<dyn LastLists>>,
    bearers: Arc<CallerTokens>,
    /// Servers of the active config, in its order.
    current: Mutex<Vec<Arc<ServerLease>>>,
    /// All servers that were started and have not ended yet.
    tasks: Mutex<Vec<SupervisorTask>>,
    shown: watch::Sender<u64>,
}

/// Task of one server, and the signal that stops it.
struct SupervisorTask {
    life: JoinHandle<()>,
    stop: watch::Sender<bool>,
}

impl ServerSupervisor {
    /// Creates a supervisor without servers. Its processes are started by the guardian.
    pub(crate) fn new(guardian: Arc<Guardian>) -> ServerSupervisor {
        ServerSupervisor::with(Arc::new(guardian))
    }

    pub(super) fn with(launch: Arc<dyn ProcessLauncher>) -> ServerSupervisor {
        ServerSupervisor {
            launch,
            last: None,
            bearers: Arc::default(),
            current: Mutex::default(),
            tasks: Mutex::default(),
            shown: watch::Sender::new(0),
        }
    }

    /// Reads a secret of the config, with a timeout for the keyring.
    ///
    /// # Errors
    /// It cannot be read. The message never contains it.
    pub(crate) async fn read(
        &self,
        given: &ConfigValue,
        within: Duration,
    ) -> Result<Secret, String> {
        self.launch.read(given, within).await
    }

    /// Sets the storage of last known lists, and the tokens of callers.
    pub(crate) fn knowing(
        mut self,
        last: Arc<dyn LastLists>,
        bearers: Arc<CallerTokens>,
    ) -> ServerSupervisor {
        self.last = Some(last);
        self.bearers = bearers;
        self
    }

    /// Retries a waiting server at once, or makes a caller connect to it again. Returns whether the server exists.
    pub(crate) fn wake(&self, id: &str, caller: Option<&str>) -> bool {
        let current = lock(&self.current);
        let named = current.iter().find(|lease| *lease.spec().id == *id);
        named.inspect(|lease| lease.server().wake(caller)).is_some()
    }

    /// Closes the connections to a server that use the credentials of one caller or of all. Returns whether the
    /// server exists.
    pub(crate) fn signed_out(&self, id: &str, caller: Option<&str>) -> bool {
        let current = lock(&self.current).clone();
        let named = current.iter().find(|lease| *lease.spec().id == *id);
        named
            .inspect(|lease| lease.server().signed_out(caller))
            .is_some()
    }

    /// Closes the connections of a caller to all servers that use its credentials.
    pub(crate) fn forget(&self, caller: &str) {
        let current = lock(&self.current).clone();
        current
            .iter()
            .for_each(|lease| lease.server().signed_out(Some(caller)));
    }

    /// Reads the secret or private key of our OAuth client at a server's authorization server.
    ///
    /// # Errors
    /// It cannot be read. The message never contains it.
    pub(crate) async fn secret_of(
        &self,
        config: &Config,
        address: &RemoteAddress,
    ) -> Result<Option<Secret>, String> {
        let within = Duration::from_secs(config.limits.start_seconds);
        let secret = secret_of(address, self.launch.as_ref(), within).await;
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
    pub(crate) fn take(&self, leases: Vec<Arc<ServerLease>>) {
        // Dropped after the lock is released, because the last lease on a server may be among them.
        let _before = std::mem::replace(&mut *lock(&self.current), leases);
        self.shown.send_modify(|version| *version += 1);
    }

    fn start(&self, spec: ServerSpec) -> Arc<ServerLease> {
        let lease = Arc::new(ServerLease::new(
            spec,
            self.shown.clone(),
            self.last.clone(),
            &self.bearers,
        ));
        let life = supervise(lease.server(), self.launch.clone(), lease.stopped());
        #[allow(
            clippy::disallowed_methods,
            reason = "the supervisor runs one task per server, and aborts it when dropped"
        )]
        let life = tokio::spawn(life);
        let stop = lease.stop();
        let mut tasks = lock(&self.tasks);
        tasks.retain(|task| !task.life.is_finished());
        tasks.push(SupervisorTask { life, stop });
        lease
    }

    /// Returns the status of all servers.
    pub(crate) fn status(&self) -> Vec<ServerStatus> {
        let current = lock(&self.current);
        current.iter().map(|lease| lease.status()).collect()
    }

    /// Returns a receiver that changes with everything that [`ServerSupervisor::status`] shows.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.shown.subscribe()
    }

    /// Stops all processes in steps, and waits until they have ended.
    pub(crate) async fn stop(&self) {
        let tasks = std::mem::take(&mut *lock(&self.tasks));
        for task in &tasks {
            task.stop.send_replace(true);
        }
        let end = Instant::now() + SHUTDOWN_TIMEOUT;
        for task in tasks {
            let _ = timeout_at(end, task.life).await;
        }
    }
}

impl Drop for ServerSupervisor {
    fn drop(&mut self) {
        for task in lock(&self.tasks).iter() {
            task.stop.send_replace(true);
            task.life.abort();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
