//! Sessions and events that outlive a process: a second endpoint with the same stores stands for the restarted one.

use super::{
    HANG, Scripted,
    http::{exchange, send, text},
    server,
};
use bytes::Bytes;
use http_body_util::BodyExt;
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
    time::Duration,
};
use toolgate::{
    Error,
    core::{BoxFuture, Caller},
    edge::http::{EventStore, HttpEndpoint, HttpLimits, SessionStore},
};

const OPEN: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
const ECHO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":1}}}"#;
const COUNT: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"count","_meta":{"progressToken":"p"}}}"#;

type Events = BTreeMap<(String, u64, u64), Bytes>;

/// Stores that all endpoints of a test share.
#[derive(Default)]
struct Stores {
    sessions: Mutex<HashMap<String, String>>,
    events: Mutex<Events>,
}

impl SessionStore for Stores {
    fn save(&self, key: String, record: String) -> BoxFuture<'_, Result<(), Error>> {
        self.sessions.lock().unwrap().insert(key, record);
        Box::pin(async { Ok(()) })
    }

    fn load(&self, key: String) -> BoxFuture<'_, Result<Option<String>, Error>> {
        let found = self.sessions.lock().unwrap().get(&key).cloned();
        Box::pin(async { Ok(found) })
    }

    fn remove(&self, key: &str) {
        self.sessions.lock().unwrap().remove(key);
    }
}

impl EventStore for Stores {
    fn append(&self, key: &str, stream: u64, position: u64, event: Bytes) {
        let before = (key.to_owned(), stream, position);
        let replaced = self.events.lock().unwrap().insert(before, event);
        assert!(replaced.is_none(), "an event id is used once");
    }

    fn load_after(
        &self,
        key: String,
        stream: u64,
        position: u64,
    ) -> BoxFuture<'_, Option<Vec<Bytes>>> {
        let events = self.events.lock().unwrap();
        let range = (key.clone(), stream, position + 1)..=(key, stream, u64::MAX);
        let after = events
            .range(range)
            .map(|(_, event)| event.clone())
            .collect();
        Box::pin(async { Some(after) })
    }

    fn remove(&self, key: &str) {
        self.events.lock().unwrap().retain(|(of, ..), _| of != key);
    }
}

fn endpoint_with(stores: &Arc<Stores>, limits: HttpLimits) -> HttpEndpoint {
    HttpEndpoint::new(server(Scripted::new()), limits)
        .with_session_store(stores.clone())
        .with_event_store(stores.clone())
}

fn endpoint(stores: &Arc<Stores>) -> HttpEndpoint {
    endpoint_with(stores, HttpLimits::default())
}

async fn open(endpoint: &HttpEndpoint) -> String {
    let opened = send(endpoint, "POST", &[], OPEN).await;
    opened.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned()
}

async fn echo(endpoint: &HttpEndpoint, session: &str) -> u16 {
    let with = [("mcp-session-id", session)];
    send(endpoint, "POST", &with, ECHO).await.status().as_u16()
}

#[tokio::test]
async fn a_restarted_server_accepts_a_stored_session() {
    let stores = Arc::default();
    let before = endpoint(&stores);
    let session = open(&before).await;
    before.close();
    let after = endpoint(&stores);
    assert_eq!(echo(&after, &session).await, 200);
    assert_eq!(echo(&after, &session).await, 200, "and again");
    // A restored session opens streams, too.
    let with = [("mcp-session-id", session.as_str())];
    assert_eq!(send(&after, "GET", &with, "").await.status(), 200);
    let none = HttpEndpoint::new(server(Scripted::new()), HttpLimits::default());
    assert_eq!(echo(&none, &session).await, 404, "without a store");
}

#[tokio::test]
async fn a_stored_session_belongs_to_its_caller_and_its_id_is_not_stored() {
    let stores: Arc<Stores> = Arc::default();
    let session = open(&endpoint(&stores)).await;
    let stored = format!("{:?}", stores.sessions.lock().unwrap());
    assert!(!stored.contains(&session), "{stored}");
    let after = endpoint(&stores);
    let request = http::Request::post("/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-session-id", &session)
        .body(http_body_util::Full::<Bytes>::from(ECHO))
        .unwrap();
    let other = after.handle(Caller::new("other"), request).await;
    assert_eq!(other.status(), 404);
    assert_eq!(echo(&after, "unknown").await, 404);
    assert_eq!(echo(&after, &session).await, 200);
}

#[tokio::test]
async fn an_ended_or_too_old_session_is_not_restored() {
    let stores: Arc<Stores> = Arc::default();
    let before = endpoint(&stores);
    let session = open(&before).await;
    let mut limits = HttpLimits::default();
    limits.max_session_age = Duration::ZERO;
    assert_eq!(echo(&endpoint_with(&stores, limits), &session).await, 404);
    assert!(stores.sessions.lock().unwrap().is_empty(), "it is removed");
    let session = open(&before).await;
    let with = [("mcp-session-id", session.as_str())];
    let after = endpoint(&stores);
    assert_eq!(send(&after, "DELETE", &with, "").await.status(), 204);
    assert_eq!(echo(&endpoint(&stores), &session).await, 404);
}

#[tokio::test]
async fn missed_events_come_after_a_restart() {
    let stores: Arc<Stores> = Arc::default();
    let mut limits = HttpLimits::default();
    limits.json_responses = false;
    let before = endpoint_with(&stores, limits.clone());
    let session = open(&before).await;
    let with = [("mcp-session-id", session.as_str())];
    let mut stream = send(&before, "POST", &with, COUNT).await.into_body();
    // The client gets only the first event, and loses its connection.
    let first = tokio::time::timeout(HANG, stream.frame()).await.unwrap();
    let first = first.unwrap().unwrap().into_data().unwrap();
    let first = String::from_utf8(first.to_vec()).unwrap();
    let id = first.lines().next().unwrap().strip_prefix("id: ").unwrap();
    let rest = stream.collect().await.unwrap().to_bytes();
    let rest = String::from_utf8(rest.to_vec()).unwrap();
    assert!(rest.contains("counted"), "{rest}");
    before.close();

    let after = endpoint_with(&stores, limits);
    let resume = [("mcp-session-id", session.as_str()), ("last-event-id", id)];
    let resumed = exchange(&after, "GET", &resume, "", COUNT).await;
    assert_eq!(resumed.headers()["content-type"], "text/event-stream");
    assert_eq!(text(resumed).await, rest);
    // Nothing is left after the last one, and a stream of this process has an id of its own.
    let last = rest
        .lines()
        .filter_map(|line| line.strip_prefix("id: "))
        .next_back();
    let resume = [
        ("mcp-session-id", session.as_str()),
        ("last-event-id", last.unwrap()),
    ];
    assert_eq!(send(&after, "GET", &resume, "").await.status(), 400);
    let again = text(send(&after, "POST", &with, COUNT).await).await;
    assert!(again.contains("counted") && !again.contains(&format!("id: {id}\n")));
    send(&after, "DELETE", &with, "").await;
    assert!(
        stores.events.lock().unwrap().is_empty(),
        "they end with the session"
    );
}
