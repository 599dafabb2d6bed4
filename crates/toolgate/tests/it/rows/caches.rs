//! T40: what one caller may see is not kept for another, whatever the server says of its lists, and not beyond the policy
//! by which it was seen.

use super::web::request;
use crate::remote::peer::{Peer, modern, tool};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;
use toolgate::{
    Call, Caller, Error, Json, Outcome, Service,
    aggregate::{Aggregate, AggregateMember},
    core::{
        BoxFuture, CacheHint, Catalog, ChangeCounters, ChangeFilter, ChangeStream, Definition,
        Item, ItemKind, ListRequest, Op, Origin, Output, Pipeline, ReadResult,
    },
    edge::{
        ProtocolServer, ServerLimits,
        http::{HttpEndpoint, HttpLimits},
    },
};
use toolgate_policy::{AccessRule, AccessRules, GlobPattern, RuleAction};
use toolgate_testkit::SeededRng;

const CALLERS: usize = 50;
const TOOLS: usize = 200;

/// Returns the number of lookups; 100,000 for the published figure.
fn lookups() -> usize {
    let set = std::env::var("TOOLGATE_T40").ok();
    set.and_then(|n| n.parse().ok()).unwrap_or(20_000)
}

/// Visibility table: a row for each caller.
type Table = Vec<Vec<bool>>;

/// Passes on to the pipeline of the moment.
struct Reloaded(Mutex<Arc<Pipeline>>);

impl Reloaded {
    fn now(&self) -> Arc<Pipeline> {
        self.0.lock().unwrap().clone()
    }
}

impl Service for Reloaded {
    fn list(&self, ask: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        let now = self.now();
        Box::pin(async move { now.list(ask).await })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        let now = self.now();
        Box::pin(async move { now.call(call).await })
    }

    fn changes(&self, want: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        let now = self.now();
        Box::pin(async move { now.changes(want).await })
    }
}

/// A random policy, as a table and as rules.
fn policy(dice: &mut SeededRng) -> (Table, AccessRules) {
    let row = |dice: &mut SeededRng| (0..TOOLS).map(|_| dice.below(2) == 0).collect();
    let table: Table = (0..CALLERS).map(|_| row(dice)).collect();
    let rules = table.iter().enumerate().map(|(caller, row)| {
        let hidden = row.iter().enumerate().filter(|(_, seen)| !**seen);
        let mut rule = AccessRule::new(
            "hidden",
            RuleAction::Deny,
            hidden
                .map(|(n, _)| GlobPattern::new(format!("files.t{n}")))
                .collect(),
        );
        rule.callers = [format!("c{caller}")].into_iter().collect();
        rule
    });
    let access = AccessRules::new(rules.collect()).default_action(RuleAction::Allow);
    (table, access)
}

/// The server: its list is public, it says, and good for an hour.
async fn serve(mut peer: Peer) {
    loop {
        let line = peer.line().await;
        let Ok(asked) = serde_json::from_str::<Value>(&line) else {
            return;
        };
        if asked["method"] == "tools/list" {
            let from = asked["params"]["cursor"]
                .as_str()
                .map_or(0, |c| c.parse().unwrap());
            let page: Vec<Value> = (from..from + 50).map(|n| tool(&format!("t{n}"))).collect();
            let mut result = json!({"resultType": "complete", "tools": page,
                "ttlMs": 3_600_000, "cacheScope": "public"});
            if from + 50 < TOOLS {
                result["nextCursor"] = json!((from + 50).to_string());
            }
            peer.reply(&asked, result).await;
        } else if asked["method"] == "tools/call" {
            let done = json!({"resultType": "complete", "content": []});
            peer.reply(&asked, done).await;
        }
    }
}

/// One request of 2026-07-28.
async fn ask(endpoint: &HttpEndpoint, caller: usize, method: &str, mut params: Value) -> Value {
    let name = params["name"].as_str().map(str::to_owned);
    params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let mut headers = vec![
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", method),
    ];
    headers.extend(name.as_deref().map(|name| ("mcp-name", name)));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let body = body.to_string();
    let caller = format!("c{caller}");
    let answer = request(endpoint, &caller, "POST", &headers, &body);
    answer.await.json()
}

