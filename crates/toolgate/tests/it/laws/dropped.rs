//! A call that is dropped leaves nothing behind, wherever it was.

use super::run;
use crate::serve::{HANG, Scripted, desk::until};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    future::Future,
    path::Path,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll},
};
use tokio::io::{duplex, split};
use toolgate::{
    Call, Caller, Error, Json, Outcome, Service,
    client::{RemoteOptions, RemoteServer},
    core::{
        BoxFuture, Catalog, ChangeCounters, ChangeFilter, ChangeStream, Definition, ErrorKind,
        InputRequest, InputRequestKind, InputRequests, Item, ItemKind, ListRequest, Origin, Output,
        Pipeline, Progress, ReporterEvent,
    },
    edge::{self, ServerLimits, stdio},
};
use toolgate_policy::{AuditRecorder, ConcurrencyLimit, Policy};

/// A future that is dropped when it was polled so often. It does not wait to be woken, so that it always comes to that.
struct Polls<F>(Option<Pin<Box<F>>>, usize);

impl<F: Future> Future for Polls<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<F::Output>> {
        if self.1 == 0 {
            self.0 = None;
            return Poll::Ready(None);
        }
        self.1 -= 1;
        let Some(work) = &mut self.0 else {
            return Poll::Ready(None);
        };
        let done = work.as_mut().poll(cx).map(Some);
        if done.is_pending() {
            cx.waker().wake_by_ref();
        }
        done
    }
}

fn polls<F: Future>(work: F, most: usize) -> Polls<F> {
    Polls(Some(Box::pin(work)), most)
}

/// A service of one tool that takes some awaits.
struct Slow {
    awaits: usize,
    end: End,
    running: Arc<AtomicUsize>,
    stale: tokio::sync::watch::Sender<ChangeCounters>,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Done,
    Fails,
    Asks,
    Never,
}

struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

impl Slow {
    async fn used(&self, call: Call) -> Result<Outcome, Error> {
        self.running.fetch_add(1, SeqCst);
        let _running = Running(self.running.clone());
        for n in 0..self.awaits {
            call.reporter.send(ReporterEvent::Progress(Progress {
                progress: n as f64,
                total: None,
                message: None,
            }));
            tokio::task::yield_now().await;
        }
        match self.end {
            End::Done => Ok(Outcome::Done(Output::text("done"))),
            End::Fails => Err(Error::new(ErrorKind::Upstream, "it failed")),
            End::Asks => {
                let form = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
                let kind = InputRequestKind::Elicit(Json::from_value(&form));
                let key = "q".to_owned();
                let asks = vec![InputRequest { key, kind }];
                Ok(Outcome::InputRequired(InputRequests::new(asks)))
            }
            End::Never => std::future::pending().await,
        }
    }
}

impl Service for Slow {
    fn list(&self, ask: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            let def = json!({"name": "slow", "inputSchema": {"type": "object"}});
            let origin = Origin {
                server: "s".into(),
                trusted: true,
            };
            let def = Definition::tool(Json::from_value(&def)).unwrap();
            let tools = vec![Arc::new(Item::new(origin, def))];
            Ok(match ask.kind {
                ItemKind::Tool => Catalog::new(tools),
                _ => Catalog::default(),
            })
        })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(self.used(call))
    }

    fn changes(&self, _: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        Box::pin(async { Ok(ChangeStream::new(self.stale.subscribe())) })
    }
}

fn call(id: &str, name: &str) -> Call {
    let none = Json::from_value(&json!({}));
    Call::tool(id, Caller::new("t"), name, none)
}

/// A pipeline of all duties that lets one call run at a time and records in that folder.
fn governed(end: Arc<dyn Service>, folder: &Path) -> Pipeline {
    let mut standard = Policy::default();
    standard.recorder = Arc::new(AuditRecorder::in_folder(folder).unwrap());
    standard.concurrency = ConcurrencyLimit::new(1, 1);
    standard.over(end)
}

