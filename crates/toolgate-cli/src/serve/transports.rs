//! Transports to callers, until the gateway stops.

use super::{GatewayParts, StartOptions};
use crate::serve::http_server::{self, ListenLimits};
use std::time::Duration;
use tokio::net::TcpListener;
use toolgate::{
    Caller,
    edge::{http::HttpEndpoint, standard, stdio},
};

/// Interval at which idle sessions are removed.
const SESSION_SWEEP_INTERVAL: Duration = Duration::from_secs(30);

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
                let (endpoint, server) = (routes.endpoint.clone(), self.server.clone());
                let operator = self.operator.clone();
                let stop = async {
                    tokio::select! {
                        () = stop => {}
                        () = sweep(&endpoint) => {}
                    }
                    operator.record_drain();
                    // Streams end, and so do calls that wait for an approval. Running calls may complete within the
                    // drain timeout.
                    server.close();
                };
                http_server::serve(listener, routes.clone(), limits, stop).await;
                endpoint.close();
                Ok(())
            }
            _ => {
                let (input, output) = standard::streams();
                let caller = Caller::new("local@stdio");
                let served = stdio::serve(self.server.clone(), caller, input, output);
                let stop = async {
                    stop.await;
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

async fn sweep(endpoint: &HttpEndpoint) {
    loop {
        tokio::time::sleep(SESSION_SWEEP_INTERVAL).await;
        endpoint.sweep();
    }
}
