//! The running gateway: all its parts, from start to shutdown.
//!
//! - `build`: construction of the parts.
//! - `transports`: transports to callers.
//! - `admin_listener`: listener of its own for health pages and metrics.
//! - `handover`: handover of the listeners to a new process.
//! - `gauges`: state of the gateway, for metrics.
//! - `console_events`: events for the console.
//! - `server_events`, `approval_events`: events for the audit log and the event log.
//! - `service_manager`: listeners that systemd opened, and notifications to it.
//! - `signals`: signals for shutdown and reload.

mod admin_listener;
mod approval_events;
mod build;
mod console_events;
pub(crate) mod edge_audit;
mod gauges;
mod handover;
pub(crate) mod http_server;
mod notifications;
pub(crate) mod routes;
mod server_events;
mod service_manager;
mod signals;
mod transports;

use crate::{
    config::Config,
    event_log::{self, GatewayEvent},
    fleet::{GatewayFleet, PeerListener, SegmentCopier},
    operator::control::{ControlSocket, SuccessorHandler},
    runtime::content_retention::enforce_retention,
    runtime::persistent_tasks::PersistentTasks,
    runtime::rate_sharing::share_rates,
    runtime::seal_keys,
    runtime::store_location::{OpenedState, StoreLocation, report_status},
    telemetry::GatewayTelemetry,
};
use build::{BoundAddress, GatewayParts, GatewayStores};
use handover::{ListenerHandover, ListenerKind, Predecessor, TransferredSessions};
use service_manager::InheritedListeners;
use std::{
    io,
    net::SocketAddr,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::net::TcpListener;
use toolgate_core::visible;
use toolgate_guardian::Guardian;
use toolgate_journal::AuditJournal;
use toolgate_policy::ContentKeys;

/// Transport of the gateway.
pub(crate) enum GatewayTransport {
    /// Over HTTP, with the console.
    Http(SocketAddr),
    /// Over stdin and stdout.
    Stdio,
}

/// Start options that `serve` and `run` share.
pub(crate) struct StartOptions {
    pub(crate) config: Config,
    /// Listen address of the config, which the command line may override.
    pub(crate) config_listen: SocketAddr,
    pub(crate) data: PathBuf,
    pub(crate) transport: GatewayTransport,
    /// True to take over from the running gateway.
    pub(crate) take_over: bool,
    /// Arguments with which a host would start the same gateway over stdio.
    pub(crate) stdio: Vec<String>,
}

/// Runs until a signal, the end of stdin, or the end of the guardian.
///
/// # Errors
/// The message says what prevents the start and what to do.
pub(crate) fn run(start: StartOptions) -> Result<(), String> {
    // Bind first: if the port is in use, the data directory must stay untouched.
    let mut inherited = InheritedListeners::take()?;
    let mut predecessor = find_predecessor(&start)?;
    let mut open = |kind, address| {
        let taken = predecessor.as_mut();
        let taken = taken.and_then(|taken| taken.listener(kind, address));
        let found = taken.or_else(|| inherited.listener(address, kind == ListenerKind::Gateway));
        found.map_or_else(|| listen(address), Ok)
    };
    let listener = match &start.transport {
        GatewayTransport::Http(address) => Some(open(ListenerKind::Gateway, *address)?),
        GatewayTransport::Stdio => None,
    };
    create_data_directory(&start)?;
    let admin = start.config.admin.listen;
    let admin = admin.map(|address| open(ListenerKind::Admin, address));
    let admin = admin.transpose()?;
    let telemetry = GatewayTelemetry::new(&start.config.telemetry)?;
    let journal = open_journal(&start, &telemetry)?;
    let state = StoreLocation::of(&start.config, &start.data)?.open_at_start()?;
    // Over stdio, the connection ends with the process, and its tasks end with the connection.
    let tasks = match &start.transport {
        GatewayTransport::Http(_) => {
            Some(PersistentTasks::open(&start.data, &start.config.limits)?)
        }
        GatewayTransport::Stdio => None,
    };
    // The guardian is the only process that this one starts. It starts before anything outside can reach the gateway.
    let guardian = Guardian::start()
        .map_err(|e| format!("cannot start the guardian process, which runs the servers: {e}; raise the limits on processes and open files of this user"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| format!("cannot start the threads of the gateway: {e}; raise the limit on processes of this user"))?;
    let store = state.store.clone();
    let copier = SegmentCopier::start(&start.config, &start.data, &telemetry.registry)?;
    let result = runtime.block_on(serve(
        start,
        (listener, admin, predecessor),
        (journal.clone(), telemetry),
        (state, tasks.as_ref()),
        Arc::new(guardian),
    ));
    // Reading the terminal may still block a thread, which must not delay the exit.
    runtime.shutdown_timeout(Duration::from_millis(200));
    store.close();
    journal.close();
    if let Some(copier) = copier {
        copier.finish();
    }
    result
}

/// Finds the running gateway from which this process takes over, if it shall and there is one.
fn find_predecessor(start: &StartOptions) -> Result<Option<Predecessor>, String> {
    match &start.transport {
        GatewayTransport::Http(address) if start.take_over => {
            create_data_directory(start)?;
            Predecessor::find(&start.data, *address)
        }
        _ => Ok(None),
    }
}

fn create_data_directory(start: &StartOptions) -> Result<(), String> {
    make_private(&start.data).map_err(|e| {
        format!(
            "cannot use the data directory {}: {e}; correct its permissions, or choose another with --data DIR",
            start.data.display()
        )
    })
}

fn open_journal(
    start: &StartOptions,
    telemetry: &GatewayTelemetry,
) -> Result<Arc<AuditJournal>, String> {
    let mut options = start.config.audit.journal_options(&start.data);
    options.product = format!("toolgate {}", env!("CARGO_PKG_VERSION"));
    let limits = &start.config.limits;
    options.max_queue_entries = limits.audit_queue;
    options.max_queue_bytes = limits.audit_queue_bytes;
    options.max_batch_records = limits.audit_batch;
    options.max_batch_wait = Duration::from_millis(limits.audit_wait_milliseconds);
    options.observer = Some(telemetry.audit_writes.clone());
    options.config_hash = start.config.hash.clone().unwrap_or_default();
    let journal = AuditJournal::open(options).map_err(|e| e.to_string())?;
    warn_of_damage(&journal);
    Ok(Arc::new(journal))
}

/// Prints damage to the audit log that no operator has acknowledged.
pub(crate) fn warn_of_damage(journal: &AuditJournal) {
    // If the notices cannot be read here, `toolgate status` shows that.
    for notice in journal.notices().unwrap_or_default() {
        let (about, why) = (visible(&notice.subject), visible(&notice.description));
        let text = format!(
            "the audit log is damaged: {about}: {why}; run: toolgate audit verify, then: toolgate audit acknowledge"
        );
        event_log::emit(GatewayEvent::Problem { text });
    }
}

/// Creates the data directory, which only its owner may enter.
pub(crate) fn make_private(data: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(data)
}

async fn serve(
    start: StartOptions,
    (listener, admin, mut predecessor): (
        Option<std::net::TcpListener>,
        Option<std::net::TcpListener>,
        Option<Predecessor>,
    ),
    (journal, telemetry): (Arc<AuditJournal>, Arc<GatewayTelemetry>),
    (state, tasks): (OpenedState, Option<&PersistentTasks>),
    guardian: Arc<Guardian>,
) -> Result<(), String> {
    let OpenedState { store, shared } = state;
    let address = listener.as_ref().and_then(|l| l.local_addr().ok());
    let to_tokio = |listener: Option<std::net::TcpListener>| {
        let listener = listener.map(TcpListener::from_std).transpose();
        listener.map_err(|e| format!("cannot listen for connections: {e}; restart toolgate"))
    };
    let (listener, admin) = (to_tokio(listener)?, to_tokio(admin)?);
    let at = address.map(|address| BoundAddress::new(&start.config, address));
    let at = at.transpose()?;
    let joined = match &shared {
        Some(_) => {
            let policy = start.config.hash.clone().unwrap_or_default();
            let age = Duration::from_secs(start.config.limits.session_max_seconds);
            let mirror = start.config.audit.checkpoint_mirror(&start.data);
            let taken = predecessor.as_mut().and_then(Predecessor::peer_listener);
            let joined = GatewayFleet::join(
                (&start.config.store, taken),
                &policy,
                store.clone(),
                mirror,
                age,
            );
            Some(joined.await?)
        }
        None => None,
    };
    let (fleet, peers) = joined.map_or((None, None), |(fleet, peers)| {
        (Some(Arc::new(fleet)), peers)
    });
    let transferred = Arc::<TransferredSessions>::default();
    let stores = GatewayStores {
        sessions: transferred.clone(),
        state: store.clone(),
        shared: shared.clone(),
        fleet: fleet.clone(),
        gateways: start.config.store.gateways,
        tasks,
    };
    let processes = guardian.clone();
    let parts = GatewayParts::build(&start, &journal, stores, processes, at, &telemetry).await?;
    let keys = seal_keys::current_keys(store.as_ref()).await?;
    let set = parts.server.set_seal_keys(&keys);
    set.map_err(|e| e.public_message().to_owned())?;
    parts.server.recover_tasks().await;
    if let Some(predecessor) = &predecessor {
        parts.check_successor(predecessor).await?;
    }
    let handover = {
        let listeners = [
            (ListenerKind::Gateway, listener.as_ref().map(AsFd::as_fd)),
            (ListenerKind::Admin, admin.as_ref().map(AsFd::as_fd)),
            (ListenerKind::Peers, peers.as_ref().map(AsFd::as_fd)),
        ];
        let duplicates = listeners
            .into_iter()
            .filter_map(|(kind, fd)| Some(fd?.try_clone_to_owned().map(|fd| (kind, fd))));
        let duplicates: io::Result<Vec<(ListenerKind, OwnedFd)>> = duplicates.collect();
        let duplicates = duplicates.map_err(|e| {
            format!(
                "cannot duplicate the listeners: {e}; raise the limit on open files of this user"
            )
        })?;
        let routes = parts.routes.as_ref().zip(address);
        routes.map(|(routes, address)| {
            Arc::new(ListenerHandover::new(
                address,
                duplicates,
                (routes.endpoint.clone(), transferred.clone()),
                parts.supervisor.clone(),
                journal.clone(),
            ))
        })
    };
    let control = ControlSocket::open(&start.data)
        .map_err(|e| format!("cannot open the control socket, through which the toolgate commands reach this gateway: {e}; check that the data directory is writable"))?;
    // A program that reads the banner may send a signal at once, so install the handlers first.
    let (hangup, stop) = (signals::hangup()?, signals::stop()?);
    let predecessor = match predecessor {
        Some(predecessor) => predecessor.take_over(transferred.clone()).await,
        None => None,
    };
    parts.announce(&start, address);
    service_manager::notify_ready();
    let handover = handover.as_ref();
    let of_successor = handover.map(|handover| handover.clone() as Arc<dyn SuccessorHandler>);
    let content_keys = ContentKeys::new(store.clone());
    let location = StoreLocation::of(&start.config, &start.data)?;
    let place = (start.data.as_path(), &location);
    let result = tokio::select! {
        () = enforce_retention(&content_keys, &parts.active, &journal, place) => Ok(()),
        result = parts.serve_transport(&start, listener, (stop, handover)) => result,
        () = control.serve(parts.operator.clone(), of_successor) => Ok(()),
        () = parts.run_feeds() => Ok(()),
        () = parts.serve_admin(&start, admin, handover) => Ok(()),
        () = parts.follow_predecessor(predecessor, &transferred, tasks) => Ok(()),
        () = telemetry.export() => Ok(()),
        () = report_status(shared.as_deref()) => Ok(()),
        () = share_rates(shared.as_deref(), &parts.active) => Ok(()),
        () = follow_fleet(fleet.as_deref(), peers, (&parts, handover)) => Ok(()),
        () = seal_keys::refresh_keys(store, parts.server.clone()) => Ok(()),
        () = parts.reloader.watch(hangup) => Ok(()),
        () = guardian.died() => Err("the guardian process, which runs the servers, has ended, and all servers with it; start toolgate again".to_owned()),
    };
    drop(control);
    if let Some(fleet) = &fleet {
        fleet.members.leave().await;
    }
    parts.supervisor.stop().await;
    telemetry.flush().await;
    if let Some(tasks) = tasks {
        tasks.flush().await;
    }
    result
}

/// Serves other gateways, and follows them. Never returns.
async fn follow_fleet(
    fleet: Option<&GatewayFleet>,
    peers: Option<PeerListener>,
    (parts, handover): (&GatewayParts, Option<&Arc<ListenerHandover>>),
) {
    let Some(fleet) = fleet else {
        return std::future::pending().await;
    };
    let policy = || {
        parts
            .active
            .snapshot()
            .config
            .hash
            .clone()
            .unwrap_or_default()
    };
    let membership = async {
        tokio::select! {
            () = fleet.follow(policy) => {}
            () = handed_over(handover) => {}
        }
        // The successor is a gateway of its own. It and the others continue the sessions of this one.
        fleet.members.leave().await;
        std::future::pending().await
    };
    match peers {
        Some(peers) => tokio::select! {
            () = membership => {}
            () = peers.serve(parts.routes.clone(), handed_over(handover)) => {}
        },
        None => membership.await,
    }
}

/// Resolves when a successor accepts the connections.
async fn handed_over(handover: Option<&Arc<ListenerHandover>>) {
    match handover {
        Some(handover) => handover.handed_over().await,
        None => std::future::pending().await,
    }
}

fn listen(address: SocketAddr) -> Result<std::net::TcpListener, String> {
    let bound = std::net::TcpListener::bind(address)
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
    bound.map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "{address} is in use, perhaps by another toolgate; choose another port with --listen {}:0, or use the running gateway: `toolgate console` prints a link to its console",
            address.ip()
        ),
        io::ErrorKind::PermissionDenied => format!("cannot listen on {address}: permission denied; choose a port above 1023 with --listen"),
        _ => format!("cannot listen on {address}: {error}; choose another address with --listen, or change `listen` in the config"),
    })
}
