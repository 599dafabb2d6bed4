//! The running gateway: all its parts, from the start to the end.
//!
//! - `build`: from the start to the parts that run.
//! - `reached`: how callers reach them.
//! - `feed`: what the console is told.
//! - `signals`: what ends them, and what has the config read again.

mod build;
mod feed;
mod reached;
mod signals;

use crate::{config::Config, control::Control, kept_tasks::KeptTasks, seal_keys};
use build::Parts;
use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::net::TcpListener;
use toolgate::visible;
use toolgate_guardian::Guardian;
use toolgate_journal::{
    Journal,
    state::{self, StateLimits},
};
use toolgate_policy::Store;

/// How the gateway is reached.
pub(crate) enum Reach {
    /// Over HTTP, with the console.
    Http(SocketAddr),
    /// Over stdin and stdout.
    Stdio,
}

/// What `serve` and `run` have in common.
pub(crate) struct Start {
    pub(crate) config: Config,
    /// Where the config says to listen; the command line may have another word.
    pub(crate) listen: SocketAddr,
    pub(crate) data: PathBuf,
    pub(crate) reach: Reach,
    /// The arguments with which a host would start the same over stdio.
    pub(crate) stdio: Vec<String>,
}

/// Runs until a signal, the end of stdin, or the end of the guardian.
///
/// # Errors
/// A sentence that says what is in the way and what to do.
pub(crate) fn run(start: Start) -> Result<(), String> {
    // First of all: a port that is taken must leave no trace in the data directory.
    let listener = match &start.reach {
        Reach::Http(address) => Some(listen(*address)?),
        Reach::Stdio => None,
    };
    make_private(&start.data).map_err(|e| {
        format!(
            "cannot use the data directory {}: {e}",
            start.data.display()
        )
    })?;
    let journal = open_journal(&start)?;
    let store = state::State::open(start.data.join("state"), StateLimits::default());
    let store: Arc<dyn Store> =
        Arc::new(store.map_err(|e| format!("cannot open the state: {}", e.detail()))?);
    // Over stdio the end of the process ends the connection, and that its tasks.
    let tasks = match &start.reach {
        Reach::Http(_) => Some(KeptTasks::open(&start.data, &start.config.limits)?),
        Reach::Stdio => None,
    };
    // The one process that this one ever starts, before anything can reach it from outside.
    let guardian =
        Guardian::start().map_err(|e| format!("cannot start the guardian process: {e}"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| format!("cannot start: {e}"))?;
    let result = runtime.block_on(serve(
        start,
        listener,
        journal.clone(),
        (store, tasks.as_ref()),
        Arc::new(guardian),
    ));
    // A read of the terminal may still block a thread; it must not hold up the end.
    runtime.shutdown_timeout(Duration::from_millis(200));
    journal.close();
    result
}

fn open_journal(start: &Start) -> Result<Arc<Journal>, String> {
    let mut options = start.config.audit.options(&start.data);
    options.product = format!("toolgate {}", env!("CARGO_PKG_VERSION"));
    let limits = &start.config.limits;
    options.queue = limits.audit_queue;
    options.queue_bytes = limits.audit_queue_bytes;
    options.batch = limits.audit_batch;
    options.wait = Duration::from_millis(limits.audit_wait_milliseconds);
    options.config_hash = start.config.hash.clone().unwrap_or_default();
    let journal = Journal::open(options).map_err(|e| format!("cannot open the audit log: {e}"))?;
    warn_of_damage(&journal);
    Ok(Arc::new(journal))
}

/// Prints damage to the audit log that no operator has acknowledged.
pub(crate) fn warn_of_damage(journal: &Journal) {
    // What cannot be read here is shown by `toolgate status`.
    for notice in journal.notices().unwrap_or_default() {
        let (about, why) = (visible(&notice.about), visible(&notice.why));
        eprintln!(
            "toolgate: the audit log is damaged: {about}: {why}; run: toolgate audit verify, then: toolgate audit acknowledge"
        );
    }
}

fn make_private(data: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(data)
}

async fn serve(
    start: Start,
    listener: Option<std::net::TcpListener>,
    journal: Arc<Journal>,
    (store, tasks): (Arc<dyn Store>, Option<&KeptTasks>),
    guardian: Arc<Guardian>,
) -> Result<(), String> {
    let address = listener.as_ref().and_then(|l| l.local_addr().ok());
    let listener = listener.map(TcpListener::from_std).transpose();
    let listener = listener.map_err(|e| format!("cannot listen: {e}"))?;
    let stores = (store.clone(), tasks);
    let parts = Parts::build(&start, &journal, stores, guardian.clone(), address).await?;
    let keys = seal_keys::of_now(store.as_ref()).await?;
    let set = parts.server.set_seal_keys(&keys);
    set.map_err(|e| e.public().to_owned())?;
    parts.server.take_up_tasks().await;
    let control =
        Control::open(&start.data).map_err(|e| format!("cannot open the control socket: {e}"))?;
    // Whoever reads that it is ready may tell it to stop at once.
    let (hangup, stop) = (signals::hangup()?, signals::stop()?);
    eprint!("{}", parts.ready(&start, address));
    let result = tokio::select! {
        result = parts.reached(&start, listener, stop) => result,
        () = control.serve(parts.operator.clone()) => Ok(()),
        () = parts.feed() => Ok(()),
        () = seal_keys::renew(store, parts.server.clone()) => Ok(()),
        () = parts.reloader.watch(hangup) => Ok(()),
        () = guardian.died() => Err("the guardian process ended, and with it all servers; start toolgate again".to_owned()),
    };
    drop(control);
    parts.supervisor.stop().await;
    if let Some(tasks) = tasks {
        tasks.settle().await;
    }
    result
}

fn listen(address: SocketAddr) -> Result<std::net::TcpListener, String> {
    let bound = std::net::TcpListener::bind(address)
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
    bound.map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "{address} is in use, perhaps by another toolgate; give this one another port with --listen {}:0, or use the one that runs: toolgate console",
            address.ip()
        ),
        io::ErrorKind::PermissionDenied => format!("cannot listen on {address}: no permission; take a port above 1023 with --listen"),
        _ => format!("cannot listen on {address}: {error}"),
    })
}
