//! All servers of the gateway.

use super::{
    LastLists, Lease, ServerSpec, ServerStatus,
    launch::{Launch, secret_of},
    life::supervise,
};
use crate::config::{Address, Config, Given};
use crate::door::Bearers;
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

/// How long all children together may take to end.
const END: Duration = Duration::from_secs(15);

/// All servers of the gateway. Dropping it ends their children, without waiting.
pub(crate) struct Supervisor {
    launch: Arc<dyn Launch>,
    last: Option<Arc<dyn LastLists>>,
    bearers: Arc<Bearers>,
    /// Those of the config in force, in its order.
    current: Mutex<Vec<Arc<Lease>>>,
    /// Everyone that was started and is not gone yet.
    tasks: Mutex<Vec<Task>>,
    shown: watch::Sender<u64>,
}

/// A server's life, and the word that ends it.
struct Task {
    life: JoinHandle<()>,
    stop: watch::Sender<bool>,
}

impl Supervisor {
    /// Starts processes by the guardian; none yet.
    pub(crate) fn new(guardian: Arc<Guardian>) -> Supervisor {
        Supervisor::with(Arc::new(guardian))
    }

    pub(super) fn with(launch: Arc<dyn Launch>) -> Supervisor {
        Supervisor {
            launch,
            last: None,
            bearers: Arc::default(),
            current: Mutex::default(),
            tasks: Mutex::default(),
            shown: watch::Sender::new(0),
        }
    }

    /// A value of the config, which the keyring has that long to give.
    ///
    /// # Errors
    /// It cannot be had, in words that do not have it.
    pub(crate) async fn read(&self, given: &Given, within: Duration) -> Result<Secret, String> {
        self.launch.read(given, within).await
    }

    /// The same, with what was stored of what servers offer, and what callers showed.
    pub(crate) fn knowing(mut self, last: Arc<dyn LastLists>, bearers: Arc<Bearers>) -> Supervisor {
        self.last = Some(last);
        self.bearers = bearers;
        self
    }

    /// Has a server tried again at once, where it waits for that, or a caller connected anew to it; whether there is one of
    /// that id.
    pub(crate) fn wake(&self, id: &str, caller: Option<&str>) -> bool {
        let current = lock(&self.current);
        let named = current.iter().find(|lease| *lease.spec().id == *id);
        named.inspect(|lease| lease.server().wake(caller)).is_some()
    }

    /// Ends the connections to a server that use what was granted for that caller, or for all; whether there is one of that
    /// id.
    pub(crate) fn signed_out(&self, id: &str, caller: Option<&str>) -> bool {
        let current = lock(&self.current).clone();
        let named = current.iter().find(|lease| *lease.spec().id == *id);
        named
            .inspect(|lease| lease.server().signed_out(caller))
            .is_some()
    }

    /// Ends the connections of a caller to all servers that use what was granted for it.
    pub(crate) fn forget(&self, caller: &str) {
        let current = lock(&self.current).clone();
        current
            .iter()
            .for_each(|lease| lease.server().signed_out(Some(caller)));
    }

    /// The secret or the private key of the client that we are to the authorization server of a server.
    ///
    /// # Errors
    /// It cannot be had; a sentence without it.
    pub(crate) async fn secret_of(
        &self,
        config: &Config,
        address: &Address,
    ) -> Result<Option<Secret>, String> {
        let within = Duration::from_secs(config.limits.start_seconds);
        let secret = secret_of(address, self.launch.as_ref(), within).await;
        secret.map_err(|(why, _)| why)
    }

    /// A hold on each of these: on the one that runs where nothing of it changed, else on a new one, which starts now
    /// and is started again whenever it ends. A server ends when its last hold is gone.
    pub(crate) fn lease(&self, specs: Vec<ServerSpec>) -> Vec<Arc<Lease>> {
        let current = lock(&self.current).clone();
        let leased = |spec: ServerSpec| {
            let known = current.iter().find(|lease| *lease.spec() == spec);
            known.cloned().unwrap_or_else(|| self.start(spec))
        };
        specs.into_iter().map(leased).collect()
    }

    /// These are the servers from now on.
    pub(crate) fn take(&self, leases: Vec<Arc<Lease>>) {
        // Dropped here and not under the lock: the last hold on a server may be among them.
        let _before = std::mem::replace(&mut *lock(&self.current), leases);
        self.shown.send_modify(|version| *version += 1);
    }

    fn start(&self, spec: ServerSpec) -> Arc<Lease> {
        let lease = Arc::new(Lease::new(
            spec,
            self.shown.clone(),
            self.last.clone(),
            &self.bearers,
        ));
        let life = supervise(lease.server(), self.launch.clone(), lease.stopped());
        #[allow(
            clippy::disallowed_methods,
            reason = "the supervisor: one task a server, ended with it"
        )]
        let life = tokio::spawn(life);
        let stop = lease.stop();
        let mut tasks = lock(&self.tasks);
        tasks.retain(|task| !task.life.is_finished());
        tasks.push(Task { life, stop });
        lease
    }

    /// All servers as lines for the console.
    pub(crate) fn status(&self) -> Vec<ServerStatus> {
        let current = lock(&self.current);
        current.iter().map(|lease| lease.status()).collect()
    }

    /// Changes with everything that [`Supervisor::status`] shows.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.shown.subscribe()
    }

    /// Ends all children in steps, and waits until nothing of them is left.
    pub(crate) async fn stop(&self) {
        let tasks = std::mem::take(&mut *lock(&self.tasks));
        for task in &tasks {
            task.stop.send_replace(true);
        }
        let end = Instant::now() + END;
        for task in tasks {
            let _ = timeout_at(end, task.life).await;
        }
    }
}

impl Drop for Supervisor {
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
