//! A server over HTTP that keeps what it is sent, to the byte.

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};
use tokio::{net::TcpListener, task::JoinHandle};
use toolgate::{
    Json,
    client::{HttpOptions, RemoteServer},
};
use toolgate_protocol::json::JsonLimits;

/// One request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Came {
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Came {
    pub(crate) fn method(&self) -> String {
        read(&self.body)["method"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

/// Speaks 2026-07-28, or the revision with sessions where it is old. Ends when it is dropped.
pub(crate) struct Upstream {
    url: String,
    task: JoinHandle<()>,
    came: Arc<Mutex<Vec<Came>>>,
    old: bool,
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Upstream {
    #[allow(clippy::disallowed_methods, reason = "the server of the test")]
    pub(crate) async fn start(old: bool) -> Upstream {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let came: Arc<Mutex<Vec<Came>>> = Arc::default();
        let kept = came.clone();
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let kept = kept.clone();
                let service = hyper::service::service_fn(move |request| {
                    let kept = kept.clone();
                    async move { Ok::<_, Infallible>(answer(&kept, old, request).await) }
                });
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        Upstream {
            url,
            task,
            came,
            old,
        }
    }

    pub(crate) async fn open(&self) -> RemoteServer {
        let mut options = crate::remote::peer::options();
        options.probe = !self.old;
        let opening = RemoteServer::connect(&self.url, options, HttpOptions::default());
        opening.await.unwrap()
    }

    /// All that came since the last look.
    pub(crate) fn take(&self) -> Vec<Came> {
        std::mem::take(&mut self.came.lock().unwrap())
    }
}

/// By our own reader: others do not take every number.
fn read(body: &str) -> Value {
    let json = Json::read(body.as_bytes().to_vec(), &JsonLimits::default());
    json.map(|json| json.to_value()).unwrap_or_default()
}

async fn answer(
    kept: &Mutex<Vec<Came>>,
    old: bool,
    request: Request<Incoming>,
) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let body = String::from_utf8(body.to_vec()).unwrap();
    let asked = read(&body);
    kept.lock().unwrap().push(Came {
        headers: head.headers,
        body,
    });
    let status = |status: u16| Response::builder().status(status);
    if asked["method"].is_null() {
        return status(405).body(Full::default()).unwrap();
    }
    if asked["id"].is_null() {
        return status(202).body(Full::default()).unwrap();
    }
    let tool = json!({"name": "echo", "inputSchema": {"type": "object", "properties":
        {"where": {"type": "string", "x-mcp-header": "Where"}}}});
    let tools = if old {
        json!({"name": "echo", "inputSchema": {"type": "object"}})
    } else {
        tool
    };
    let result = match asked["method"].as_str().unwrap() {
        "server/discover" => json!({"resultType": "complete",
            "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}),
        "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "u", "version": "1"}}),
        "tools/list" => json!({"resultType": "complete", "tools": [tools],
            "ttlMs": 3_600_000, "cacheScope": "public"}),
        _ => json!({"resultType": "complete", "content": [{"type": "text", "text": "x"}]}),
    };
    let reply = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result});
    let mut response = status(200).header("content-type", "application/json");
    if old && asked["method"] == "initialize" {
        response = response.header("mcp-session-id", "theirs");
    }
    response.body(Full::from(reply.to_string())).unwrap()
}
