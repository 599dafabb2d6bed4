//! Tests of the supervision, with scripted processes.

use super::{
    ServerSpec, ServerState, ServerSupervisor, SupervisedServer,
    launch::{LaunchError, ProcessLauncher, ProcessPipes, ServerProcess},
};
use crate::config::RevisionChoice;
use serde_json::{Value, json};
use std::{
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf},
    sync::watch,
    time::{Instant, timeout},
};
use toolgate_core::{
    BoxFuture, Call, Caller, ChangeFilter, ErrorKind, ItemKind, Json, ListRequest, Service,
};

/// Behavior of a server's successive processes. The last one repeats.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ProcessBehavior {
    /// Serves until its input ends.
    Serve,
    /// Serves, but exits at a request before the handshake.
    NoProbe,
    /// Serves the newest revision, and exits at a handshake.
    NoHandshake,
    /// Serves until the first call, and exits without an answer.
    Once,
    /// Like `Once`, in the newest revision and with `listChanged`.
    ListChangedOnce,
    /// Serves the newest revision with `listChanged`.
    ListChanged,
    /// Serves for that many seconds.
    Seconds(u64),
    /// Exits at once.
    Exit,
    /// Sends nothing.
    Silent,
    /// Exits, while a child process of its own keeps the pipes open.
    Leave,
    /// Cannot be started.
    Refuse,
}

struct ScriptedLauncher {
    acts: Vec<ProcessBehavior>,
    started: AtomicUsize,
    ended: Arc<AtomicUsize>,
    calls: Arc<Mutex<Vec<Value>>>,
}

struct ScriptedProcess {
    pipes: Option<ProcessPipes>,
    exit: watch::Receiver<bool>,
    ended: Arc<AtomicUsize>,
}

impl ProcessLauncher for Arc<ScriptedLauncher> {
    fn launch<'a>(
        &'a self,
        _: &'a ServerSpec,
    ) -> BoxFuture<'a, Result<Box<dyn ServerProcess>, LaunchError>> {
        let n = self.started.fetch_add(1, SeqCst);
        let act = self.acts[n.min(self.acts.len() - 1)];
        Box::pin(async move {
            if act == ProcessBehavior::Refuse {
                return Err(LaunchError {
                    reason: "no such program: nothing".to_owned(),
                    may_retry: true,
                });
            }
            Ok(Box::new(self.child(n, act)) as Box<dyn ServerProcess>)
        })
    }
}

impl ScriptedLauncher {
    fn of(acts: &[ProcessBehavior]) -> Arc<ScriptedLauncher> {
        Arc::new(ScriptedLauncher {
            acts: acts.to_vec(),
            started: AtomicUsize::new(0),
            ended: Arc::default(),
            calls: Arc::default(),
        })
    }

    #[allow(clippy::disallowed_methods, reason = "plays a process")]
    fn child(&self, n: usize, act: ProcessBehavior) -> ScriptedProcess {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (stdout, stdin) = tokio::io::split(ours);
        let (stderr, mut errors) = tokio::io::duplex(1 << 12);
        let (exit, exited) = watch::channel(false);
        let calls = self.calls.clone();
        tokio::spawn(async move {
            errors
                .write_all(format!("child {n} starts\n").as_bytes())
                .await
                .unwrap();
            let (from, to) = tokio::io::split(theirs);
            let mut server = ScriptedUpstream {
                from: BufReader::new(from),
                to,
                act,
                calls,
            };
            match act {
                ProcessBehavior::Seconds(limit) => {
                    drop(timeout(Duration::from_secs(limit), server.serve()).await)
                }
                _ => server.serve().await,
            }
            errors.write_all(b"bye").await.unwrap();
            exit.send_replace(true);
            if act == ProcessBehavior::Leave {
                pending::<()>().await;
            }
        });
        let pipes = ProcessPipes {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            stderr: Box::new(stderr),
        };
        ScriptedProcess {
            pipes: Some(pipes),
            exit: exited,
            ended: self.ended.clone(),
        }
    }

