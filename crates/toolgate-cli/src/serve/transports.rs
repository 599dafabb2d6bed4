//! Transports to callers, until the gateway stops.

use super::admin_listener::AdminListener;
use super::handover::{ListenerHandover, OpenHandover, Predecessor, TransferredSessions};
use super::routes::HttpRoutes;
use super::{GatewayParts, StartOptions, handed_over, service_manager};
use crate::{
    runtime::persistent_tasks::PersistentTasks,
    serve::http_server::{self, ListenLimits},
    servers::ServerState,
    tls::{HandshakeLimits, TlsHandshakes},
};
use futures_util::FutureExt;
use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};
use tokio::net::TcpListener;
use toolgate::edge::{TaskView, http::HttpEndpoint, standard, stdio};
use toolgate_protocol::method::tasks::TaskStatus;

/// Interval at which idle sessions are removed.
const SESSION_SWEEP_INTERVAL: Duration = Duration::from_secs(30);
/// Interval at which a gateway whose listeners are handed over checks whether its tasks have ended.
const TASK_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Time after which all other gateways know that this one has left. They read the store at least once a second.
const FORWARDING_PERIOD: Duration = Duration::from_secs(3);

/// Limits of the listener for health pages and metrics. Few clients use it.
const ADMIN_LIMITS: ListenLimits = ListenLimits {
    max_connections: 64,
    max_per_address: 32,
    max_head_bytes: 16 * 1024,
    max_headers: 64,
    header_timeout: Duration::from_secs(10),
    drain_timeout: Duration::ZERO,
};

impl GatewayParts {
    /// Serves until `stop` resolves, until a successor has taken over and all is complete that ran, or until the
    /// transport ends.
    pub(super) async fn serve_transport(
        &self,
        start: &StartOptions,
        listener: Option<TcpListener>,
        (stop, handover): (impl Future<Output = ()>, Option<&Arc<ListenerHandover>>),
    ) -> Result<(), String> {
        let drain = Duration::from_secs(start.config.limits.drain_seconds);
        match (listener, &self.routes) {
            (Some(listener), Some(routes)) => {
                let limits = ListenLimits {
                    max_connections: start.config.limits.connections,
                    max_per_address: start.config.limits.connections_per_address,
                    max_head_bytes: start.config.limits.header_bytes,
                    max_headers: start.config.limits.headers,
                    header_timeout: Duration::from_secs(start.config.limits.header_seconds),
                    drain_timeout: drain,
                };
                let tls = self.operator.tls.clone().map(|tls| {
                    TlsHandshakes::new(
                        tls,
                        HandshakeLimits {
                            max_handshakes: start.config.limits.tls_handshakes,
                            timeout: Duration::from_secs(start.config.limits.tls_handshake_seconds),
                        },
                    )
                });
                let (endpoint, server) = (routes.endpoint.clone(), self.server.clone());
                let operator = self.operator.clone();
                let drained = async {
                    handed_over(handover).await;
                    tokio::time::sleep(drain).await;
                };
                // Pinned, so that both places can wait for it.
                let drained = drained.boxed_local().shared();
                let stop = async {
                    tokio::select! {
                        () = stop => {}
                        () = drained.clone() => {}
                        () = sweep(&endpoint) => {}
                    }
                    self.admin.health.drain();
                    service_manager::notify_stopping(drain);
                    operator.record_drain();
                    // Streams end, and so do calls that wait for an approval. Running calls may complete within the
                    // drain timeout.
                    server.close();
                };
                let until = (handed_over(handover), stop);
                http_server::serve((listener, tls), routes.clone(), limits, until).await;
                if handover.is_some_and(|handover| handover.is_handed_over()) {
                    // Tasks have no connection, and other gateways may still forward requests.
                    tokio::select! {
                        () = drained => {}
                        ((), ()) = async { tokio::join!(self.tasks_ended(), forwards_ended(routes)) } => {}
                    }
                    self.server.close();
                }
                endpoint.close();
                Ok(())
            }
            _ => {
                let (input, output) = standard::streams();
                let caller = self.active.snapshot().default_caller(false);
                let served = stdio::serve(self.server.clone(), caller, input, output);
                let stop = async {
                    stop.await;
                    self.admin.health.drain();
                    self.operator.record_drain();
                    // Calls that wait for an approval end. Running calls may complete within the drain timeout.
                    self.server.close();
                    tokio::time::sleep(drain).await;
                };
                tokio::select! {
                    result = served => result.map_err(|e| format!("reading stdin or writing stdout failed: {e}")),
                    () = stop => Ok(()),
                }
            }
        }
    }
}

