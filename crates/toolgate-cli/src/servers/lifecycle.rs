//! Lifecycle loop of a server: start or connect, open, watch and end, again and again.

use super::{
    ServerState, SupervisedServer,
    backoff::RestartBackoff,
    down_reason::DownReason,
    launch::{ProcessLauncher, ProcessPipes},
    per_caller,
    remote::run_remote,
};
use crate::config::{RemoteAddress, RevisionChoice};
use futures_util::future::{Either, select};
use std::{
    future::{Future, pending},
    pin::pin,
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};
use toolgate::client::{EraPreference, OpenError, RemoteOptions, RemoteServer};
use toolgate_core::{
    BoxFuture, Caller, ChangeFilter, ChangeSet, ItemKind, ListRequest, Origin, Service,
};

/// Timeout for reading the rest of stderr after the process exited.
const FINAL_STDERR_TIMEOUT: Duration = Duration::from_secs(1);
/// Reason for the end of a connection whose process exited; how it exited replaces it.
const EXIT_REASON: &str = "it exited";
/// Timeout for stopping a process. The guardian's own steps are shorter.
const PROCESS_STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Minimum time between two lists of our own, however often a server reports a change.
const MIN_LIST_INTERVAL: Duration = Duration::from_secs(1);

/// Delay before a list that took too long is requested again.
const LATE_LIST_RETRY_DELAY: Duration = Duration::from_secs(5);

/// End of a server's process or connection.
pub(super) enum ServerEnd {
    /// The process or connection is gone: the reason, and how long it was usable, if ever.
    Lost(String, Option<Duration>),
    /// It could not be started: the reason, and whether a retry makes sense.
    NotStarted(String, bool),
    /// It ended after the first request. Another protocol era may avoid that.
    FirstRequest,
    /// It sends input requests as results, so it is opened again in the newest revision.
    InputByResult,
    /// An operator restarts it.
    Restarted,
}

/// Consecutive attempt to open a server. The second one uses another protocol era, or no probe.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum OpeningAttempt {
    First,
    /// The second attempt, after the server ended at the first request.
    Second,
}

/// Keeps one server running until `stop`.
pub(super) async fn supervise(
    server: Arc<SupervisedServer>,
    launch: Arc<dyn ProcessLauncher>,
    mut stop: watch::Receiver<bool>,
) {
    let (mut backoff, mut attempt, mut again) =
        (RestartBackoff::default(), OpeningAttempt::First, false);
    while !*stop.borrow() {
        server.starting(again);
        let life = match &server.spec.address {
            Some(address) if address.has_caller_connections() => {
                per_caller::serve(&server, address, launch.as_ref(), stop.clone()).await
            }
            Some(address) => run_remote(&server, address, launch.as_ref(), stop.clone()).await,
            None => run_process(&server, launch.as_ref(), attempt, stop.clone()).await,
        };
        if *stop.borrow() {
            break;
        }
        let (state, error, ran) = match life {
            ServerEnd::FirstRequest => {
                (attempt, again) = (OpeningAttempt::Second, false);
                continue;
            }
            ServerEnd::InputByResult => {
                (attempt, again) = (OpeningAttempt::First, false);
                continue;
            }
            ServerEnd::Restarted => {
                (attempt, again) = (OpeningAttempt::First, true);
                continue;
            }
            // The second attempt failed too, so the first request was not the cause.
            ServerEnd::Lost(error, None) => {
                attempt = OpeningAttempt::First;
                (
                    ServerState::Backoff,
                    DownReason::of_server(error),
                    Duration::ZERO,
                )
            }
            ServerEnd::Lost(error, Some(ran)) => {
                (ServerState::Backoff, DownReason::of_server(error), ran)
            }
            ServerEnd::NotStarted(error, true) => (
                ServerState::Failed,
                DownReason::of_start(error),
                Duration::ZERO,
            ),
            ServerEnd::NotStarted(error, false) => {
                let reason = DownReason::of_start(error);
                server.down(ServerState::Failed, Some(reason), None);
                return;
            }
        };
        again = true;
        let wait = backoff.next(ran);
        server.down(state, Some(error), Some(Instant::now() + wait));
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => {}
            () = server.wait_for_retry() => {}
            () = server.wait_for_start_request() => {}
            () = sleep(wait) => {}
        }
    }
    server.down(ServerState::Stopped, None, None);
}

