//! Test fixture: a pipeline over a scripted service, with a real journal in a temporary folder.

use serde_json::{Value, json};
use std::{
    future::Future,
    path::PathBuf,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};
use toolgate_core::{
    BoxFuture, Call, Caller, Catalog, ChangeFilter, ChangeStream, Definition, Error,
    InputRequestKind, InputRequests, Item, Json, ListRequest, Origin, Outcome, Output, Pipeline,
    Progress, Service,
};
use toolgate_journal::{AuditJournal, JournalOptions, read};
use toolgate_policy::{
    AccessRule, AccessRules, ApprovalLimits, ApprovalService, AuditRecorder, CallEnd, CallObserver,
    CallStage, CallView, ChangedDefinitionAction, ConcurrencyLimit, GlobPattern, OperatorPolicy,
    PerServer, Pins, Policy, RateLimiter, RateQuota, RuleAction, StateStore,
};

/// Handler of a call in the scripted service.
pub(crate) type Handler =
    Box<dyn Fn(Call) -> BoxFuture<'static, Result<Outcome, Error>> + Send + Sync>;

/// The service at the end: counts what reaches it.
pub(crate) struct Script {
    pub(crate) catalog: Mutex<Catalog>,
    handler: Mutex<Arc<Handler>>,
    pub(crate) reached: Mutex<Vec<String>>,
}

impl Service for Script {
    fn list(&self, ask: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        let catalog = self.catalog.lock().unwrap().clone();
        let items = catalog.items().iter().filter(|i| i.kind() == ask.kind);
        let catalog = match items.clone().count() == catalog.items().len() {
            // While nothing changes it is the same object.
            true => catalog,
            false => catalog.with_items(items.cloned().collect()),
        };
        Box::pin(async { Ok(catalog) })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        self.reached
            .lock()
            .unwrap()
            .push(call.arguments().raw().as_str().to_owned());
        let handler = self.handler.lock().unwrap().clone();
        handler(call)
    }

    /// It tells nothing.
    fn changes(&self, _: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        Box::pin(async {
            Ok(ChangeStream::new(
                tokio::sync::watch::Sender::default().subscribe(),
            ))
        })
    }
}

/// Counts the calls that began and did not end.
#[derive(Default)]
pub(crate) struct Watcher {
    pub(crate) open: Mutex<Vec<String>>,
    pub(crate) ends: Mutex<Vec<CallEnd>>,
    pub(crate) running: AtomicU32,
    pub(crate) progress: AtomicU32,
}

impl CallObserver for Watcher {
    fn on_begin(&self, call: &CallView) {
        self.open.lock().unwrap().push(call.id.to_string());
    }

    fn on_stage(&self, _: &str, stage: &CallStage) {
        assert!(matches!(stage, CallStage::Running(_)));
        self.running.fetch_add(1, Ordering::SeqCst);
    }

    fn on_progress(&self, _: &str, _: &Progress) {
        self.progress.fetch_add(1, Ordering::SeqCst);
    }

    fn on_end(&self, id: &str, end: &CallEnd) {
        let mut open = self.open.lock().unwrap();
        let at = open
            .iter()
            .position(|o| o == id)
            .expect("an end has a beginning");
        open.remove(at);
        self.ends.lock().unwrap().push(end.clone());
    }
}

pub(crate) struct PipelineFixture {
    pub(crate) dir: PathBuf,
    pub(crate) route: Policy,
    pub(crate) store: Arc<dyn StateStore>,
    pub(crate) script: Arc<Script>,
    pub(crate) watcher: Arc<Watcher>,
    pub(crate) caller: Caller,
    names: AtomicU32,
}

/// Builder of the fixture.
pub(crate) struct Making {
    pub(crate) options: JournalOptions,
    pub(crate) recorded: bool,
    pub(crate) desk: ApprovalLimits,
    pub(crate) rules: Vec<AccessRule>,
    pub(crate) default: RateQuota,
}

impl PipelineFixture {
    /// A server `demo` that is trusted: `look` (read-only), `add` (changes, harmless), `wipe` (destroys).
    pub(crate) fn new() -> PipelineFixture {
        PipelineFixture::with(|_| {})
    }

