//! Against our own edge, in both eras, over real HTTP.

use super::{
    super::{
        remote::peer::{all, call, options},
        serve::{Scripted, server},
        tasks,
    },
    server::{Heard, changes_of, soon},
};
use crate::official::Checked;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use std::{
    convert::Infallible,
    sync::{Arc, atomic::Ordering::SeqCst},
    time::Duration,
};
use tokio::{net::TcpListener, task::JoinHandle};
use toolgate::{
    Caller, Outcome, Service,
    client::{HttpOptions, RemoteServer},
    edge::http::{Body, HttpEndpoint, HttpLimits},
};

/// A listener that serves until it is dropped.
struct Serving {
    url: String,
    task: JoinHandle<()>,
    scripted: Arc<Scripted>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve() -> Serving {
    let scripted = Scripted::new();
    serve_this(server(scripted.clone()), scripted).await
}

#[allow(clippy::disallowed_methods, reason = "the server of the test")]
async fn serve_this(
    front: Arc<toolgate::edge::ProtocolServer>,
    scripted: Arc<Scripted>,
) -> Serving {
    let mut limits = HttpLimits::default();
    limits.stream_after = Duration::from_millis(50);
    let endpoint = HttpEndpoint::new(front, limits);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let task = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let endpoint = endpoint.clone();
            let service = hyper::service::service_fn(move |request| {
                let endpoint = endpoint.clone();
                async move { Ok::<_, Infallible>(checked(&endpoint, request).await) }
            });
            tokio::spawn(
                hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service),
            );
        }
    });
    Serving {
        url,
        task,
        scripted,
    }
}

/// Handles a request. What is answered is checked against the official schemas.
async fn checked(endpoint: &HttpEndpoint, request: Request<Incoming>) -> Response<Checked<Body>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let text = String::from_utf8(body.to_vec()).unwrap();
    let session = head.headers.get("mcp-session-id").cloned();
    let session = session.as_ref().and_then(|id| id.to_str().ok());
    let request = Request::from_parts(head, Full::new(body));
    let response = endpoint.handle(Caller::new("test"), request).await;
    Checked::new(&text, session, response)
}

async fn connect(serving: &Serving, probe: bool) -> RemoteServer {
    let mut options = options();
    options.probe = probe;
    let opening = RemoteServer::connect(&serving.url, options, HttpOptions::default());
    soon(opening).await.unwrap()
}

/// Holds: VER-10, HTTPM-10, HTTPM-16, CANC-07, HTTPL-08.
#[tokio::test]
async fn lists_calls_progress_changes_and_cancels() {
    let serving = serve().await;
    for (probe, revision) in [(true, "2026-07-28"), (false, "2025-11-25")] {
        let remote = connect(&serving, probe).await;
        assert_eq!(remote.status().revision, revision);
        let list = soon(remote.list(all())).await.unwrap();
        assert!(list.find("echo").is_some());
        let outcome = soon(remote.call(call("echo", r#"{"n":1.50}"#))).await;
        let Ok(Outcome::Done(output)) = outcome else {
            panic!("{outcome:?}");
        };
        assert!(
            output.tool().unwrap().content[0]
                .json
                .as_str()
                .contains("1.50")
        );
        let (reporter, heard) = Heard::reporter();
        let mut counted = call("count", "{}");
        counted.reporter = reporter;
        soon(remote.call(counted)).await.unwrap();
        assert!(!heard.progress().is_empty());
        changes(&serving, &remote).await;
        cancels(&serving, &remote).await;
        assert_eq!(remote.status().counters.stray_replies, 0);
    }
}

async fn changes(serving: &Serving, remote: &RemoteServer) {
    let mut changes = changes_of(remote).await;
    let next = changes.next();
    tokio::pin!(next);
    // The stream may not be open yet, and what is told before is not heard.
    let told = async {
        loop {
            serving.scripted.change();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    soon(async {
        tokio::select! {
            _ = &mut next => {}
            () = told => {}
        }
    })
    .await;
}

async fn cancels(serving: &Serving, remote: &RemoteServer) {
    let running = || serving.scripted.running.load(SeqCst);
    let until = async |wanted: usize| {
        while running() != wanted {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon(async {
        tokio::select! {
            _ = remote.call(call("forever", "{}")) => panic!("it ended"),
            () = until(1) => {}
        }
    })
    .await;
    soon(until(0)).await;
}

/// The server looks at the headers of each request about a task.
///
/// Holds: XTASK-11
#[tokio::test]
async fn a_task_is_followed_and_ended_over_http() {
    let mut quick = tasks::limits();
    quick.poll_interval = Duration::from_millis(50);
    let (front, hand) = tasks::served(quick);
    let serving = serve_this(front.clone(), Scripted::new()).await;
    let remote = RemoteServer::connect(&serving.url, options(), HttpOptions::default());
    let remote = remote.await.unwrap();
    hand.go.notify_one();
    let done = soon(remote.call(call("job", "{}"))).await.unwrap();
    assert!(matches!(done, Outcome::Done(_)), "{done:?}");
    assert_eq!(front.tasks()[0].status, "completed");
    // A client that leaves before it heard of the task cannot end it.
    let (reporter, heard) = Heard::reporter();
    let mut running = call("job", "{}");
    running.reporter = reporter;
    let looked = async {
        while heard.progress().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        done = remote.call(running) => panic!("{done:?}"),
        () = soon(looked) => {}
    }
    hand.runs(0).await;
    assert_eq!(front.tasks()[1].status, "cancelled");
}