    fn started(&self) -> usize {
        self.started.load(SeqCst)
    }
}

impl ServerProcess for ScriptedProcess {
    fn pipes(&mut self) -> Option<ProcessPipes> {
        self.pipes.take()
    }

    fn exited(&self) -> BoxFuture<'static, String> {
        let mut exit = self.exit.clone();
        Box::pin(async move {
            let _ = exit.wait_for(|exit| *exit).await;
            "it exited with status 3".to_owned()
        })
    }

    fn end(&mut self) -> BoxFuture<'_, String> {
        self.ended.fetch_add(1, SeqCst);
        let exited = ServerProcess::exited(self);
        Box::pin(async move {
            timeout(Duration::from_secs(4), exited)
                .await
                .unwrap_or_else(|_| "signal 9 terminated it".to_owned())
        })
    }
}

struct ScriptedUpstream {
    from: BufReader<ReadHalf<DuplexStream>>,
    to: WriteHalf<DuplexStream>,
    act: ProcessBehavior,
    calls: Arc<Mutex<Vec<Value>>>,
}

impl ScriptedUpstream {
    async fn serve(&mut self) {
        if self.act == ProcessBehavior::Exit || self.act == ProcessBehavior::Leave {
            return;
        }
        let mut line = String::new();
        while self.from.read_line(&mut line).await.unwrap() > 0 {
            let request: Value = serde_json::from_str(&line).unwrap();
            line.clear();
            let method = request["method"].as_str().unwrap_or_default();
            match method {
                _ if self.act == ProcessBehavior::Silent => {}
                "initialize" if self.act == ProcessBehavior::NoHandshake => return,
                "server/discover" if self.has_list_changed() => self.reply(&request, json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": true}}})).await,
                "subscriptions/listen" if self.has_list_changed() => {
                    self.calls.lock().unwrap().push(request.clone());
                    let stream = json!({"io.modelcontextprotocol/subscriptionId": request["id"]});
                    let params = json!({"_meta": stream, "notifications": request["params"]["notifications"]});
                    self.send(&json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params})).await;
                }
                "server/discover" if self.act == ProcessBehavior::NoHandshake => self.reply(&request, json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})).await,
                "initialize" => self.reply(&request, json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}, "resources": {"subscribe": true}}, "serverInfo": {"name": "s", "version": "1"}})).await,
                "tools/list" => self.reply(&request, json!({"tools": [{"name": "a", "inputSchema": {}}]})).await,
                "tools/call" => {
                    self.calls.lock().unwrap().push(request.clone());
                    if matches!(self.act, ProcessBehavior::Once | ProcessBehavior::ListChangedOnce) {
                        return;
                    }
                    self.reply(&request, json!({"content": []})).await;
                }
                "resources/subscribe" => {
                    self.calls.lock().unwrap().push(request.clone());
                    self.reply(&request, json!({})).await;
                }
                "server/discover" if self.act == ProcessBehavior::NoProbe => return,
                _ if request["id"].is_null() => {}
                _ => self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "no"}})).await,
            }
        }
    }

    fn has_list_changed(&self) -> bool {
        matches!(
            self.act,
            ProcessBehavior::ListChanged | ProcessBehavior::ListChangedOnce
        )
    }

    async fn reply(&mut self, to: &Value, result: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": to["id"], "result": result}))
            .await;
    }

    async fn send(&mut self, message: &Value) {
        // The gateway may have closed the pipe a moment ago.
        let _ = self.to.write_all(format!("{message}\n").as_bytes()).await;
    }
}

fn start(
    acts: &[ProcessBehavior],
) -> (
    Arc<ScriptedLauncher>,
    ServerSupervisor,
    Arc<SupervisedServer>,
) {
    start_in(RevisionChoice::Auto, acts)
}

