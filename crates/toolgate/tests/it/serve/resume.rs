//! A client that lost the stream of a session comes back to it.

use super::{
    Scripted,
    desk::until,
    http::{Body, exchange, send, text},
    server,
};
use http::Response;
use http_body_util::BodyExt;
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::mpsc;
use toolgate::{
    Call, Error, Json, Outcome, Service,
    core::{
        BoxFuture, Catalog, ChangeFilter, ChangeStream, Definition, Item, ItemKind, ListRequest,
        Origin, Output, Progress, ReporterEvent,
    },
    edge::http::{HttpEndpoint, HttpLimits},
};

type Taken = Arc<Mutex<Option<mpsc::Receiver<Step>>>>;

/// A tool that does what the test tells it, step by step.
struct Stepped {
    catalog: Catalog,
    /// Steps of the next call.
    steps: Taken,
    done: Arc<AtomicUsize>,
}

enum Step {
    Progress(String),
    Done(String),
}

impl Service for Stepped {
    fn list(&self, ask: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        let tools = (ask.kind == ItemKind::Tool).then(|| self.catalog.clone());
        Box::pin(async { Ok(tools.unwrap_or_default()) })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move {
            let mut steps = self.steps.lock().unwrap().take().unwrap();
            let mut progress = 0.0;
            while let Some(step) = steps.recv().await {
                match step {
                    Step::Progress(message) => {
                        progress += 1.0;
                        call.reporter.send(ReporterEvent::Progress(Progress {
                            progress,
                            total: None,
                            message: Some(message),
                        }));
                    }
                    Step::Done(text) => {
                        self.done.fetch_add(1, Ordering::SeqCst);
                        return Ok(Outcome::Done(Output::text(&text)));
                    }
                }
            }
            std::future::pending().await
        })
    }

    fn changes(&self, _: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        Box::pin(async {
            Ok(ChangeStream::new(
                tokio::sync::watch::channel(Default::default()).1,
            ))
        })
    }
}

/// One session with one slow call.
struct Slow {
    endpoint: HttpEndpoint,
    steps: mpsc::Sender<Step>,
    taken: Taken,
    done: Arc<AtomicUsize>,
    session: String,
}

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"steps","_meta":{"progressToken":"p"}}}"#;

async fn slow(limits: HttpLimits, revision: &str) -> Slow {
    let origin = Origin {
        server: "s".into(),
        trusted: true,
    };
    let tool = serde_json::json!({"name": "steps", "inputSchema": {"type": "object"}});
    let tool = Item::new(origin, Definition::tool(Json::from_value(&tool)).unwrap());
    let (steps, taken) = mpsc::channel(8);
    let taken = Arc::new(Mutex::new(Some(taken)));
    let done = Arc::<AtomicUsize>::default();
    let service = Stepped {
        catalog: Catalog::new(vec![Arc::new(tool)]),
        steps: taken.clone(),
        done: done.clone(),
    };
    let mut limits = limits;
    limits.stream_after = Duration::from_millis(20);
    let endpoint = HttpEndpoint::new(server(Arc::new(service)), limits);
    let session = open(&endpoint, revision).await;
    Slow {
        endpoint,
        steps,
        taken,
        done,
        session,
    }
}

async fn open(endpoint: &HttpEndpoint, revision: &str) -> String {
    let params = serde_json::json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let body =
        serde_json::json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let opened = send(endpoint, "POST", &[], &body.to_string()).await;
    opened.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned()
}

impl Slow {
    async fn call(&self) -> Response<Body> {
        let with = [("mcp-session-id", self.session.as_str())];
        send(&self.endpoint, "POST", &with, CALL).await
    }

    async fn back(&self, last: &str) -> Response<Body> {
        let with = [
            ("mcp-session-id", self.session.as_str()),
            ("last-event-id", last),
        ];
        exchange(&self.endpoint, "GET", &with, "", CALL).await
    }

    fn tell(&self, message: &str) {
        self.steps
            .try_send(Step::Progress(message.to_owned()))
            .unwrap();
    }

    async fn finish(&self, text: &str) {
        self.steps.try_send(Step::Done(text.to_owned())).unwrap();
        until("the call is done", || self.done.load(Ordering::SeqCst) == 1).await;
    }
}

/// The next event with that text in it.
async fn next(body: &mut Body, with: &str) -> String {
    loop {
        let frame = tokio::time::timeout(super::HANG, body.frame()).await;
        let frame = frame.expect("an event in time").expect("one more event");
        let event = String::from_utf8(frame.unwrap().into_data().unwrap().to_vec()).unwrap();
        if event.contains(with) {
            return event;
        }
    }
}

fn id(event: &str) -> String {
    let line = event.lines().find_map(|line| line.strip_prefix("id: "));
    line.expect("an id").to_owned()
}

fn ids(stream: &str) -> Vec<String> {
    stream
        .lines()
        .filter_map(|l| l.strip_prefix("id: "))
        .map(str::to_owned)
        .collect()
}

