//! HTTP listener: one bounded accept loop, with timeouts for headers and for draining.

mod connection;
mod connection_counts;

use crate::{
    proxy::{ClientConnection, TrustedProxies},
    tls::TlsHandshakes,
};
use connection::{AcceptedConnection, InvalidProxyHeaders, ListenerParts};
use connection_counts::ConnectionCounts;
use hyper::body::Incoming;
use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
    task::JoinSet,
};
use toolgate::edge::http::Body;

/// Limits of the HTTP listener.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListenLimits {
    /// Maximum number of concurrent connections.
    pub(crate) max_connections: usize,
    /// Maximum number of concurrent connections of one client address.
    pub(crate) max_per_address: usize,
    /// Maximum size of a request's head, in bytes.
    pub(crate) max_head_bytes: usize,
    /// Maximum number of headers in a request.
    pub(crate) max_headers: usize,
    /// Timeout for receiving the head of a request.
    pub(crate) header_timeout: Duration,
    /// Drain timeout of running requests at shutdown.
    pub(crate) drain_timeout: Duration,
}

/// Handler of the requests of a listener.
pub(crate) trait RequestHandler: Send + Sync + 'static {
    /// Answers a request on a connection of that peer. It is boxed, because each future on its way would copy it twice.
    fn answer(
        &self,
        peer: ClientConnection,
        request: Box<http::Request<Incoming>>,
    ) -> impl Future<Output = http::Response<Body>> + Send;

    /// Returns the trusted proxies in front of the listener.
    fn proxies(&self) -> Arc<TrustedProxies>;

    /// Returns the number of open connections of the listener.
    fn connections(&self) -> &Arc<AtomicUsize>;
}

/// Counted connection of a listener, or request. Dropping it uncounts it.
pub(crate) struct OpenConnection(Arc<AtomicUsize>);

impl OpenConnection {
    pub(crate) fn count(open: &Arc<AtomicUsize>) -> OpenConnection {
        open.fetch_add(1, Relaxed);
        OpenConnection(open.clone())
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// Serves until `stop` resolves, then waits for running requests within the drain timeout.
///
/// Another process accepts the connections once `handed_over` resolves. Open connections then end after their next
/// response, and the function returns when all have ended, or after `stop` as above.
pub(crate) async fn serve(
    (listener, tls): (TcpListener, Option<TlsHandshakes>),
    routes: Arc<impl RequestHandler>,
    limits: ListenLimits,
    (handed_over, stop): (impl Future<Output = ()>, impl Future<Output = ()>),
) {
    let places = Arc::new(Semaphore::new(limits.max_connections));
    let (stopping, stopped) = watch::channel(false);
    let mut connections = JoinSet::new();
    let shared = Arc::new(ListenerParts {
        routes,
        tls,
        limits,
        addresses: ConnectionCounts::default(),
        invalid_proxy_headers: InvalidProxyHeaders::default(),
        is_handed_over: AtomicBool::new(false),
    });
    let (mut handed_over, mut stop) = (std::pin::pin!(handed_over), std::pin::pin!(stop));
    loop {
        // At the limit, nothing is accepted until a connection ends.
        let next = async {
            let place = places.clone().acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            () = &mut stop => break,
            () = &mut handed_over => {
                shared.is_handed_over.store(true, Relaxed);
                break;
            }
            next = next => next,
        };
        match accepted {
            Ok((stream, from)) => {
                // At a limit of its own, the connection is closed without a response.
                let Some(accepted) = AcceptedConnection::new(&shared, stream, from.ip()) else {
                    continue;
                };
                let stopped = stopped.clone();
                let open = OpenConnection::count(shared.routes.connections());
                connections.spawn(async move {
                    accepted.run(stopped).await;
                    drop((place, open));
                });
            }
            // Usually the process is out of file descriptors. Retry after other connections had time to close.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    if shared.is_handed_over.load(Relaxed) {
        // An idle connection stays open: a request may already be on its way, and closing would lose it.
        let ended = async { while connections.join_next().await.is_some() {} };
        tokio::select! {
            () = ended => return,
            () = &mut stop => {}
        }
    }
    let _ = stopping.send(true);
    let _ = tokio::time::timeout(limits.drain_timeout, async {
        while connections.join_next().await.is_some() {}
    })
    .await;
}