#[tokio::test]
#[allow(clippy::disallowed_methods, reason = "the server ends with the test")]
async fn t40_no_caller_sees_what_another_may() {
    let mut dice = SeededRng::new(0x9e37_79b9_7f4a_7c15);
    let (remote, peer) = modern(json!({"tools": {}})).await;
    tokio::spawn(serve(peer));
    let remote: Arc<dyn Service> = Arc::new(remote);
    let over = |access| {
        Arc::new(
            Pipeline::new()
                .resolve()
                .rule(access)
                .service(remote.clone()),
        )
    };
    let (mut table, access) = policy(&mut dice);
    let reloaded = Arc::new(Reloaded(Mutex::new(over(access))));
    let mut limits = ServerLimits::default();
    limits.page_items = 30;
    let front = ProtocolServer::new(reloaded.clone(), "gate", "1", limits).unwrap();
    let endpoint = HttpEndpoint::new(Arc::new(front), HttpLimits::default());
    let (mut lookups, mut reloads, mut pages, mut calls) = (0, 0, 0, 0);
    while lookups < self::lookups() {
        let caller = dice.below(CALLERS);
        let mut cursor = Value::Null;
        loop {
            // A new policy comes between any two pages.
            if dice.below(40) == 0 {
                let access;
                (table, access) = policy(&mut dice);
                *reloaded.0.lock().unwrap() = over(access);
                reloads += 1;
            }
            let params = match &cursor {
                Value::Null => json!({}),
                cursor => json!({"cursor": cursor}),
            };
            let reply = ask(&endpoint, caller, "tools/list", params).await;
            let result = &reply["result"];
            let Some(tools) = result["tools"].as_array() else {
                // The place of the cursor was hidden meanwhile.
                assert_eq!(reply["error"]["code"], -32602, "{reply}");
                break;
            };
            assert_eq!(result["cacheScope"], "private", "{result}");
            for tool in tools {
                let n: usize = tool["name"].as_str().unwrap()[1..].parse().unwrap();
                assert!(table[caller][n], "c{caller} sees t{n}");
            }
            lookups += tools.len();
            pages += 1;
            cursor = result["nextCursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        let n = dice.below(TOOLS);
        let params = json!({"name": format!("t{n}"), "arguments": {}});
        let reply = ask(&endpoint, caller, "tools/call", params).await;
        let unknown = reply["error"]["message"] == format!("unknown tool: t{n}");
        assert_eq!(unknown, !table[caller][n], "c{caller} t{n}: {reply}");
        (lookups, calls) = (lookups + 1, calls + 1);
    }
    println!(
        "T40: {lookups} lookups of {CALLERS} callers in {pages} pages and {calls} calls over {reloads} policies, 0 seen that was hidden"
    );
    assert!(reloads > 5);
}

/// A resource that is public, its server says.
struct PublicResource;

impl Service for PublicResource {
    fn list(&self, ask: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        let json = Json::from_value(&json!({"uri": "t://a", "name": "a"}));
        let def = Definition::read(ItemKind::Resource, json).unwrap();
        let origin = Origin {
            server: "files".into(),
            trusted: true,
        };
        let item = Arc::new(Item::new(origin, def));
        let items = (ask.kind == ItemKind::Resource).then_some(item);
        Box::pin(async move { Ok(Catalog::new(items.into_iter().collect())) })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        let contents = json!({"uri": call.name(), "text": "x"});
        let read = ReadResult {
            contents: vec![Json::from_value(&contents)],
            hint: CacheHint {
                ttl_ms: 60_000,
                public: true,
            },
            meta: None,
        };
        Box::pin(async { Ok(Outcome::Done(Output::Resource(read))) })
    }

    fn changes(&self, _: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        let never = watch::Sender::<ChangeCounters>::default();
        Box::pin(async move { Ok(ChangeStream::new(never.subscribe())) })
    }
}

/// Returns the hint of the resource as a caller reads it through a service.
async fn hint_of(service: &dyn Service) -> CacheHint {
    let uri = Json::from_value(&json!({"uri": "t://a"}));
    let call = Call::new("c", Caller::new("c1"), Op::Resource, "t://a", uri);
    match service.call(call).await {
        Ok(Outcome::Done(Output::Resource(read))) => read.hint,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn t40_contents_that_rules_decide_per_caller_are_private() {
    let rule = |action| AccessRule::new("r", action, vec![GlobPattern::new("files.secret")]);
    for (action, public) in [(RuleAction::Deny, false), (RuleAction::Allow, true)] {
        let access = AccessRules::new(vec![rule(action)]).default_action(RuleAction::Allow);
        let pipeline = Pipeline::new().resolve().rule(access);
        let hint = hint_of(&pipeline.service(Arc::new(PublicResource))).await;
        assert_eq!((hint.ttl_ms, hint.public), (60_000, public));
    }
}

#[tokio::test]
async fn t40_contents_of_joined_servers_are_private() {
    let member = AggregateMember {
        id: "files".into(),
        prefix: "files".to_owned(),
        service: Arc::new(PublicResource),
    };
    let hint = hint_of(&Aggregate::new(vec![member]).unwrap()).await;
    assert_eq!((hint.ttl_ms, hint.public), (60_000, false));
}
