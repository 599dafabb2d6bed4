//! A client of the HTTP endpoint, any caller's, in memory.

use crate::serve::HANG;
use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use toolgate::{
    Caller,
    edge::http::{Body, HttpEndpoint},
};

/// Response to a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    /// The last message in it: JSON, or the last event of a stream.
    pub(crate) fn json(&self) -> Value {
        let mut lines = self.body.lines().rev();
        let data = lines.find_map(|line| line.strip_prefix("data: "));
        serde_json::from_str(data.unwrap_or(&self.body)).unwrap_or_default()
    }
}

pub(crate) async fn request(
    endpoint: &HttpEndpoint,
    caller: &str,
    method: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let mut request = Request::builder()
        .method(method)
        .uri("/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::<Bytes>::from(body.to_owned())).unwrap();
    let response = endpoint.handle(named(caller), request).await;
    read(response).await
}

/// A caller, such as `a`; `a#2` is who has that name as the second.
fn named(caller: &str) -> Caller {
    match caller.split_once('#') {
        Some((name, holder)) => Caller::new(name).with_generation(holder.parse().unwrap()),
        None => Caller::new(caller),
    }
}

pub(crate) async fn read(response: http::Response<Body>) -> Answer {
    let (head, body) = response.into_parts();
    let body = tokio::time::timeout(HANG, body.collect());
    let body = body.await.expect("the body ends").unwrap().to_bytes();
    Answer {
        status: head.status.as_u16(),
        headers: head.headers,
        body: String::from_utf8(body.to_vec()).unwrap(),
    }
}

pub(crate) fn hello(revision: &str) -> String {
    let params = json!({"protocolVersion": revision, "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string()
}

/// Opens a session; its id.
pub(crate) async fn open(endpoint: &HttpEndpoint, caller: &str, revision: &str) -> String {
    let opened = request(endpoint, caller, "POST", &[], &hello(revision)).await;
    let id = &opened.headers["mcp-session-id"];
    id.to_str().unwrap().to_owned()
}

/// A client of 2024-11-05 over HTTP with SSE.
pub(crate) struct Old {
    pub(crate) stream: Body,
    pub(crate) address: String,
}

impl Old {
    pub(crate) async fn open(endpoint: &HttpEndpoint, caller: &str) -> Old {
        let get = Request::get("/sse").header("accept", "text/event-stream");
        let get = get.body(()).unwrap();
        let response = endpoint.sse(&Caller::new(caller), &get, "/messages");
        let mut old = Old {
            stream: response.into_body(),
            address: String::new(),
        };
        let first = old.event().await;
        let address = first.strip_prefix("event: endpoint\ndata: ").unwrap();
        old.address = address.trim_end().to_owned();
        let opened = old.post(endpoint, caller, &hello("2024-11-05")).await;
        assert_eq!(opened.status, 202);
        old.message().await;
        old
    }

    pub(crate) async fn post(&self, endpoint: &HttpEndpoint, caller: &str, body: &str) -> Answer {
        post_old(endpoint, caller, &self.address, body).await
    }

    async fn event(&mut self) -> String {
        let frame = tokio::time::timeout(HANG, self.stream.frame()).await;
        let frame = frame.expect("an event").expect("more to come").unwrap();
        String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()
    }

    pub(crate) async fn message(&mut self) -> Value {
        let mut event = self.event().await;
        // A comment says that the stream is there.
        while event.starts_with(':') {
            event = self.event().await;
        }
        let data = event.strip_prefix("event: message\ndata: ").unwrap();
        serde_json::from_str(data).unwrap()
    }
}

pub(crate) async fn post_old(
    endpoint: &HttpEndpoint,
    caller: &str,
    address: &str,
    body: &str,
) -> Answer {
    let request = Request::post(address)
        .header("content-type", "application/json")
        .body(Full::<Bytes>::from(body.to_owned()))
        .unwrap();
    read(endpoint.messages(&Caller::new(caller), request).await).await
}
