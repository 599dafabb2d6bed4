//! A collector of OTLP that a test plays, over HTTP and gRPC, with the messages of the official crate.

use bytes::Bytes;
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::{
    Request, Response,
    body::{Frame, Incoming},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use opentelemetry_proto::tonic::{
    collector::{metrics::v1::ExportMetricsServiceRequest, trace::v1::ExportTraceServiceRequest},
    common::v1::{KeyValue, any_value::Value},
    metrics::v1::Metric,
    trace::v1::Span,
};
use prost::Message;
use std::{
    convert::Infallible,
    net::TcpListener,
    sync::{Arc, Mutex},
    thread,
};

/// What a collector received.
#[derive(Default)]
struct Received {
    spans: Vec<Span>,
    metrics: Vec<Metric>,
    resources: Vec<Vec<KeyValue>>,
    headers: Vec<http::HeaderMap>,
    /// Bytes of all requests, to search them for what must not be in them.
    bytes: Vec<u8>,
}

/// Collector on a free port, which runs until the test ends.
pub(crate) struct Collector {
    pub(crate) port: u16,
    received: Arc<Mutex<Received>>,
}

impl Collector {
    pub(crate) fn start() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let received = Arc::<Mutex<Received>>::default();
        let shared = received.clone();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(serve(listener, shared));
        });
        Collector { port, received }
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        self.received.lock().unwrap().spans.clone()
    }

    pub(crate) fn metrics(&self) -> Vec<Metric> {
        self.received.lock().unwrap().metrics.clone()
    }

    pub(crate) fn resources(&self) -> Vec<Vec<KeyValue>> {
        self.received.lock().unwrap().resources.clone()
    }

    pub(crate) fn headers(&self) -> Vec<http::HeaderMap> {
        self.received.lock().unwrap().headers.clone()
    }

    /// Whether any request contains the text.
    pub(crate) fn contains(&self, text: &str) -> bool {
        let received = self.received.lock().unwrap();
        received
            .bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    }
}

/// The text of an attribute.
pub(crate) fn attribute(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|pair| pair.key == key)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        Value::IntValue(number) => Some(number.to_string()),
        other => Some(format!("{other:?}")),
    }
}

async fn serve(listener: TcpListener, received: Arc<Mutex<Received>>) {
    listener.set_nonblocking(true).unwrap();
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    while let Ok((stream, _)) = listener.accept().await {
        let received = received.clone();
        #[allow(
            clippy::disallowed_methods,
            reason = "a connection of a test's collector"
        )]
        tokio::spawn(async move {
            let answer = service_fn(|request| answer(request, received.clone()));
            let server = auto::Builder::new(TokioExecutor::new());
            let _ = server.serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    received: Arc<Mutex<Received>>,
) -> Result<Response<BoxBody<Bytes, Infallible>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let is_grpc = parts.headers["content-type"] == "application/grpc";
    let message = match is_grpc {
        true => body.slice(5..),
        false => body,
    };
    let mut received = received.lock().unwrap();
    received.bytes.extend_from_slice(&message);
    received.headers.push(parts.headers);
    match parts.uri.path() {
        "/v1/traces" | "/opentelemetry.proto.collector.trace.v1.TraceService/Export" => {
            for part in ExportTraceServiceRequest::decode(message)
                .unwrap()
                .resource_spans
            {
                received.resources.push(part.resource.unwrap().attributes);
                let spans = part.scope_spans.into_iter().flat_map(|scope| scope.spans);
                received.spans.extend(spans);
            }
        }
        "/v1/metrics" | "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export" => {
            for part in ExportMetricsServiceRequest::decode(message)
                .unwrap()
                .resource_metrics
            {
                let metrics = part
                    .scope_metrics
                    .into_iter()
                    .flat_map(|scope| scope.metrics);
                received.metrics.extend(metrics);
            }
        }
        other => panic!("an unknown path: {other}"),
    }
    let response = Response::builder();
    if !is_grpc {
        return Ok(response.body(Full::new(Bytes::new()).boxed()).unwrap());
    }
    let mut trailers = http::HeaderMap::new();
    trailers.insert("grpc-status", http::HeaderValue::from_static("0"));
    let frames = [
        Ok(Frame::data(Bytes::from_static(&[0, 0, 0, 0, 0]))),
        Ok(Frame::trailers(trailers)),
    ];
    let body = StreamBody::new(futures_util::stream::iter(frames)).boxed();
    let response = response.header("content-type", "application/grpc");
    Ok(response.body(body).unwrap())
}
