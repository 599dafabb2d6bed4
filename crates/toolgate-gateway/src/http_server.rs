//! The listener: one accept loop, bounded, with times for headers and for the end.

use crate::routes::Routes;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{convert::Infallible, future::Future, sync::Arc, time::Duration};
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
    /// How long the head of a request may take.
    pub(crate) headers: Duration,
    /// How long running requests may take when the program stops.
    pub(crate) drain: Duration,
}

/// Bytes of a request's head.
const HEAD: usize = 64 * 1024;
/// Headers of a request.
const HEADERS: usize = 100;

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
            Ok((stream, _)) => {
                let (routes, stopped) = (routes.clone(), stopped.clone());
                connections.spawn(async move {
                    connection(stream, routes, limits, stopped).await;
                    drop(place);
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
    stream: TcpStream,
    routes: Arc<Routes>,
    limits: ListenLimits,
    mut stopped: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: http::Request<Incoming>| {
        let routes = routes.clone();
        async move { Ok::<_, Infallible>(routes.answer(request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.headers)
        .max_buf_size(HEAD)
        .max_headers(HEADERS)
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