/// The calls with that event in the record.
fn recorded(folder: &Path, event: &str, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            recorded(&path, event, found);
        } else if path.extension().is_some_and(|e| e == "jsonl") {
            let text = std::fs::read_to_string(path).unwrap();
            for line in text.lines() {
                let line: Value = serde_json::from_str(line).unwrap();
                if line["ev"] == event {
                    found.insert(line["call"].as_str().unwrap().to_owned());
                }
            }
        }
    }
}

async fn dropped(awaits: usize, end: End, most: usize) {
    let folder = std::env::temp_dir().join(toolgate::ids::short_id("toolgate-test"));
    let running = Arc::<AtomicUsize>::default();
    let slow = |awaits, end| {
        Arc::new(Slow {
            awaits,
            end,
            running: running.clone(),
            stale: Default::default(),
        })
    };
    let end_of_it = slow(awaits, end);
    let pipeline = governed(end_of_it, &folder);
    let what = polls(pipeline.call(call("dropped", "slow")), most).await;
    assert!(what.is_some() || running.load(SeqCst) == 0, "it runs on");
    // There is one place: this call would be refused if the place were kept, and it would be recorded after the other.
    let next = polls(pipeline.call(call("next", "slow")), 1000).await;
    if let Some(Err(error)) = &next {
        assert!(!matches!(error.kind(), ErrorKind::Busy(_)), "{error}");
    }
    let after = pipeline.call(call("after", "nobody")).await;
    assert_eq!(*after.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(running.load(SeqCst), 0);
    let (mut begun, mut ended) = (BTreeSet::new(), BTreeSet::new());
    recorded(&folder, "call.begin", &mut begun);
    recorded(&folder, "call.end", &mut ended);
    assert_eq!(begun, ended, "{end:?} after {most} polls");
    drop(pipeline);
    std::fs::remove_dir_all(folder).unwrap();
}

/// Over a stream to a server elsewhere, which has to stop as well.
async fn dropped_elsewhere(most: usize, modern: bool) {
    let scripted = Scripted::new();
    let running = scripted.running.clone();
    let raw = edge::ProtocolServer::new(scripted, "s", "1", ServerLimits::default()).unwrap();
    let (ours, theirs) = duplex(1 << 16);
    let (from, to) = split(theirs);
    #[allow(clippy::disallowed_methods, reason = "ends with its stream")]
    tokio::spawn(stdio::serve(Arc::new(raw), Caller::new("gate"), from, to));
    let mut options = RemoteOptions::new(Origin {
        server: "s".into(),
        trusted: true,
    });
    options.probe = modern;
    let (from, to) = split(ours);
    let remote = Arc::new(RemoteServer::open(from, to, options).await.unwrap());
    let mut standard = Policy::default();
    standard.concurrency = ConcurrencyLimit::new(1, 1);
    let pipeline = standard.over(remote);
    assert!(
        polls(pipeline.call(call("a", "forever")), most)
            .await
            .is_none()
    );
    let next = pipeline.call(call("b", "echo"));
    let next = tokio::time::timeout(HANG, next).await.expect("it ends");
    assert!(matches!(next, Ok(Outcome::Done(_))), "{next:?}");
    until("it stops there too", || running.load(SeqCst) == 0).await;
}

/// Early ones often: later there is the wait for the disk, or for the other side.
fn most() -> impl Strategy<Value = usize> {
    prop_oneof![0..20usize, 0..2000usize]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Holds: CANC-04, CANC-08.
    #[test]
    fn a_dropped_call_leaves_no_place_and_no_open_record(awaits in 0..6usize, most in most(), end in prop::sample::select(vec![End::Done, End::Fails, End::Asks, End::Never])) {
        run(dropped(awaits, end, most));
    }

    /// Holds: CANC-01, CANC-07.
    #[test]
    fn a_dropped_call_ends_elsewhere_too(most in most(), modern in any::<bool>()) {
        run(dropped_elsewhere(most, modern));
    }
}
