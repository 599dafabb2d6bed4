//! Transports to callers, until the gateway stops.

use super::admin_listener::AdminListener;
use super::service_manager;
use super::{GatewayParts, StartOptions};
use crate::{
    serve::http_server::{self, ListenLimits},
    tls::{HandshakeLimits, TlsHandshakes},
};
use std::{sync::Arc, time::Duration};
use tokio::net::TcpListener;
use toolgate::edge::{http::HttpEndpoint, standard, stdio};

/// Interval at which idle sessions are removed.
const SESSION_SWEEP_INTERVAL: Duration = Duration::from_secs(30);

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
    /// Serves until `stop` resolves, or until the transport ends.
    pub(super) async fn serve_transport(
        &self,
        start: &StartOptions,
        listener: Option<TcpListener>,
        stop: impl Future<Output = ()>,
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
                let stop = async {
                    tokio::select! {
                        () = stop => {}
                        () = sweep(&endpoint) => {}
                    }
                    self.admin.health.drain();
                    service_manager::notify_stopping(drain);
                    operator.record_drain();
                    // Streams end, and so do calls that wait for an approval. Running calls may complete within the
                    // drain timeout.
                    server.close();
                };
                http_server::serve((listener, tls), routes.clone(), limits, stop).await;
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
    pub(super) async fn serve_admin(&self, start: &StartOptions, listener: Option<TcpListener>) {
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
            std::future::pending(),
        )
        .await;
    }
}

async fn sweep(endpoint: &HttpEndpoint) {
    loop {
        tokio::time::sleep(SESSION_SWEEP_INTERVAL).await;
        endpoint.sweep();
    }
}
