//! A task is its call: the same verdict, the same cleaning, and the place among the calls that run until it is over.

use super::{
    planted::holds,
    planter::{HIDDEN, Planter},
    run,
    verdicts::{TOOLS, access, verdict},
};
use crate::{
    handlers::peer::{NEWEST_REVISION, Peer},
    tasks::{knows, limits},
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::sync::{Notify, watch};
use toolgate::{
    Call, Error, Json, Outcome, Service,
    core::{
        BoxFuture, Catalog, ChangeCounters, ChangeFilter, ChangeStream, Definition, Item, ItemKind,
        ListRequest, Origin, Output, ToolResult,
    },
    edge::{self, ServerCapabilities, ServerLimits, TaskOffer},
    handlers::{HandlerExit, Server, TaskSupport, Tool},
};
use toolgate_policy::{AccessRules, ConcurrencyLimit, ConcurrencyLimits, Policy};

const CORE: &str = "2025-11-25";

fn at_once() -> ServerLimits {
    let mut at_once = ServerLimits::default();
    at_once.tasks = limits();
    at_once
}

/// Calls a tool as a task and follows it to its end: a reply as whoever waits for the call has it.
async fn as_task(peer: &mut Peer, revision: &str, mut params: Value) -> Value {
    if revision == CORE {
        params["task"] = json!({});
    }
    let mut reply = peer.request("tools/call", params).await;
    let id = match revision {
        CORE => &reply["result"]["task"]["taskId"],
        _ => &reply["result"]["taskId"],
    };
    let Some(id) = id.as_str().map(str::to_owned) else {
        return reply;
    };
    if revision == CORE {
        return peer.request("tasks/result", json!({"taskId": id})).await;
    }
    loop {
        reply = peer.request("tasks/get", json!({"taskId": id})).await;
        let task = reply["result"].take();
        match task["status"].as_str() {
            Some("completed") => return json!({"result": task["result"]}),
            Some("failed") => return json!({"error": task["error"]}),
            Some("working") => tokio::time::sleep(Duration::from_millis(1)).await,
            other => panic!("{other:?}: {task}"),
        }
    }
}

fn governed(access: AccessRules) -> Arc<edge::ProtocolServer> {
    let schema = json!({"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": false});
    let mut server = Server::new("s", "1").rule(access).limits(at_once());
    for name in TOOLS {
        let tool = Tool::dynamic(name, schema.clone(), move |_, _| async move {
            match name {
                "bb" => Err(HandlerExit::new("it failed")),
                _ => Ok(name),
            }
        });
        server = server.tool(tool.task(TaskSupport::Optional));
    }
    server.build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_task_has_the_verdict_of_its_call(access in access()) {
        run(async {
            let server = governed(access);
            for revision in [CORE, NEWEST_REVISION] {
                let mut plain = Peer::open(&server, revision, json!({})).await;
                let mut tasks = Peer::open(&server, revision, knows_only()).await;
                for name in TOOLS.into_iter().chain(["zz"]) {
                    for arguments in [json!({"x": 1}), json!({"x": 2}), json!({"x": "1"}), json!({})] {
                        let params = json!({"name": name, "arguments": arguments});
                        let call = plain.request("tools/call", params.clone()).await;
                        let task = as_task(&mut tasks, revision, params.clone()).await;
                        assert_eq!(verdict(&task), verdict(&call), "{revision} {params}");
                    }
                }
            }
        });
    }
}

/// The extension, and nobody who could be asked.
fn knows_only() -> Value {
    json!({"extensions": knows()["extensions"]})
}

/// A service whose every call says that it is a task.
struct Begins(Arc<dyn Service>);

impl Service for Begins {
    fn list(&self, ask: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        self.0.list(ask)
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        let _known = call.task_control.start_task();
        self.0.call(call)
    }

    fn changes(&self, want: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        self.0.changes(want)
    }
}

/// Serves it, and every call may become a task.
fn serve(end: Arc<dyn Service>) -> Arc<edge::ProtocolServer> {
    let server = edge::ProtocolServer::new(end, "s", "1", at_once()).unwrap();
    let mut offers = ServerCapabilities::default();
    offers.tasks = TaskOffer::Every;
    Arc::new(server.with_capabilities(offers))
}

fn planted(standard: bool, first: usize) -> Arc<edge::ProtocolServer> {
    let end = Arc::new(Begins(Planter::new(first)));
    match standard {
        true => serve(Arc::new(Policy::default().over(end))),
        false => serve(end),
    }
}

/// All that is heard of tasks: their states, their results and errors, and what a session or subscription is told.
async fn heard_of_tasks(server: &Arc<edge::ProtocolServer>, revision: &'static str) -> Vec<Value> {
    let mut peer = Peer::open(server, revision, knows_only()).await;
    for name in ["done", "fails", "broken", "invalid"] {
        let mut params = json!({"name": name, "arguments": {"x": "y"}});
        params["_meta"] = json!({"progressToken": name});
        as_task(&mut peer, revision, params).await;
    }
    if revision == CORE {
        peer.result("tasks/list", json!({})).await;
    }
    peer.heard()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn nothing_hidden_comes_by_a_task(first in 0..HIDDEN.len()) {
        run(async {
            let server = planted(true, first);
            for revision in [CORE, NEWEST_REVISION] {
                let heard = heard_of_tasks(&server, revision).await;
                let all: String = heard.iter().map(Value::to_string).collect();
                for word in ["block", "part", "broken", "invalid", "progress", "taskId"] {
                    assert!(all.contains(word), "{revision}: nobody said {word}");
                }
                for message in &heard {
                    assert!(!holds(message), "{revision}: {message}");
                }
            }
        });
    }
}

/// The planter does plant by tasks: without the duties it comes through.
#[test]
fn without_duties_it_would_come_by_a_task() {
    run(async {
        for revision in [CORE, NEWEST_REVISION] {
            let heard = heard_of_tasks(&planted(false, 0), revision).await;
            assert!(heard.iter().filter(|m| holds(m)).count() > 3, "{revision}");
        }
    });
}

/// A tool whose calls run until somebody lets them go, each by its number.
#[derive(Default)]
struct Jobs {
    running: watch::Sender<BTreeMap<i64, Arc<Notify>>>,
    most: AtomicUsize,
}

impl Jobs {
    async fn are(&self, count: usize) {
        let mut running = self.running.subscribe();
        let running = running.wait_for(|running| running.len() == count);
        let waited = tokio::time::timeout(Duration::from_secs(20), running).await;
        waited.expect("in time").unwrap();
    }
}

struct Gone<'a>(&'a Jobs, i64);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        let gone = |running: &mut BTreeMap<_, _>| drop(running.remove(&self.1));
        self.0.running.send_modify(gone);
    }
}