/// Holds: HTTPL-09, HTTPL-14
#[tokio::test]
async fn what_was_missed_comes_when_the_client_comes_back() {
    let slow = slow(HttpLimits::default(), "2025-11-25").await;
    let mut body = slow.call().await.into_body();
    let primer = next(&mut body, "id: ").await;
    assert!(primer.ends_with("\ndata: \n\n"), "{primer}");
    slow.tell("one");
    let one = next(&mut body, "one").await;
    drop(body);
    slow.tell("two");
    slow.finish("all of it").await;

    let missed = text(slow.back(&id(&one)).await).await;
    assert!(
        missed.contains("two") && !missed.contains("one"),
        "{missed}"
    );
    assert!(missed.contains("all of it"), "{missed}");
    // It may be lost again on the way.
    let again = text(slow.back(&id(&one)).await).await;
    assert_eq!(ids(&again), ids(&missed));
    let all = text(slow.back(&id(&primer)).await).await;
    assert!(all.contains("one") && ids(&all).len() == 3, "{all}");
    // Who has it all gets nothing more, and the stream ends.
    let last = ids(&missed).pop().unwrap();
    assert_eq!(
        ids(&text(slow.back(&last).await).await),
        Vec::<String>::new()
    );
}

/// Holds: HTTPL-19, HTTPL-21
#[tokio::test]
async fn two_streams_of_a_session_are_kept_apart() {
    for revision in ["2025-11-25", "2025-06-18", "2025-03-26"] {
        let slow = slow(HttpLimits::default(), revision).await;
        let first_call = CALL.replace("\"p\"", "\"first\"");
        let second_call = CALL
            .replace("\"id\":1", "\"id\":2")
            .replace("\"p\"", "\"second\"");
        let with = [("mcp-session-id", slow.session.as_str())];
        let (steps, taken) = mpsc::channel(8);
        let response = send(&slow.endpoint, "POST", &with, &first_call).await;
        let mut first = response.into_body();
        slow.tell("one");
        let one = next(&mut first, "one").await;
        *slow.taken.lock().unwrap() = Some(taken);
        let response = send(&slow.endpoint, "POST", &with, &second_call).await;
        let mut second = response.into_body();
        steps.try_send(Step::Progress("other".to_owned())).unwrap();
        let other = next(&mut second, "other").await;
        drop((first, second));
        slow.tell("two");
        steps.try_send(Step::Progress("later".to_owned())).unwrap();
        slow.finish("first done").await;
        steps
            .try_send(Step::Done("second done".to_owned()))
            .unwrap();
        until("both are done", || slow.done.load(Ordering::SeqCst) == 2).await;
        let back = async |event: &str, asked: &str| {
            let with = [with[0], ("last-event-id", event)];
            text(exchange(&slow.endpoint, "GET", &with, "", asked).await).await
        };
        let missed = back(&id(&one), &first_call).await;
        let others = back(&id(&other), &second_call).await;
        for (missed, words, foreign) in [
            (&missed, ["two", "first done"], ["later", "second"]),
            (&others, ["later", "second done"], ["two", "first"]),
        ] {
            assert!(words.iter().all(|word| missed.contains(word)), "{missed}");
            assert!(
                !foreign.iter().any(|word| missed.contains(word)),
                "{missed}"
            );
        }
        let mut all = ids(&missed);
        all.extend(ids(&others));
        all.extend([id(&one), id(&other)]);
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count, "{revision}: {all:?}");
    }
}

/// A connection may be dead long before the server sees it.
#[tokio::test]
async fn the_connection_that_comes_back_takes_the_turn() {
    let mut limits = HttpLimits::default();
    limits.keep_alive_interval = Duration::from_millis(20);
    let slow = slow(limits, "2025-11-25").await;
    let mut first = slow.call().await.into_body();
    let primer = next(&mut first, "id: ").await;
    slow.tell("one");
    next(&mut first, "one").await;
    let mut second = slow.back(&id(&primer)).await.into_body();
    next(&mut second, "one").await;
    let ended = async { while first.frame().await.is_some() {} };
    tokio::time::timeout(super::HANG, ended)
        .await
        .expect("the first ends");
    drop(first);
    slow.tell("two");
    next(&mut second, "two").await;
    slow.finish("done").await;
    next(&mut second, "done").await;
}

async fn not_kept(response: Response<Body>) {
    assert_eq!(response.status(), 400);
    let text = text(response).await;
    assert!(
        text.contains("cannot be resumed after this event"),
        "{text}"
    );
}