/// Runs one process from its start to its end.
async fn run_process(
    server: &SupervisedServer,
    launch: &dyn ProcessLauncher,
    attempt: OpeningAttempt,
    mut stop: watch::Receiver<bool>,
) -> ServerEnd {
    let started = tokio::select! {
        started = launch.launch(&server.spec) => started,
        _ = stop.wait_for(|stop| *stop) => return stopping(),
    };
    let mut process = match started {
        Ok(process) => process,
        Err(not) => return ServerEnd::NotStarted(not.reason, not.may_retry),
    };
    let Some(ProcessPipes {
        stdin,
        stdout,
        stderr,
    }) = process.pipes()
    else {
        return ServerEnd::NotStarted(
            "its stdin or stdout could not be opened; raise the limit on open files (ulimit -n)"
                .to_owned(),
            true,
        );
    };
    let opening = RemoteServer::open(stdout, stdin, remote_options(server, attempt));
    let exited = process.exited();
    let work = pin!(async {
        let end = tokio::select! {
            end = run_connection(server, exited, opening, attempt) => end,
            _ = stop.wait_for(|stop| *stop) => stopping(),
        };
        server.close();
        let exit = timeout(PROCESS_STOP_TIMEOUT, process.end()).await;
        (
            end,
            exit.unwrap_or_else(|_| "it did not end when the gateway stopped it".to_owned()),
        )
    });
    let errors = pin!(server.stderr_tail.read(stderr, || server.notify_console()));
    let (end, exit) = match select(work, errors).await {
        Either::Left((ended, errors)) => {
            // The rest of its stderr may say why it ended.
            let _ = timeout(FINAL_STDERR_TIMEOUT, errors).await;
            ended
        }
        Either::Right(((), work)) => work.await,
    };
    match end {
        ServerEnd::Lost(why, ran) => ServerEnd::Lost(with_exit(&why, &exit), ran),
        other => other,
    }
}

pub(super) fn stopping() -> ServerEnd {
    ServerEnd::Lost("the gateway is stopping".to_owned(), None)
}

/// Opens the server and uses it until it is gone.
pub(super) async fn run_connection(
    server: &SupervisedServer,
    exited: BoxFuture<'static, String>,
    opening: impl Future<Output = Result<RemoteServer, OpenError>>,
    attempt: OpeningAttempt,
) -> ServerEnd {
    let first = attempt == OpeningAttempt::First;
    // Its own child processes may keep the pipes open, so its exit counts too. Wait a moment for the rest of stderr.
    let mut exited = pin!(async {
        exited.await;
        sleep(FINAL_STDERR_TIMEOUT).await;
    });
    let opened = tokio::select! {
        opened = opening => opened,
        () = &mut exited => Err(if first { OpenError::ClosedDuringProbe } else { OpenError::Closed(EXIT_REASON.to_owned()) }),
    };
    let remote = match opened {
        Ok(remote) => Arc::new(remote),
        Err(OpenError::ClosedDuringProbe) if first => return ServerEnd::FirstRequest,
        Err(OpenError::ClosedDuringProbe) => {
            return ServerEnd::Lost(
                "it ended before the handshake was complete".to_owned(),
                None,
            );
        }
        Err(OpenError::Unusable(why)) => return ServerEnd::NotStarted(why, false),
        Err(error) => return ServerEnd::Lost(error.to_string(), None),
    };
    let began = Instant::now();
    let restarted = server.wait_for_restart();
    server.running(Some(remote.clone()));
    let why = tokio::select! {
        () = restarted => {
            remote.close_and_wait().await;
            return ServerEnd::Restarted;
        }
        why = remote.closed() => why,
        () = exited => EXIT_REASON.to_owned(),
        () = server.wait_for_sign_in() => "a user signed in".to_owned(),
        () = watch_tools(server, &remote) => "its connection was closed".to_owned(),
        () = server.wait_for_input_by_result() => {
            remote.close_and_wait().await;
            return ServerEnd::InputByResult;
        }
        () = read_late_lists(server, &remote) => "its connection was closed".to_owned(),
    };
    ServerEnd::Lost(why, Some(began.elapsed()))
}