impl Service for Jobs {
    fn list(&self, ask: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        let origin = Origin {
            server: "jobs".into(),
            trusted: true,
        };
        let def = json!({"name": "job", "inputSchema": {"type": "object"}});
        let def = Definition::read(ItemKind::Tool, Json::from_value(&def)).unwrap();
        let items = match ask.kind {
            ItemKind::Tool => vec![Arc::new(Item::new(origin, def))],
            _ => Vec::new(),
        };
        Box::pin(async { Ok(Catalog::with_missing_servers(items, Vec::new(), None)) })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move {
            let number = call.arguments().value()["n"].as_i64().unwrap();
            let go = Arc::new(Notify::new());
            self.running.send_modify(|running| {
                running.insert(number, go.clone());
                self.most.fetch_max(running.len(), Relaxed);
            });
            let _running = Gone(self, number);
            go.notified().await;
            Ok(Outcome::Done(Output::Tool(ToolResult::text("done"))))
        })
    }

    fn changes(&self, _: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        Box::pin(async {
            Ok(ChangeStream::new(
                watch::channel(ChangeCounters::default()).1,
            ))
        })
    }
}

fn jobs(most: usize) -> (Arc<edge::ProtocolServer>, Arc<Jobs>) {
    let jobs = Arc::new(Jobs::default());
    let mut duties = Policy::default();
    let mut limits = ConcurrencyLimits::default();
    limits.per_caller = most;
    limits.queue_timeout = Duration::from_secs(600);
    duties.concurrency = ConcurrencyLimit::with_queue(limits);
    (serve(Arc::new(duties.over(jobs.clone()))), jobs)
}

/// End of a running task.
#[derive(Clone, Copy, Debug)]
enum How {
    Done,
    Cancelled,
    Stopped,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn a_task_has_its_place_until_it_is_over(
        most in 1..4usize,
        modern in any::<bool>(),
        ends in prop::collection::vec(prop::sample::select(vec![How::Done, How::Cancelled, How::Stopped]), 1..8),
    ) {
        run(async {
            let revision = if modern { NEWEST_REVISION } else { CORE };
            let (server, jobs) = jobs(most);
            let mut peer = Peer::open(&server, revision, knows_only()).await;
            let mut ids = BTreeMap::new();
            for n in 0..ends.len() as i64 {
                let mut params = json!({"name": "job", "arguments": {"n": n}});
                if !modern {
                    params["task"] = json!({});
                }
                let created = peer.result("tools/call", params).await;
                let task = if modern { &created } else { &created["task"] };
                let call = server.tasks().into_iter().map(|task| task.call);
                let known: Vec<_> = ids.values().map(|(_, call)| Arc::clone(call)).collect();
                let call = call.into_iter().find(|call| !known.contains(call)).unwrap();
                ids.insert(n, (task["taskId"].clone(), call));
            }
            for (over, how) in ends.iter().enumerate() {
                jobs.are(most.min(ends.len() - over)).await;
                let (n, go) = jobs.running.borrow().first_key_value().map(|(n, go)| (*n, go.clone())).unwrap();
                let (id, call) = &ids[&n];
                match how {
                    How::Done => go.notify_one(),
                    How::Cancelled => drop(peer.result("tasks/cancel", json!({"taskId": id})).await),
                    How::Stopped => assert!(server.cancel_task(call)),
                }
                let over = async {
                    while peer.result("tasks/get", json!({"taskId": id})).await["status"] == "working" {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                };
                tokio::time::timeout(Duration::from_secs(20), over).await.expect("in time");
            }
            jobs.are(0).await;
            assert!(jobs.most.load(Relaxed) <= most, "more ran than have a place");
        });
    }
}
