//! T05: the same call gets the same verdict and leaves the same record, in every revision and on every transport, and
//! it is the verdict that the policy says.

use super::web::{self, Old};
use crate::serve::HANG;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use toolgate::{
    Call, Caller, Error, Json, Outcome, Service,
    core::{
        BoxFuture, Catalog, ChangeFilter, ChangeStream, Definition, Item, ItemKind, ListRequest,
        Origin, Output,
    },
    edge::{
        ProtocolServer, ServerLimits,
        http::{HttpEndpoint, HttpLimits},
        stdio,
    },
};
use toolgate_policy::{
    AccessRule, AccessRules, CallEnd, CallObserver, CallStage, CallView, GlobPattern, Policy,
    RuleAction,
};
use toolgate_testkit::{NEWEST_REVISION, REVISIONS, SeededRng};

const CALLERS: usize = 10;
const TOOLS: usize = 20;

/// Tools that take a whole number; a negative one fails.
struct Numbers(Catalog);

impl Numbers {
    fn new() -> Numbers {
        let tool = |n: usize| {
            let schema = json!({"type": "object", "properties": {"x": {"type": "integer"}},
                "required": ["x"], "additionalProperties": false});
            let def = json!({"name": format!("t{n}"), "inputSchema": schema});
            let origin = Origin {
                server: "s".into(),
                trusted: true,
            };
            let def = Definition::tool(Json::from_value(&def)).unwrap();
            Arc::new(Item::new(origin, def))
        };
        Numbers(Catalog::new((0..TOOLS).map(tool).collect()))
    }
}

impl Service for Numbers {
    fn list(&self, ask: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        let tools = (ask.kind == ItemKind::Tool).then(|| self.0.clone());
        Box::pin(async { Ok(tools.unwrap_or_default()) })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        let x = call.arguments().raw().get("x").and_then(|x| x.i64());
        Box::pin(async move {
            Ok(Outcome::Done(match x {
                Some(x) if x < 0 => Output::error("it is negative"),
                _ => Output::text("it ran"),
            }))
        })
    }

    fn changes(&self, _: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        let never = tokio::sync::watch::channel(Default::default()).1;
        Box::pin(async { Ok(ChangeStream::new(never)) })
    }
}

/// Audit records of a call, without ids, times and members that the edge adds.
#[derive(Clone, Debug, PartialEq)]
struct Recorded {
    caller: String,
    name: String,
    arguments: String,
    steps: Vec<(String, String, String)>,
    out: &'static str,
    public: Option<String>,
}

#[derive(Default)]
struct Watching {
    open: Mutex<BTreeMap<String, CallView>>,
    ended: Mutex<Vec<Recorded>>,
}

impl CallObserver for Watching {
    fn on_begin(&self, call: &CallView) {
        let mut open = self.open.lock().unwrap();
        open.insert(call.id.to_string(), call.clone());
    }

    fn on_stage(&self, _: &str, _: &CallStage) {}
    fn on_progress(&self, _: &str, _: &toolgate::core::Progress) {}

    fn on_end(&self, id: &str, end: &CallEnd) {
        let call = self.open.lock().unwrap().remove(id).unwrap();
        let steps = call.trail.steps().into_iter();
        let recorded = Recorded {
            caller: call.caller.name().to_owned(),
            name: call.name,
            arguments: call.arguments.canonical(),
            steps: steps
                .map(|s| (s.policy.into(), s.decision.into(), s.reason))
                .collect(),
            out: end.outcome,
            public: end.public.clone(),
        };
        self.ended.lock().unwrap().push(recorded);
    }
}

