//! The listener: one accept loop, bounded, with times for headers and for the end.

mod addresses;

use crate::routes::Routes;
use addresses::Addresses;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{convert::Infallible, future::Future, net::IpAddr, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    task::JoinSet,
};

/// The limits of a listener.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListenLimits {
    /// Connections at once.
    pub(crate) connections: usize,
    /// Those of one address.
    pub(crate) per_address: usize,
    /// Bytes of a request's head.
    pub(crate) head: usize,
    /// Headers of a request.
    pub(crate) headers_count: usize,
    /// How long the head of a request may take.
    pub(crate) headers: Duration,
    /// How long running requests may take when the program stops.
    pub(crate) drain: Duration,
}

/// Serves until `stop` ends, then lets running requests end within the drain time.
pub(crate) async fn serve(
    listener: TcpListener,
    routes: Arc<Routes>,
    limits: ListenLimits,
    stop: impl Future<Output = ()>,
) {
    let places = Arc::new(Semaphore::new(limits.connections));
    let (stopping, stopped) = watch::channel(false);
    let mut connections = JoinSet::new();
    let addresses = Addresses::default();
    let mut stop = std::pin::pin!(stop);
    loop {
        // At the limit nothing more is accepted until a connection ends.
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
                // One address too many times: its connection is closed without a word.
                let Some(own) = addresses.take(from.ip(), limits.per_address) else {
                    continue;
                };
                let (routes, stopped) = (routes.clone(), stopped.clone());
                connections.spawn(async move {
                    connection((stream, from.ip()), routes, limits, stopped).await;
                    drop((place, own));
                });
            }
            // Out of file descriptors, mostly: others end, so try again.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    let _ = stopping.send(true);
    let _ = tokio::time::timeout(limits.drain, async {
        while connections.join_next().await.is_some() {}
    })
    .await;
}

async fn connection(
    (stream, from): (TcpStream, IpAddr),
    routes: Arc<Routes>,
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
        .header_read_timeout(limits.headers)
        .max_buf_size(limits.head)
        .max_headers(limits.headers_count)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        // A broken connection is the peer's business; what ran for it has been cancelled.
        _ = connection.as_mut() => return,
        _ = stopped.wait_for(|stop| *stop) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}