impl GatewayParts {
    /// Serves the health pages and the metrics on a listener of their own, if there is one. Never ends by itself: it
    /// answers probes until the gateway has drained.
    pub(super) async fn serve_admin(
        &self,
        start: &StartOptions,
        listener: Option<TcpListener>,
        handover: Option<&Arc<ListenerHandover>>,
    ) {
        let Some(listener) = listener else {
            return std::future::pending().await;
        };
        let address = start.config.admin.listen;
        let is_local = address.is_some_and(|address| address.ip().to_canonical().is_loopback());
        let pages = AdminListener {
            pages: self.admin.clone(),
            open_metrics: is_local || start.config.admin.open_metrics,
            connections: Arc::default(),
        };
        http_server::serve(
            (listener, None),
            Arc::new(pages),
            ADMIN_LIMITS,
            (handed_over(handover), std::future::pending()),
        )
        .await;
        std::future::pending().await
    }

    /// Resolves when no task is running.
    async fn tasks_ended(&self) {
        let is_running = || {
            let tasks = self.server.tasks();
            let status = |task: &TaskView| TaskStatus::read(task.status);
            tasks
                .iter()
                .any(|task| status(task).is_none_or(|status| !status.is_final()))
        };
        while is_running() {
            tokio::time::sleep(TASK_POLL_INTERVAL).await;
        }
    }

    /// Waits until this process can take over: no server is starting, and all that the predecessor has running run.
    ///
    /// # Errors
    /// The message says what does not run.
    pub(super) async fn check_successor(&self, predecessor: &Predecessor) -> Result<(), String> {
        let mut changes = self.supervisor.watch();
        let starting = || {
            let servers = self.supervisor.status();
            servers
                .iter()
                .any(|server| server.state == ServerState::Starting)
        };
        while starting() {
            if changes.changed().await.is_err() {
                break;
            }
        }
        let servers = self.supervisor.status();
        let down = servers.iter().filter(|server| {
            server.state != ServerState::Running && predecessor.runs_server(&server.id)
        });
        let down: Vec<&str> = down.map(|server| server.id.as_str()).collect();
        if !down.is_empty() {
            return Err(format!(
                "did not take over, because the running gateway has servers that do not start here: {}; the running gateway goes on: see `toolgate logs`",
                down.join(", ")
            ));
        }
        match self.admin.health.problems().first() {
            Some(problem) => Err(format!(
                "did not take over, because this process is not ready: {problem}; the running gateway goes on"
            )),
            None => Ok(()),
        }
    }

    /// Receives the sessions that clients open at a predecessor, and takes over its tasks when it ends. Never returns.
    pub(super) async fn follow_predecessor(
        &self,
        predecessor: Option<OpenHandover>,
        sessions: &Arc<TransferredSessions>,
        tasks: Option<&PersistentTasks>,
    ) {
        if let Some(predecessor) = predecessor {
            let sessions = sessions.clone();
            let followed = tokio::task::spawn_blocking(move || predecessor.follow(&sessions));
            let _ = followed.await;
            if let Some(tasks) = tasks {
                // A write first reads what the predecessor wrote last.
                tasks.flush().await;
                let has_ended = |process: &str| tasks.has_ended(process);
                self.server.adopt_tasks(has_ended).await;
            }
        }
        std::future::pending().await
    }
}

/// Resolves when no other gateway forwards requests any more.
async fn forwards_ended(routes: &HttpRoutes) {
    if routes.fleet.is_none() {
        return;
    }
    tokio::time::sleep(FORWARDING_PERIOD).await;
    while routes.forwarded.load(Relaxed) > 0 {
        tokio::time::sleep(TASK_POLL_INTERVAL).await;
    }
}

async fn sweep(endpoint: &HttpEndpoint) {
    loop {
        tokio::time::sleep(SESSION_SWEEP_INTERVAL).await;
        endpoint.sweep();
    }
}
