//! How callers reach the gateway, until it stops.

use super::{Parts, Start};
use crate::http_server::{self, ListenLimits};
use std::time::Duration;
use tokio::net::TcpListener;
use toolgate::{
    Caller,
    edge::{http::Endpoint, standard, stdio},
};

/// How often idle sessions are looked for.
const SWEEP: Duration = Duration::from_secs(30);

impl Parts {
    /// Serves until `stop` ends, or nobody can reach it any more.
    pub(super) async fn reached(
        &self,
        start: &Start,
        listener: Option<TcpListener>,
        stop: impl Future<Output = ()>,
    ) -> Result<(), String> {
        let drain = Duration::from_secs(start.config.limits.drain_seconds);
        match (listener, &self.routes) {
            (Some(listener), Some(routes)) => {
                let limits = ListenLimits {
                    connections: start.config.limits.connections,
                    per_address: start.config.limits.connections_per_address,
                    head: start.config.limits.header_bytes,
                    headers_count: start.config.limits.headers,
                    headers: Duration::from_secs(start.config.limits.header_seconds),
                    drain,
                };
                let (endpoint, server) = (routes.endpoint.clone(), self.server.clone());
                let operator = self.operator.clone();
                let stop = async {
                    tokio::select! {
                        () = stop => {}
                        () = sweep(&endpoint) => {}
                    }
                    operator.drains();
                    // Streams end, and calls that only wait for a person; what runs may end within the drain time.
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
                    self.operator.drains();
                    // Calls that only wait for a person end; what runs may end within the drain time.
                    self.server.close();
                    tokio::time::sleep(drain).await;
                };
                tokio::select! {
                    result = served => result.map_err(|e| format!("stdin or stdout broke: {e}")),
                    () = stop => Ok(()),
                }
            }
        }
    }
}

async fn sweep(endpoint: &Endpoint) {
    loop {
        tokio::time::sleep(SWEEP).await;
        endpoint.sweep();
    }
}