/// One way to a front: a revision on a transport, for one caller.
enum Way {
    Lines(Stdio, &'static str),
    Web(HttpEndpoint, String, Option<String>),
    Old(HttpEndpoint, String, Old),
}

struct Stdio {
    write: WriteHalf<DuplexStream>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
}

impl Stdio {
    #[allow(clippy::disallowed_methods, reason = "ends with its stream")]
    async fn open(front: &Arc<ProtocolServer>, caller: &str, revision: &str) -> Stdio {
        let (near, far) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(far);
        tokio::spawn(stdio::serve(
            front.clone(),
            Caller::new(caller),
            read,
            write,
        ));
        let (read, write) = tokio::io::split(near);
        let lines = BufReader::new(read).lines();
        let mut stdio = Stdio { write, lines };
        if revision != NEWEST_REVISION {
            stdio.ask(&web::hello(revision)).await;
        }
        stdio
    }

    async fn ask(&mut self, body: &str) -> Value {
        let line = format!("{body}\n");
        self.write.write_all(line.as_bytes()).await.unwrap();
        let next = tokio::time::timeout(HANG, self.lines.next_line()).await;
        serde_json::from_str(&next.unwrap().unwrap().unwrap()).unwrap()
    }
}

fn message(revision: &str, tool: &str, arguments: &Value) -> String {
    let mut params = json!({"name": tool, "arguments": arguments});
    if revision == NEWEST_REVISION {
        params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": NEWEST_REVISION,
            "io.modelcontextprotocol/clientCapabilities": {}});
    }
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()
}

impl Way {
    async fn all(front: &Arc<ProtocolServer>, endpoint: &HttpEndpoint, caller: &str) -> Vec<Way> {
        let mut ways = Vec::new();
        for revision in REVISIONS {
            let lines = Stdio::open(front, caller, revision).await;
            ways.push(Way::Lines(lines, revision));
            let web = |session| Way::Web(endpoint.clone(), caller.to_owned(), session);
            match revision {
                "2024-11-05" => {
                    let old = Old::open(endpoint, caller).await;
                    ways.push(Way::Old(endpoint.clone(), caller.to_owned(), old));
                }
                NEWEST_REVISION => ways.push(web(None)),
                _ => ways.push(web(Some(web::open(endpoint, caller, revision).await))),
            }
        }
        ways
    }

    async fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        match self {
            Way::Lines(lines, revision) => lines.ask(&message(revision, tool, arguments)).await,
            Way::Web(endpoint, caller, Some(session)) => {
                let header = [("mcp-session-id", session.as_str())];
                let body = message("", tool, arguments);
                web::request(endpoint, caller, "POST", &header, &body)
                    .await
                    .json()
            }
            Way::Web(endpoint, caller, None) => {
                let headers = [
                    ("mcp-protocol-version", NEWEST_REVISION),
                    ("mcp-method", "tools/call"),
                    ("mcp-name", tool),
                ];
                let body = message(NEWEST_REVISION, tool, arguments);
                web::request(endpoint, caller, "POST", &headers, &body)
                    .await
                    .json()
            }
            Way::Old(endpoint, caller, old) => {
                let body = message("", tool, arguments);
                assert_eq!(old.post(endpoint, caller, &body).await.status, 202);
                old.message().await
            }
        }
    }
}

/// The one word for what a client was told.
fn verdict(reply: &Value) -> &'static str {
    let text = match reply.get("error") {
        Some(error) => &error["message"],
        None => &reply["result"]["content"][0]["text"],
    };
    let text = text.as_str().unwrap_or_else(|| panic!("{reply}"));
    let failed = reply.get("error").is_some() || reply["result"]["isError"] == true;
    match text {
        "it ran" if !failed => "ran",
        "it is negative" if failed => "failed",
        _ if failed && text.starts_with("unknown") => "unknown",
        _ if failed && text.starts_with("invalid arguments") => "invalid",
        _ if failed && text.contains("requires the approval of a person") => "ask",
        _ => panic!("{reply}"),
    }
}