fn start_in(
    revision: RevisionChoice,
    acts: &[ProcessBehavior],
) -> (
    Arc<ScriptedLauncher>,
    ServerSupervisor,
    Arc<SupervisedServer>,
) {
    let script = ScriptedLauncher::of(acts);
    let spec = ServerSpec {
        revision,
        ..ServerSpec::new("files", vec!["serve".to_owned(), "--all".to_owned()])
    };
    let supervisor = ServerSupervisor::with_launcher(Arc::new(script.clone()));
    let leases = supervisor.lease(vec![spec]);
    let server = leases[0].server();
    supervisor.replace_servers(leases);
    (script, supervisor, server)
}

async fn until(server: &SupervisedServer, supervisor: &ServerSupervisor, state: ServerState) {
    let mut shown = supervisor.watch();
    let reached = async {
        while server.status().state != state {
            shown.changed().await.unwrap();
        }
    };
    timeout(Duration::from_secs(600), reached)
        .await
        .unwrap_or_else(|_| panic!("{:?}", server.status()));
}

fn all() -> ListRequest {
    ListRequest::all(Caller::new("test"), ItemKind::Tool)
}

fn call() -> Call {
    Call::tool("c1", Caller::new("test"), "a", Json::from_value(&json!({})))
}

/// Holds: TOOL-29
#[tokio::test(start_paused = true)]
async fn a_server_is_started_opened_and_used() {
    let (script, supervisor, server) = start(&[ProcessBehavior::Serve]);
    assert_eq!(server.status().state, ServerState::Starting);
    // List it before it is up: a bounded wait.
    assert_eq!(
        server.list(all()).await.unwrap().items()[0].full_name(),
        "files.a"
    );
    server.call(call()).await.unwrap();
    let status = server.status();
    assert_eq!(
        (status.state, status.restarts, status.tools, status.error),
        (ServerState::Running, 0, 1, None)
    );
    assert_eq!(
        (
            status.revision,
            status.command.as_str(),
            status.server.as_deref()
        ),
        (Some("2025-06-18"), "serve --all", Some("s 1"))
    );
    assert_eq!(status.stderr, ["child 0 starts"]);
    supervisor.stop().await;
    let status = server.status();
    assert_eq!(
        (status.state, status.stderr.last().map(String::as_str)),
        (ServerState::Stopped, Some("bye"))
    );
    assert_eq!((script.started(), script.ended.load(SeqCst)), (1, 1));
    let error = server.call(call()).await.unwrap_err();
    assert_eq!(
        (
            error.kind(),
            error.public_message().contains("the gateway is stopping")
        ),
        (&ErrorKind::Upstream, true)
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_at_the_probe_is_started_again_at_once_without() {
    let (script, supervisor, server) =
        start_in(RevisionChoice::Newest, &[ProcessBehavior::NoProbe]);
    let before = Instant::now();
    until(&server, &supervisor, ServerState::Running).await;
    assert!(
        before.elapsed() < Duration::from_secs(1),
        "{:?}",
        before.elapsed()
    );
    assert_eq!((script.started(), server.status().restarts), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn what_was_learned_about_the_probe_is_remembered() {
    let acts = [
        ProcessBehavior::NoProbe,
        ProcessBehavior::Once,
        ProcessBehavior::NoProbe,
    ];
    let (script, supervisor, server) = start_in(RevisionChoice::Newest, &acts);
    until(&server, &supervisor, ServerState::Running).await;
    server.call(call()).await.unwrap_err();
    until(&server, &supervisor, ServerState::Backoff).await;
    until(&server, &supervisor, ServerState::Running).await;
    assert_eq!(script.started(), 3, "no further child was lost to a probe");
}

#[tokio::test(start_paused = true)]
async fn opens_a_session_first_and_the_newest_revision_where_that_ends_the_server() {
    let (script, supervisor, server) = start(&[ProcessBehavior::NoProbe]);
    until(&server, &supervisor, ServerState::Running).await;
    assert_eq!(script.started(), 1, "no probe comes before the handshake");
    assert_eq!(server.status().revision, Some("2025-06-18"));
    let (script, supervisor, server) = start(&[ProcessBehavior::NoHandshake]);
    until(&server, &supervisor, ServerState::Running).await;
    assert_eq!((script.started(), server.status().restarts), (2, 0));
    assert_eq!(server.status().revision, Some("2026-07-28"));
}

#[tokio::test(start_paused = true)]
async fn a_chosen_revision_is_the_only_one() {
    let oldest = *toolgate_protocol::dialect::ALL.last().unwrap();
    let (_, supervisor, server) = start_in(RevisionChoice::Only(oldest), &[ProcessBehavior::Serve]);
    until(&server, &supervisor, ServerState::Backoff).await;
    let error = server.status().error.unwrap();
    assert!(error.contains("it offers 2025-06-18"), "{error}");
}

/// Holds: STDIO-15
#[tokio::test(start_paused = true)]
async fn a_lost_call_is_never_sent_again() {
    let (script, supervisor, server) = start(&[ProcessBehavior::Once, ProcessBehavior::Serve]);
    let mut changes = server
        .changes(ChangeFilter::all_lists(Caller::new("test")))
        .await
        .unwrap();
    let error = server.call(call()).await.unwrap_err();
    assert!(
        error
            .public_message()
            .contains("not known whether the call took effect"),
        "{}",
        error.public_message()
    );
    until(&server, &supervisor, ServerState::Backoff).await;
    let status = server.status();
    assert!(status.error.unwrap().ends_with("it exited with status 3"));
    assert_eq!((status.tools, status.revision), (0, None));
    // The restart is so near that a list waits for it.
    assert_eq!(server.list(all()).await.unwrap().items().len(), 1);
    assert_eq!(
        (server.status().restarts, script.calls.lock().unwrap().len()),
        (1, 1)
    );
    assert!(changes.next().await.is_some());
}

/// A subscriber to a resource gets updates from the next process too, and one for what may have changed in between.
#[tokio::test(start_paused = true)]
async fn subscribes_again_at_a_new_process() {
    let (script, supervisor, server) = start(&[ProcessBehavior::Once, ProcessBehavior::Serve]);
    let mut want = ChangeFilter::all_lists(Caller::new("test"));
    want.uris = vec!["t://a".to_owned()];
    let mut changes = server.changes(want).await.unwrap();
    server.call(call()).await.unwrap_err();
    until(&server, &supervisor, ServerState::Backoff).await;
    let updated = async { while changes.next().await.unwrap().updated.is_empty() {} };
    timeout(Duration::from_secs(600), updated).await.unwrap();
    let asked = || script.calls.lock().unwrap().clone();
    let methods = |all: &[Value]| all.iter().map(|r| r["method"].clone()).collect::<Vec<_>>();
    let expected = ["resources/subscribe", "tools/call", "resources/subscribe"];
    assert_eq!(methods(&asked()), expected);
    assert_eq!(asked()[2]["params"]["uri"], "t://a");
    drop(changes);
}

/// Holds: STDIO-15, SUB-08
#[tokio::test(start_paused = true)]
async fn a_restarted_server_is_subscribed_to_again() {
    let (script, supervisor, server) = start_in(
        RevisionChoice::Newest,
        &[
            ProcessBehavior::ListChangedOnce,
            ProcessBehavior::ListChanged,
        ],
    );
    server.list(all()).await.unwrap();
    server.call(call()).await.unwrap_err();
    until(&server, &supervisor, ServerState::Backoff).await;
    until(&server, &supervisor, ServerState::Running).await;
    server.list(all()).await.unwrap();
    server.call(call()).await.unwrap();
    let asked = script.calls.lock().unwrap().clone();
    let methods: Vec<&Value> = asked.iter().map(|request| &request["method"]).collect();
    let expected = ["subscriptions/listen", "tools/call"];
    assert_eq!(methods, [expected, expected].concat());
    let filters = [0, 2].map(|at| &asked[at]["params"]["notifications"]);
    assert_eq!(filters, [&json!({"toolsListChanged": true}); 2]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_keeps_failing_is_tried_ever_less_often_and_says_why() {
    let (script, supervisor, server) = start(&[ProcessBehavior::Exit]);
    tokio::time::sleep(Duration::from_secs(600)).await;
    // Half a second, doubled up to a minute. Each attempt is one process with a probe and one without.
    let tries = script.started() / 2;
    assert!((14..=20).contains(&tries), "{tries}");
    assert_eq!(
        script.ended.load(SeqCst),
        script.started(),
        "what is started is ended"
    );
    until(&server, &supervisor, ServerState::Backoff).await;
    let before = Instant::now();
    let error = server.list(all()).await.unwrap_err();
    assert!(
        error
            .public_message()
            .starts_with("the server files is not running: it ended before the handshake"),
        "{}",
        error.public_message()
    );
    assert!(
        before.elapsed() < Duration::from_secs(3),
        "nobody waits for a restart that is far away"
    );
    assert_eq!(server.status().stderr.len(), 50);
}

#[tokio::test(start_paused = true)]
async fn after_a_good_run_the_wait_is_short_again() {
    let (_script, supervisor, server) = start(&[
        ProcessBehavior::Exit,
        ProcessBehavior::Exit,
        ProcessBehavior::Exit,
        ProcessBehavior::Exit,
        ProcessBehavior::Exit,
        ProcessBehavior::Exit,
        ProcessBehavior::Exit,
        ProcessBehavior::Exit,
        ProcessBehavior::Seconds(61),
        ProcessBehavior::Serve,
    ]);
    until(&server, &supervisor, ServerState::Running).await;
    until(&server, &supervisor, ServerState::Backoff).await;
    let before = Instant::now();
    until(&server, &supervisor, ServerState::Running).await;
    assert!(
        before.elapsed() <= Duration::from_millis(600),
        "{:?}",
        before.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_times_out_after_thirty_seconds() {
    let (script, supervisor, server) = start(&[ProcessBehavior::Silent]);
    let before = Instant::now();
    let error = server.call(call()).await.unwrap_err();
    assert_eq!(
        (error.kind(), before.elapsed().as_secs()),
        (&ErrorKind::Upstream, 30)
    );
    assert_eq!(error.starting_servers().join(" "), "files");
    until(&server, &supervisor, ServerState::Backoff).await;
    // The process has four seconds to end after that.
    assert!(
        (30..=35).contains(&before.elapsed().as_secs()),
        "{:?}",
        before.elapsed()
    );
    assert_eq!(script.started(), 1);
}

/// A server that is slow once and was never listed delays lists once, and no list after that.
#[tokio::test(start_paused = true)]
async fn a_hanging_server_delays_only_the_first_lists() {
    let (_script, _supervisor, server) = start(&[ProcessBehavior::Silent]);
    let waited = async || {
        let before = Instant::now();
        let error = server.list(all()).await.unwrap_err();
        assert_eq!(error.starting_servers().join(" "), "files");
        before.elapsed().as_secs()
    };
    assert_eq!(tokio::join!(waited(), waited()), (10, 10));
    assert_eq!((waited().await, waited().await), (0, 0));
}

/// A call does not wait for the end of a long backoff, and does not start a broken program again and again.
#[tokio::test(start_paused = true)]
async fn a_call_starts_a_server_that_waits_for_its_restart() {
    let broken = [ProcessBehavior::Exit; 24];
    let acts = [&broken[..], &[ProcessBehavior::Serve]].concat();
    let (script, supervisor, server) = start(&acts);
    // Skip the first waits, and continue in the middle of a long one.
    while script.started() < 20 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    until(&server, &supervisor, ServerState::Backoff).await;
    // The last attempt was longer than a moment ago.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let mut tries = 0;
    let before = Instant::now();
    while server.call(call()).await.is_err() {
        tries += 1;
        let at_once = server.call(call()).await;
        assert!(at_once.is_err(), "it failed a moment ago");
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    assert!((1..=2).contains(&tries), "{tries}");
    assert!(
        before.elapsed() < Duration::from_secs(20),
        "{:?}",
        before.elapsed()
    );
    assert_eq!(script.started(), 25, "no start for the calls in between");
}

/// A server that crashes after most of a minute each time can nearly always be used.
#[tokio::test(start_paused = true)]
async fn a_server_that_crashes_about_once_a_minute_answers_nearly_all_calls() {
    let (_script, _supervisor, server) = start(&[ProcessBehavior::Seconds(50)]);
    let mut refused = 0;
    for _ in 0..1200 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        refused += usize::from(server.call(call()).await.is_err());
    }
    assert!(refused <= 24, "{refused} of 1200");
}

#[tokio::test(start_paused = true)]
async fn an_exit_counts_even_if_the_pipes_stay_open() {
    let (script, supervisor, server) = start(&[
        ProcessBehavior::Leave,
        ProcessBehavior::Leave,
        ProcessBehavior::Serve,
    ]);
    let before = Instant::now();
    until(&server, &supervisor, ServerState::Running).await;
    assert!(
        before.elapsed() < Duration::from_secs(10),
        "{:?}",
        before.elapsed()
    );
    assert_eq!(script.started(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_program_that_cannot_be_started_is_failed_until_it_can() {
    let (_script, supervisor, server) = start(&[
        ProcessBehavior::Refuse,
        ProcessBehavior::Refuse,
        ProcessBehavior::Refuse,
        ProcessBehavior::Refuse,
        ProcessBehavior::Serve,
    ]);
    until(&server, &supervisor, ServerState::Failed).await;
    let error = server.call(call()).await.unwrap_err();
    let public = error.public_message();
    assert!(public.contains("it could not be started"), "{public}");
    assert!(!public.contains("nothing"), "{public}");
    let detail = error.detail().unwrap().for_operator();
    assert!(detail.contains("no such program: nothing"), "{detail}");
    until(&server, &supervisor, ServerState::Running).await;
    assert_eq!(server.status().restarts, 4);
}

#[tokio::test(start_paused = true)]
async fn one_bad_server_stops_no_other_and_all_end_together() {
    let (good, bad) = (
        ScriptedLauncher::of(&[ProcessBehavior::Serve]),
        ScriptedLauncher::of(&[ProcessBehavior::Silent]),
    );
    struct TwoLaunchers(Arc<ScriptedLauncher>, Arc<ScriptedLauncher>);
    impl ProcessLauncher for TwoLaunchers {
        fn launch<'a>(
            &'a self,
            spec: &'a ServerSpec,
        ) -> BoxFuture<'a, Result<Box<dyn ServerProcess>, LaunchError>> {
            if &*spec.id == "good" {
                self.0.launch(spec)
            } else {
                self.1.launch(spec)
            }
        }
    }
    let specs = ["good", "bad"].map(|id| ServerSpec::new(id, vec!["x".to_owned()]));
    let supervisor = ServerSupervisor::with_launcher(Arc::new(TwoLaunchers(good, bad.clone())));
    let leases = supervisor.lease(specs.to_vec());
    supervisor.replace_servers(leases.clone());
    leases[0].call(call()).await.unwrap();
    let before = Instant::now();
    supervisor.stop().await;
    assert!(
        before.elapsed() < Duration::from_secs(6),
        "{:?}",
        before.elapsed()
    );
    assert!(
        supervisor
            .status()
            .iter()
            .all(|status| status.state == ServerState::Stopped)
    );
    assert_eq!(bad.started(), 1, "nothing is started while all ends");
}
