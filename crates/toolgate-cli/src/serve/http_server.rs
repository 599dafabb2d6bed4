//! HTTP listener: one bounded accept loop, with timeouts for headers and for draining.

mod connection_counts;

use connection_counts::ConnectionCounts;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{
    convert::Infallible,
    future::Future,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
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
    /// Answers a request from that client address.
    fn answer(
        &self,
        from: IpAddr,
        request: http::Request<Incoming>,
    ) -> impl Future<Output = http::Response<Body>> + Send;

    /// Returns the number of open connections of the listener.
    fn connections(&self) -> &Arc<AtomicUsize>;
}

/// Open connection of a listener. Dropping it uncounts it.
struct OpenConnection(Arc<AtomicUsize>);

impl OpenConnection {
    fn count(open: &Arc<AtomicUsize>) -> OpenConnection {
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
pub(crate) async fn serve(
    listener: TcpListener,
    routes: Arc<impl RequestHandler>,
    limits: ListenLimits,
    stop: impl Future<Output = ()>,
) {
    let places = Arc::new(Semaphore::new(limits.max_connections));
    let (stopping, stopped) = watch::channel(false);
    let mut connections = JoinSet::new();
    let addresses = ConnectionCounts::default();
    let mut stop = std::pin::pin!(stop);
    loop {
        // At the limit, nothing is accepted until a connection ends.
        let next = async {
            let place = places.clone().acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            () = &mut stop => break,
            next = next => next,
        };
        match accepted {
            Ok((stream, from)) => {
                // The address has too many connections: close this one without a response.
                let Some(own) = addresses.count(from.ip(), limits.max_per_address) else {
                    continue;
                };
                let (routes, stopped) = (routes.clone(), stopped.clone());
                let open = OpenConnection::count(routes.connections());
                connections.spawn(async move {
                    connection((stream, from.ip()), routes, limits, stopped).await;
                    drop((place, own, open));
                });
            }
            // Usually the process is out of file descriptors. Retry after other connections had time to close.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    let _ = stopping.send(true);
    let _ = tokio::time::timeout(limits.drain_timeout, async {
        while connections.join_next().await.is_some() {}
    })
    .await;
}

async fn connection(
    (stream, from): (TcpStream, IpAddr),
    routes: Arc<impl RequestHandler>,
    limits: ListenLimits,
    mut stopped: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: http::Request<Incoming>| {
        let routes = routes.clone();
        async move { Ok::<_, Infallible>(routes.answer(from, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(limits.max_head_bytes)
        .max_headers(limits.max_headers)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        // The connection has ended. Requests that ran on it are cancelled.
        _ = connection.as_mut() => return,
        _ = stopped.wait_for(|stop| *stop) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}