/// Adds how a process exited to the reason for which its connection ended.
fn with_exit(why: &str, exit: &str) -> String {
    match why.strip_suffix(EXIT_REASON) {
        Some(before) => format!("{before}{exit}"),
        None => format!("{why}; {exit}"),
    }
}

/// Keeps the list of tools filled, so that the console has it before any caller asks, and forwards its changes.
async fn watch_tools(server: &SupervisedServer, remote: &RemoteServer) {
    let caller = Caller::new("toolgate");
    let list = async || {
        // A caller that lists next gets the same error.
        let _ = remote
            .list(ListRequest::all(caller.clone(), ItemKind::Tool))
            .await;
        server.notify_console();
    };
    // A server may be slow to confirm the subscription; list it meanwhile.
    let changes = remote.changes(ChangeFilter::all_lists(caller.clone()));
    let (mut changes, ()) = tokio::join!(changes, list());
    loop {
        let told = match &mut changes {
            Ok(changes) => changes.next().await,
            Err(_) => None,
        };
        let Some(changed) = told else {
            return pending().await;
        };
        server.mark_stale(&changed);
        sleep(MIN_LIST_INTERVAL).await;
        list().await;
    }
}

/// Reads the lists that took too long for callers, until they are complete.
async fn read_late_lists(server: &SupervisedServer, remote: &RemoteServer) {
    loop {
        let kind = server.lists.next_late().await;
        let ask = ListRequest::all(Caller::new("toolgate"), kind);
        match remote.list(ask).await {
            Ok(catalog) => {
                server.lists.store(&server.spec, kind, &catalog).await;
                server.lists.mark_complete(kind);
                server.mark_stale(&ChangeSet::of_lists(vec![kind]));
            }
            Err(_) => sleep(LATE_LIST_RETRY_DELAY).await,
        }
    }
}

pub(super) fn remote_options(server: &SupervisedServer, attempt: OpeningAttempt) -> RemoteOptions {
    let origin = Origin {
        server: server.spec.id.clone(),
        trusted: server.spec.trusted,
    };
    let mut options = RemoteOptions::new(origin);
    options.open_timeout = server.spec.start_timeout;
    options.revision_setting = RevisionChoice::config_hint;
    let second = attempt == OpeningAttempt::Second;
    match server.current_revision() {
        RevisionChoice::Auto if second => {}
        RevisionChoice::Auto => options.era = EraPreference::Session,
        RevisionChoice::Newest => options.probe = !second,
        RevisionChoice::Only(dialect) => options.revisions = vec![dialect],
    }
    // Callers wait for results and want progress. A server that requires tasks has to say so.
    options.tasks = false;
    options.max_line_bytes = server.spec.max_line_bytes;
    options.json_limits = server.spec.json_limits.clone();
    options.budget_scope = server.spec.budget.clone();
    (
        options.max_parked_calls,
        options.max_parked_calls_per_caller,
        options.parked_call_timeout,
    ) = server.spec.parked;
    options.ping_interval = server.spec.ping_interval;
    options.max_instructions_bytes = server.spec.max_instruction_bytes;
    options.max_items = server.spec.max_tools;
    options.max_list_bytes = server.spec.max_list_bytes;
    options.max_list_ttl = server.spec.list_ttl;
    options.capabilities = server.spec.capabilities.clone();
    options.operation_observer = server.outputs.operations.clone();
    options.observed_address = server.spec.address.as_ref().and_then(observed_address);
    options
}

/// Returns the host and the port of a server's address.
fn observed_address(address: &RemoteAddress) -> Option<(Arc<str>, u16)> {
    let uri: http::Uri = address.url.parse().ok()?;
    let default = if uri.scheme_str() == Some("https") {
        443
    } else {
        80
    };
    Some((uri.host()?.into(), uri.port_u16().unwrap_or(default)))
}