/// A policy that is a table: for each caller and tool one word, said by rules over exact names.
fn policy(dice: &mut SeededRng) -> (Vec<Vec<RuleAction>>, AccessRules) {
    let table: Vec<Vec<RuleAction>> = (0..CALLERS)
        .map(|_| {
            let word = |_| {
                [
                    RuleAction::Allow,
                    RuleAction::Allow,
                    RuleAction::Ask,
                    RuleAction::Deny,
                ][dice.below(4)]
            };
            (0..TOOLS).map(word).collect()
        })
        .collect();
    let mut rules = Vec::new();
    for (caller, words) in table.iter().enumerate() {
        for then in [RuleAction::Allow, RuleAction::Ask, RuleAction::Deny] {
            let named = words.iter().enumerate().filter(|(_, word)| **word == then);
            let tools: Vec<GlobPattern> = named
                .map(|(n, _)| GlobPattern::new(format!("s.t{n}")))
                .collect();
            let mut rule = AccessRule::new(format!("rule {}", rules.len()), then, tools);
            rule.callers = [format!("c{caller}")].into_iter().collect();
            rules.push(rule);
        }
    }
    (table, AccessRules::new(rules))
}

fn arguments(dice: &mut SeededRng) -> (Value, &'static str) {
    let x = dice.below(2_000) as i64 - 1_000;
    match dice.below(8) {
        0 => (json!({"x": x.to_string()}), "invalid"),
        1 => (json!({}), "invalid"),
        2 => (json!({"x": x, "y": 1}), "invalid"),
        3 => (json!({"x": [x]}), "invalid"),
        4 => (json!({"x": i64::MAX}), "ran"),
        _ if x < 0 => (json!({"x": x}), "failed"),
        _ => (json!({"x": x}), "ran"),
    }
}

#[tokio::test]
async fn t05_one_call_has_one_verdict_and_one_record_in_every_era() {
    const CASES: usize = 2_000;
    let mut dice = SeededRng::new(0x9e37_79b9_7f4a_7c15);
    let (table, access) = policy(&mut dice);
    let watching = Arc::new(Watching::default());
    let mut standard = Policy::default();
    standard.access = access;
    standard.observer = watching.clone();
    let service = Arc::new(standard.over(Arc::new(Numbers::new())));
    let front = ProtocolServer::new(service, "s", "1", ServerLimits::default()).unwrap();
    let front = Arc::new(front);
    let endpoint = HttpEndpoint::new(front.clone(), HttpLimits::default());
    let mut ways = Vec::new();
    for caller in 0..CALLERS {
        ways.push(Way::all(&front, &endpoint, &format!("c{caller}")).await);
    }
    let (mut counts, mut calls) = (BTreeMap::new(), 0);
    for _ in 0..CASES {
        let (caller, tool) = (dice.below(CALLERS), dice.below(TOOLS + 2));
        let (arguments, fits) = arguments(&mut dice);
        let expected = match table[caller].get(tool) {
            None | Some(RuleAction::Deny) => "unknown",
            Some(_) if fits == "invalid" => "invalid",
            Some(RuleAction::Ask) => "ask",
            Some(RuleAction::Allow) => fits,
        };
        let name = format!("t{tool}");
        for way in &mut ways[caller] {
            let reply = way.call(&name, &arguments).await;
            assert_eq!(
                verdict(&reply),
                expected,
                "c{caller} {name} {arguments}: {reply}"
            );
            calls += 1;
        }
        let records = std::mem::take(&mut *watching.ended.lock().unwrap());
        assert_eq!(records.len(), ways[caller].len(), "one record each");
        for record in &records {
            assert_eq!(record, &records[0]);
            assert_eq!(
                (&*record.caller, &*record.name),
                (&*format!("c{caller}"), &*name)
            );
            assert!(tool >= TOOLS || !record.steps.is_empty(), "{record:?}");
        }
        *counts.entry(expected).or_insert(0) += 1;
    }
    let each = ways[0].len();
    println!(
        "T05: {CASES} calls on {each} ways each ({calls} in all), one verdict and one record each: {counts:?}"
    );
    assert!(counts.len() == 5 && counts.values().all(|n| *n > 50) && each == 10);
}