#[tokio::test]
async fn an_id_is_good_for_its_session_only() {
    let slow = slow(HttpLimits::default(), "2025-11-25").await;
    let mut body = slow.call().await.into_body();
    let primer = id(&next(&mut body, "id: ").await);
    let other = open(&slow.endpoint, "2025-11-25").await;
    let with = [
        ("mcp-session-id", other.as_str()),
        ("last-event-id", &primer),
    ];
    not_kept(send(&slow.endpoint, "GET", &with, "").await).await;
    let wrong = [
        "1-1",
        "7-0",
        "0-0",
        "1",
        "",
        "a-b",
        "1-0-0",
        "18446744073709551616-0",
        "1-18446744073709551615",
    ];
    for wrong in wrong {
        not_kept(slow.back(wrong).await).await;
    }
    // None of that took the turn from the one that reads.
    slow.finish("done").await;
    next(&mut body, "done").await;
}

#[tokio::test]
async fn a_session_keeps_so_many_bytes_and_all_of_them_so_many() {
    let limits = |session_bytes, bytes| {
        let mut limits = HttpLimits::default();
        limits.resume.session_bytes = session_bytes;
        limits.resume.total_bytes = bytes;
        limits
    };
    for (limits, reply, kept) in [
        (limits(10_000, 10_000), 5000, true),
        // The oldest go for the newest.
        (limits(5500, 10_000), 5000, false),
        // One that is too long alone.
        (limits(4000, 10_000), 5000, false),
        (limits(10_000, 5500), 5000, false),
    ] {
        let slow = slow(limits, "2025-11-25").await;
        let mut body = slow.call().await.into_body();
        let primer = id(&next(&mut body, "id: ").await);
        slow.tell(&"x".repeat(500));
        next(&mut body, "xxx").await;
        drop(body);
        slow.finish(&"y".repeat(reply)).await;
        if kept {
            assert!(text(slow.back(&primer).await).await.contains("yyy"));
        } else {
            settled(&slow, &primer).await;
        }
    }
}

/// Waits until the stream says no: the reply is taken from the call by a task of its own.
async fn settled(slow: &Slow, primer: &str) {
    for _ in 0..500 {
        let response = slow.back(primer).await;
        if response.status() == 400 {
            return not_kept(response).await;
        }
        drop(response);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it was kept");
}

#[tokio::test]
async fn nothing_is_kept_for_longer_than_said() {
    for keep in [Duration::ZERO, Duration::from_millis(1)] {
        let mut limits = HttpLimits::default();
        limits.resume.keep_for = keep;
        let slow = slow(limits, "2025-11-25").await;
        let mut body = slow.call().await.into_body();
        let primer = id(&next(&mut body, "id: ").await);
        drop(body);
        tokio::time::sleep(Duration::from_millis(5)).await;
        not_kept(slow.back(&primer).await).await;
        // The call ends for itself.
        slow.finish("done").await;
    }
}

/// Holds: HTTPL-11, HTTPL-13
#[tokio::test]
async fn a_connection_may_end_before_its_stream_where_the_revision_has_that() {
    for (revision, polled) in [
        ("2025-11-25", true),
        ("2025-06-18", false),
        ("2025-03-26", false),
    ] {
        let mut limits = HttpLimits::default();
        limits.reconnect_after = Some(Duration::from_millis(50));
        let slow = slow(limits, revision).await;
        let mut body = slow.call().await.into_body();
        let first = next(&mut body, "").await;
        assert_eq!(first.starts_with("id: "), polled, "{first}");
        if polled {
            let rest = text(Response::new(body)).await;
            assert!(rest.ends_with("retry: 500\n\n"), "{rest}");
            slow.finish("done").await;
            assert!(text(slow.back(&id(&first)).await).await.contains("done"));
        } else {
            slow.tell("one");
            let one = next(&mut body, "one").await;
            // Four times as long as a stream of 2025-11-25 lasts.
            let more = tokio::time::timeout(Duration::from_millis(200), body.frame()).await;
            assert!(more.is_err(), "{revision}: it ended or said more");
            slow.finish("done").await;
            next(&mut body, "done").await;
            drop(body);
            assert!(text(slow.back(&id(&one)).await).await.contains("done"));
        }
    }
}

/// Holds: HTTPL-20
#[tokio::test]
async fn changes_that_were_missed_are_told() {
    let scripted = Scripted::new();
    let endpoint = super::http::endpoint(scripted.clone());
    let session = open(&endpoint, "2025-11-25").await;
    let with = [("mcp-session-id", session.as_str())];
    let mut body = send(&endpoint, "GET", &with, "").await.into_body();
    let primer = id(&next(&mut body, "id: ").await);
    // The stream subscribes in a task of its own, so tell until it hears.
    let heard = async {
        loop {
            scripted.change();
            let frame = tokio::time::timeout(Duration::from_millis(20), body.frame()).await;
            if frame.is_ok() {
                return;
            }
        }
    };
    tokio::time::timeout(super::HANG, heard).await.unwrap();
    drop(body);
    scripted.change();
    let with = [
        ("mcp-session-id", session.as_str()),
        ("last-event-id", &primer),
    ];
    let mut back = send(&endpoint, "GET", &with, "").await.into_body();
    next(&mut back, "list_changed").await;
    next(&mut back, "list_changed").await;
}
