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
    Call, Error, Outcome, Service,
    core::{BoxFuture, Catalog, ChangeFilter, ChangeStream, ListRequest},
    edge::{
        ProtocolServer, ServerLimits,
        http::{HttpEndpoint, HttpLimits},
    },
};
use toolgate_policy::{
    AccessRules, ApprovalLimits, ApprovalService, AuditRecorder, ClientApprovals, ConcurrencyLimit,
    MemoryStateStore, OperatorPolicy, Pins, Policy, RateLimiter, RateQuota, RuleAction, StateStore,
};

/// Counts the effects.
struct Counting(Arc<Scripted>, AtomicUsize);

impl Service for Counting {
    fn list(&self, ask: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        self.0.list(ask)
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        self.1.fetch_add(1, SeqCst);
        self.0.call(call)
    }

    fn changes(&self, want: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        self.0.changes(want)
    }
}

/// A gate that asks about every call, and takes the answer of the caller's own client.
fn gate() -> (HttpEndpoint, Arc<Counting>) {
    let recorder = Arc::new(AuditRecorder::log());
    let store: Arc<dyn StateStore> = Arc::new(MemoryStateStore::new());
    let approvals =
        ApprovalService::new(recorder.clone(), store.clone(), ApprovalLimits::default());
    let mut operator = OperatorPolicy::new(approvals);
    operator.via_client = ClientApprovals::Always;
    let pins = Pins::new(store, recorder.clone());
    let mut route = Policy::for_gateway(recorder, operator, pins);
    route.policy_id = "p1".into();
    route.access = AccessRules::default().default_action(RuleAction::Ask);
    route.rate = RateLimiter::new(Vec::new(), RateQuota::per_minute(100_000));
    route.concurrency = ConcurrencyLimit::new(1000, 1000);
    let end = Arc::new(Counting(Scripted::new(), AtomicUsize::new(0)));
    let service = Arc::new(route.over(end.clone()));
    let front = ProtocolServer::new(service, "gate", "1", ServerLimits::default()).unwrap();
    (
        HttpEndpoint::new(Arc::new(front), HttpLimits::default()),
        end,
    )
}

async fn call(endpoint: &HttpEndpoint, answered: Option<&Value>) -> Value {
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
