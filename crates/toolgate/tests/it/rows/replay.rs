//! T38, the part that needs time and a person: an approved call that is sent again and again has its effect once.

use super::web::request;
use crate::serve::Scripted;
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::SeqCst},
};
use toolgate::{
    BoxFuture, Call, Catalog, Changes, Error, Interest, List, Outcome, Service,
    edge::{
        Front, ServerLimits,
        http::{Endpoint, HttpLimits},
    },
};
use toolgate_policy::{
    Access, Arguments, AtOnce, Cleaning, Deadline, Desk, DeskLimits, Memory, OutputSchema, Persons,
    Pins, Quota, Rate, Recorder, Route, Schemas, Size, Stop, Store, Then, Unobserved, ViaClient,
    pipeline,
};

/// Counts the effects.
struct Counting(Arc<Scripted>, AtomicUsize);

impl Service for Counting {
    fn list(&self, ask: List) -> BoxFuture<'_, Result<Catalog, Error>> {
        self.0.list(ask)
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        self.1.fetch_add(1, SeqCst);
        self.0.call(call)
    }

    fn changes(&self, want: Interest) -> BoxFuture<'_, Result<Changes, Error>> {
        self.0.changes(want)
    }
}

/// A gate that asks about every call, and takes the answer of the caller's own client.
fn gate() -> (Endpoint, Arc<Counting>) {
    let recorder = Arc::new(Recorder::log());
    let store: Arc<dyn Store> = Arc::new(Memory::new());
    let route = Route {
        pins: Pins::new(store.clone(), recorder.clone()),
        desk: Desk::new(recorder.clone(), store.clone(), DeskLimits::default()),
        persons: Persons::default(),
        recorder,
        observer: Arc::new(Unobserved),
        policy: "p1".into(),
        store,
        scopes: Default::default(),
        access: Access::default().otherwise(Then::Ask),
        rate: Rate::new(Vec::new(), Quota::per_minute(100_000)),
        arguments: Arguments::default(),
        asking: Default::default(),
        via_client: ViaClient::Always,
        stop: Stop::default(),
        at_once: AtOnce::new(1000, 1000),
        circuit_breaker: Default::default(),
        deadline: Deadline::default(),
        output_schema: OutputSchema::default(),
        schemas: Schemas::default(),
        cleaning: Cleaning::default(),
        size: Size::default(),
        waits: toolgate_policy::PerServer::default(),
        contents: toolgate_policy::Contents::default(),
    };
    let end = Arc::new(Counting(Scripted::new(), AtomicUsize::new(0)));
    let service = Arc::new(pipeline(&route, end.clone()));
    let front = Front::new(service, "gate", "1", ServerLimits::default()).unwrap();
    (Endpoint::new(Arc::new(front), HttpLimits::default()), end)
}

async fn call(endpoint: &Endpoint, answered: Option<&Value>) -> Value {
    let mut params = json!({"name": "echo", "arguments": {"n": 1}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}});
    if let Some(asked) = answered {
        params["requestState"] = asked["result"]["requestState"].clone();
        let key = asked["result"]["inputRequests"]
            .as_object()
            .unwrap()
            .keys()
            .next();
        let yes = json!({"action": "accept", "content": {"approve": true}});
        params["inputResponses"] = json!({key.unwrap(): yes});
    }
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "echo"),
    ];
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let body = body.to_string();
    request(endpoint, "a", "POST", &headers, &body).await.json()
}

#[tokio::test]
async fn t38_an_approved_call_that_is_replayed_has_one_effect() {
    let (mut replays, mut effects) = (0, 0);
    for at_once in [1, 50] {
        for _ in 0..10 {
            let (endpoint, end) = gate();
            let asked = call(&endpoint, None).await;
            assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
            for _ in 0..3 {
                let replayed = (0..at_once).map(|_| call(&endpoint, Some(&asked)));
                let answers = join_all(replayed).await;
                replays += answers.len();
            }
            let ran = end.1.load(SeqCst);
            assert_eq!(ran, 1, "each approval is spent once");
            effects += ran;
        }
    }
    println!("T38: {replays} replays of 20 approved calls, {effects} effects");
}
