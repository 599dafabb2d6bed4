//! HTTP on loopback, with the check of Host and Origin before everything.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use toolgate::Caller;
use toolgate::edge::http::{Body, Endpoint, HostGuard};

/// Serves for ever. Connections are not counted: the only client is the suite.
pub(crate) async fn serve(listener: TcpListener, endpoint: Endpoint, port: u16) {
    let guard = Arc::new(HostGuard::loopback(port));
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (guard, endpoint) = (guard.clone(), endpoint.clone());
        connections.spawn(async move {
            let service =
                service_fn(move |request| answer(guard.clone(), endpoint.clone(), request));
            let _ = http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn answer(
    guard: Arc<HostGuard>,
    endpoint: Endpoint,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    if let Err(denied) = guard.check(&request) {
        return Ok(plain(StatusCode::FORBIDDEN, denied.reason()));
    }
    if request.uri().path() != "/mcp" {
        return Ok(plain(StatusCode::NOT_FOUND, "only /mcp is here"));
    }
    let caller = Caller::new("anonymous@http");
    Ok(endpoint.handle(caller, request).await)
}

fn plain(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = Response::new(Body::full(text.to_owned()));
    *response.status_mut() = status;
    response
}