    /// The same without a journal, for tests that make very many.
    pub(crate) fn unrecorded() -> PipelineFixture {
        PipelineFixture::with(|making| making.recorded = false)
    }

    pub(crate) fn with(set: impl FnOnce(&mut Making)) -> PipelineFixture {
        static WORLDS: AtomicU32 = AtomicU32::new(0);
        let n = WORLDS.fetch_add(1, Ordering::SeqCst);
        let dir = std::env::temp_dir().join(format!("toolgate-policy-{}-{n}", std::process::id()));
        let mut making = Making {
            options: JournalOptions::new(&dir),
            recorded: true,
            desk: ApprovalLimits::default(),
            rules: Vec::new(),
            default: RateQuota::per_minute(1000),
        };
        set(&mut making);
        let recorder = Arc::new(match making.recorded {
            true => AuditRecorder::new(Arc::new(AuditJournal::open(making.options).unwrap())),
            false => AuditRecorder::log(),
        });
        let watcher = Arc::new(Watcher::default());
        let store: Arc<dyn StateStore> = Arc::new(toolgate_policy::MemoryStateStore::new());
        // Tests of other parts change their tools as they like.
        let pins = Pins::new(store.clone(), recorder.clone())
            .on_change(PerServer::all(ChangedDefinitionAction::Allow))
            .identities([("demo".to_owned(), "a test".to_owned())]);
        let approvals = ApprovalService::new(recorder.clone(), store.clone(), making.desk);
        let mut route = Policy::for_gateway(recorder, OperatorPolicy::new(approvals), pins);
        route.observer = watcher.clone();
        route.policy_id = "p1".into();
        route.access = AccessRules::new(making.rules);
        route.rate = RateLimiter::new(Vec::new(), making.default);
        route.concurrency = ConcurrencyLimit::new(1000, 1000);
        let done: Handler =
            Box::new(|_| Box::pin(async { Ok(Outcome::Done(Output::text("done"))) }));
        let script = Arc::new(Script {
            catalog: Mutex::new(Catalog::new(standard_tools())),
            handler: Mutex::new(Arc::new(done)),
            reached: Mutex::default(),
        });
        PipelineFixture {
            dir,
            route,
            store,
            script,
            watcher,
            caller: Caller::new("key:test"),
            names: AtomicU32::new(0),
        }
    }

    pub(crate) fn pins(&self) -> &Pins {
        self.route.pins.as_ref().expect("a gateway has pins")
    }

    pub(crate) fn pins_mut(&mut self) -> &mut Pins {
        self.route.pins.as_mut().expect("a gateway has pins")
    }

    pub(crate) fn approvals(&self) -> &Arc<ApprovalService> {
        let operator = self.route.operator.as_ref();
        &operator.expect("a gateway has an operator").approvals
    }

    pub(crate) fn operator_mut(&mut self) -> &mut OperatorPolicy {
        let operator = self.route.operator.as_mut();
        operator.expect("a gateway has an operator")
    }

    pub(crate) fn pipeline(&self) -> Pipeline {
        self.route.over(self.script.clone())
    }

    pub(crate) fn tools(&self, tools: Vec<Arc<Item>>) {
        *self.script.catalog.lock().unwrap() = Catalog::new(tools);
    }

    pub(crate) fn catalog(&self, catalog: Catalog) {
        *self.script.catalog.lock().unwrap() = catalog;
    }

    pub(crate) fn handle(
        &self,
        handler: impl Fn(Call) -> BoxFuture<'static, Result<Outcome, Error>> + Send + Sync + 'static,
    ) {
        *self.script.handler.lock().unwrap() = Arc::new(Box::new(handler));
    }

    /// Returns the number of calls that reached the service.
    pub(crate) fn reached(&self) -> usize {
        self.script.reached.lock().unwrap().len()
    }

    /// A fresh call.
    pub(crate) fn call(&self, name: &str, arguments: Value) -> Call {
        let n = self.names.fetch_add(1, Ordering::SeqCst);
        Call::tool(
            format!("call-{n}"),
            self.caller.clone(),
            name,
            Json::from_value(&arguments),
        )
    }

    pub(crate) async fn go(&self, call: Call) -> Result<Outcome, Error> {
        self.pipeline().call(call).await
    }

