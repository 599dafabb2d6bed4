//! The anchor over HTTP: hyper, what is needed of the body taken with serde_json, and the answer. It checks nothing. Says its
//! port on its output, and ends with its input.

use http_body_util::{BodyExt, Either, Full};
use hyper::{
    Request, Response,
    body::{Body, Bytes, Frame, Incoming},
    header::{self, HeaderValue},
    service::service_fn,
};
use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
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

/// The body of a notification stream: one event, and no end.
struct OpenStream(Option<Bytes>);

impl Body for OpenStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.0.take() {
            Some(event) => Poll::Ready(Some(Ok(Frame::data(event)))),
            // Nothing changes, so nothing ever wakes the stream.
            None => Poll::Pending,
        }
    }
}

async fn answer(
    bare: Arc<Bare>,
    request: Request<Incoming>,
) -> Result<Response<Either<Full<Bytes>, OpenStream>>, Infallible> {
    let method = request.headers().get("mcp-method");
    let listens = method.is_some_and(|method| method == "subscriptions/listen");
    let body = request.into_body().collect().await;
    if listens {
        let event = Bytes::from_static(b"data: acknowledged\n\n");
        let mut response = Response::new(Either::Right(OpenStream(Some(event))));
        let stream = HeaderValue::from_static("text/event-stream");
        response.headers_mut().insert(header::CONTENT_TYPE, stream);
        return Ok(response);
    }
    let body = body.map(|body| body.to_bytes()).unwrap_or_default();
    let mut out = Vec::with_capacity(256);
    if !bare.answer(&body, &mut out) {
        std::future::pending::<()>().await;
    }
    let mut response = Response::new(Either::Left(Full::from(out)));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    let session = HeaderValue::from_static("one");
    response.headers_mut().insert("mcp-session-id", session);
    Ok(response)
}
