//! Messages of a client to a server edge, and the expected replies.

mod batch;
pub(crate) mod desk;
mod facts;
mod handshake;
pub(crate) mod http;
mod ids;
mod pings;
mod protected;
mod restore;
mod resume;
#[cfg(unix)]
mod shutdown;
mod sse_2024;
mod stdio;
mod transcripts;
mod transports;

use std::sync::Arc;
use toolgate::{
    Call, Content, Error, Json, Outcome, Service,
    core::{
        BoxFuture, Catalog, ChangeCounters, ChangeFilter, ChangeStream, Definition, ErrorKind,
        InputRequest, InputRequestKind, InputRequests, Item, ItemKind, ListRequest, Origin, Output,
        Progress, ReporterEvent, ToolResult,
    },
    edge::{ProtocolServer, Rejection, RejectionLog, ServerLimits},
};

/// Bound on a hang, not a measurement.
pub(crate) const HANG: std::time::Duration = std::time::Duration::from_secs(10);

/// A service with a tool for every kind of outcome.
pub(crate) struct Scripted {
    catalog: Catalog,
    stale: tokio::sync::watch::Sender<ChangeCounters>,
    /// Number of running calls of `forever`.
    pub(crate) running: Arc<std::sync::atomic::AtomicUsize>,
}

impl Scripted {
    pub(crate) fn new() -> Arc<Scripted> {
        let tool = |name: &str| {
            tool(&serde_json::json!({"name": name, "inputSchema": {"type": "object"}}))
        };
        let names = [
            "echo", "count", "ask", "forever", "invalid", "busy", "panic",
        ];
        let items = names.map(tool).to_vec();
        Arc::new(Scripted {
            catalog: Catalog::new(items),
            stale: Default::default(),
            running: Arc::default(),
        })
    }

    /// Changes the list of tools: one more has another description each time.
    pub(crate) fn change(&self) {
        self.stale.send_modify(|stale| stale.tools += 1);
    }
}

fn tool(definition: &serde_json::Value) -> Arc<Item> {
    let origin = Origin {
        server: "s".into(),
        trusted: true,
    };
    let definition = Definition::tool(Json::from_value(definition)).unwrap();
    Arc::new(Item::new(origin, definition))
}

pub(crate) fn server(service: Arc<dyn Service>) -> Arc<ProtocolServer> {
    Arc::new(ProtocolServer::new(service, "test", "1", ServerLimits::default()).unwrap())
}

/// Remembers which calls the edge refused.
#[derive(Default)]
pub(crate) struct Seen(std::sync::Mutex<Vec<Rejection>>);

impl Seen {
    /// Transport and tool of each.
    pub(crate) fn calls(&self) -> Vec<String> {
        let seen = self.0.lock().unwrap();
        seen.iter()
            .map(|r| format!("{} {}", r.transport, r.tool.as_deref().unwrap_or("?")))
            .collect()
    }
}

impl RejectionLog for Seen {
    fn rejected(&self, refused: Rejection) -> BoxFuture<'_, ()> {
        self.0.lock().unwrap().push(refused);
        Box::pin(async {})
    }
}

fn changed(times: u64) -> Arc<Item> {
    let says = format!("changed {times} times");
    tool(
        &serde_json::json!({"name": "changed", "description": says, "inputSchema": {"type": "object"}}),
    )
}

struct Counted(Arc<std::sync::atomic::AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
    }
}

impl Service for Scripted {
    fn list(&self, ask: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        let changes = self.stale.borrow().tools;
        let tools = (ask.kind == ItemKind::Tool).then(|| match changes {
            0 => self.catalog.clone(),
            _ => Catalog::new([self.catalog.items(), &[changed(changes)]].concat()),
        });
        Box::pin(async { Ok(tools.unwrap_or_default()) })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move {
            match call.name() {
                "echo" => {
                    let text = call.arguments().raw().as_str().to_owned();
                    Ok(Outcome::Done(Output::Tool(ToolResult {
                        content: vec![Content::text(&text)],
                        ..ToolResult::default()
                    })))
                }
                "count" => {
                    for n in [1.0, 2.0, 1.5, 3.0] {
                        let progress = Progress {
                            progress: n,
                            total: Some(3.0),
                            message: Some(format!("step {n}")),
                        };
                        call.reporter.send(ReporterEvent::Progress(progress));
                    }
                    Ok(Outcome::Done(Output::text("counted")))
                }
                "ask" => Ok(ask(&call)),
                "forever" => {
                    self.running
                        .fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    let _counted = Counted(self.running.clone());
                    std::future::pending().await
                }
                "invalid" => {
                    let problem =
                        toolgate::core::SchemaViolation::new("/a", "an integer", "a string");
                    Err(Error::new(
                        ErrorKind::InvalidArguments(vec![problem]),
                        "invalid arguments: /a: expected an integer, got a string",
                    ))
                }
                "busy" => Err(Error::new(
                    ErrorKind::Busy(None),
                    "rate limit: again in 12 s",
                )),
                _ => Err(call.unknown_item_error()),
            }
        })
    }

    fn changes(&self, _: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        Box::pin(async { Ok(ChangeStream::new(self.stale.subscribe())) })
    }
}

fn ask(call: &Call) -> Outcome {
    if let Some(answer) = call.round.answer("q") {
        let state = call
            .round
            .slots
            .get("upstream")
            .cloned()
            .unwrap_or_default();
        return Outcome::Done(Output::text(&format!("{} {state}", answer.as_str())));
    }
    let form = serde_json::json!({"message": "who?", "requestedSchema": {"type": "object", "properties": {}}});
    let ask = InputRequest {
        key: "q".into(),
        kind: InputRequestKind::Elicit(Json::from_value(&form)),
    };
    let mut questions = InputRequests::default();
    questions.requests.push(ask);
    questions.slots.insert("upstream".into(), "kept".into());
    Outcome::InputRequired(questions)
}