    /// Calls, and gives the question that comes back.
    pub(crate) async fn asked(&self, call: &Call) -> InputRequests {
        match self.go(call.clone()).await {
            Ok(Outcome::InputRequired(questions)) => questions,
            other => panic!("expected a question, got {other:?}"),
        }
    }

    /// Everything recorded so far.
    pub(crate) fn records(&self) -> Vec<Value> {
        let marker = self.names.fetch_add(1, Ordering::SeqCst).to_string();
        self.route
            .recorder
            .journal()
            .unwrap()
            .enqueue(toolgate_journal::AuditEntry::new("test.mark").with("mark", marker.as_str()))
            .unwrap();
        let end = std::time::Instant::now() + Duration::from_secs(20);
        loop {
            let lines = read::tail(&self.dir, 10_000).unwrap();
            let records: Vec<Value> = lines
                .iter()
                .map(|line| serde_json::from_str(&line.raw).unwrap())
                .collect();
            if records.iter().any(|r| r["mark"] == marker.as_str()) {
                return records
                    .into_iter()
                    .filter(|r| r["ev"] != "test.mark")
                    .collect();
            }
            assert!(
                std::time::Instant::now() < end,
                "the journal does not write"
            );
            std::thread::yield_now();
        }
    }

    /// The records of some event.
    pub(crate) fn events(&self, ev: &str) -> Vec<Value> {
        self.records()
            .into_iter()
            .filter(|r| r["ev"] == ev)
            .collect()
    }
}

impl Drop for PipelineFixture {
    fn drop(&mut self) {
        if let Some(journal) = self.route.recorder.journal() {
            journal.close();
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}

/// The same call in its next round, with what the question left to find again.
pub(crate) fn again(call: &Call, questions: &InputRequests) -> Call {
    let mut next = call.clone();
    next.round.number += 1;
    next.round.slots = questions.slots.clone();
    next.round.answers.clear();
    next
}

/// The id of the approval that is asked for.
pub(crate) fn approval(questions: &InputRequests) -> String {
    let mut ids = questions.requests.iter().filter_map(|ask| match &ask.kind {
        InputRequestKind::Approve(approval) => Some(approval.id.to_string()),
        _ => None,
    });
    ids.next().expect("an approval")
}

pub(crate) fn item(definition: Value) -> Arc<Item> {
    item_of("demo", true, definition)
}

pub(crate) fn item_of(server: &str, trusted: bool, definition: Value) -> Arc<Item> {
    let tool = Definition::tool(Json::from_value(&definition)).unwrap();
    Arc::new(Item::new(
        Origin {
            server: server.into(),
            trusted,
        },
        tool,
    ))
}

fn standard_tools() -> Vec<Arc<Item>> {
    let numbers = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a"]});
    vec![
        item(
            json!({"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}}),
        ),
        item(
            json!({"name": "add", "inputSchema": numbers, "annotations": {"destructiveHint": false}}),
        ),
        item(json!({"name": "wipe", "inputSchema": {"type": "object"}})),
    ]
}

pub(crate) fn rule(tools: &str, then: RuleAction) -> AccessRule {
    AccessRule::new(
        format!("rule for {tools}"),
        then,
        vec![GlobPattern::new(tools)],
    )
}

/// The public text of a failure.
pub(crate) fn text(outcome: Result<Outcome, Error>) -> String {
    match outcome {
        Err(error) => error.public_message().to_owned(),
        Ok(outcome) => panic!("expected an error, got {outcome:?}"),
    }
}

/// The text of the first block of a result.
pub(crate) fn said(outcome: Result<Outcome, Error>) -> String {
    match outcome {
        Ok(Outcome::Done(output)) => output.into_tool().unwrap().content[0]
            .json
            .get("text")
            .and_then(|t| t.string())
            .unwrap(),
        other => panic!("expected a result, got {other:?}"),
    }
}

/// Polls so often and then drops; `None` if it was dropped.
pub(crate) struct Drops<F> {
    pub(crate) inner: Pin<Box<F>>,
    pub(crate) left: u32,
}

impl<F: Future> Future for Drops<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        self.left -= 1;
        match self.inner.as_mut().poll(cx) {
            Poll::Ready(out) => Poll::Ready(Some(out)),
            Poll::Pending if self.left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}
