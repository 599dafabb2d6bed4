//! HTTP on loopback.

use std::convert::Infallible;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use toolgate::Http;
use toolgate::edge::http::Body;

/// Serves at `/mcp`, for ever. Connections are not counted: the only client is the suite.
pub(crate) async fn serve(listener: TcpListener, server: Http) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let server = server.clone();
        connections.spawn(async move {
            let service = service_fn(move |request| answer(server.clone(), request));
            let _ = http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn answer(server: Http, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    if request.uri().path() == "/mcp" {
        return Ok(server.handle(request).await);
    }
    let mut response = Response::new(Body::full("only /mcp is here"));
    *response.status_mut() = http::StatusCode::NOT_FOUND;
    Ok(response)
}
