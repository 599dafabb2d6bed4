//! The anchor over HTTP: hyper, what is needed of the body taken with serde_json, and the answer. It checks nothing. Says its
//! port on its output, and ends with its input.

use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Bytes, body::Incoming, header, service::service_fn};
use std::{convert::Infallible, sync::Arc};
use toolgate_bench::bare::Bare;

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    toolgate_bench::stay()?;
    let bare = Arc::new(Bare::new());
    toolgate_bench::serve_http(move || {
        let bare = bare.clone();
        service_fn(move |request: Request<Incoming>| answer(bare.clone(), request))
    })
    .await
}

async fn answer(
    bare: Arc<Bare>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await;
    let body = body.map(|body| body.to_bytes()).unwrap_or_default();
    let mut out = Vec::with_capacity(256);
    if !bare.answer(&body, &mut out) {
        std::future::pending::<()>().await;
    }
    let mut response = Response::new(Full::from(out));
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    let session = header::HeaderValue::from_static("one");
    response.headers_mut().insert("mcp-session-id", session);
    Ok(response)
}
