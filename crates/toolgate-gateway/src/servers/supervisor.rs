//! All servers of the gateway.

use super::{ServerSpec, ServerStatus, Supervised, launch::Launch, life::supervise};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{sync::watch, task::JoinHandle, time::timeout};
use toolgate_guardian::Guardian;

/// How long all children together may take to end.
const END: Duration = Duration::from_secs(15);

/// All servers of the gateway. Dropping it ends their children, without waiting.
pub(crate) struct Supervisor {
    servers: Vec<Arc<Supervised>>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
    stop: watch::Sender<bool>,
    shown: watch::Sender<u64>,
}

impl Supervisor {
    /// Starts a child for each server, and starts it again whenever it ends.
    pub(crate) fn start(guardian: Arc<Guardian>, specs: Vec<ServerSpec>) -> Supervisor {
        Supervisor::start_with(Arc::new(guardian), specs)
    }

    pub(super) fn start_with(launch: Arc<dyn Launch>, specs: Vec<ServerSpec>) -> Supervisor {
        let (stop, shown) = (watch::Sender::new(false), watch::Sender::new(0));
        let make = |spec| Arc::new(Supervised::new(spec, shown.clone()));
        let servers: Vec<Arc<Supervised>> = specs.into_iter().map(make).collect();
        let task = |server: &Arc<Supervised>| {
            #[allow(
                clippy::disallowed_methods,
                reason = "the supervisor: one task a server, ended with it"
            )]
            tokio::spawn(supervise(server.clone(), launch.clone(), stop.subscribe()))
        };
        let tasks = Mutex::new(servers.iter().map(task).collect());
        Supervisor {
            servers,
            tasks,
            stop,
            shown,
        }
    }

    /// The servers, in the order of the config.
    pub(crate) fn servers(&self) -> &[Arc<Supervised>] {
        &self.servers
    }

    /// All servers as lines for the console.
    pub(crate) fn status(&self) -> Vec<ServerStatus> {
        self.servers.iter().map(|server| server.status()).collect()
    }

    /// Changes with everything that [`Supervisor::status`] shows.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.shown.subscribe()
    }

    /// Ends all children in steps, and waits until nothing of them is left.
    pub(crate) async fn stop(&self) {
        self.stop.send_replace(true);
        let tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        let _ = timeout(END, futures_util::future::join_all(tasks)).await;
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        let tasks = self.tasks.get_mut().unwrap_or_else(PoisonError::into_inner);
        tasks.iter().for_each(JoinHandle::abort);
    }
}
