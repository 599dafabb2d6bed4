//! The running gateway: all its parts, from the start to the end.

use crate::{
    board::Board,
    config::Config,
    console::{Console, Logins},
    control::Control,
    http_server::{self, ListenLimits},
    instructions::Instructions,
    operator::Operator,
    routes::Routes,
    seal_keys,
    servers::{State, Supervisor},
    stack,
    startup::Ready,
    witness::EdgeWitness,
};
use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{net::TcpListener, signal::unix};
use toolgate::{
    Caller, Interest, Service,
    edge::{
        Front,
        http::{Endpoint, HostGuard},
        stdio,
    },
};
use toolgate_guardian::Guardian;
use toolgate_journal::{
    Journal,
    state::{self, StateLimits},
};
use toolgate_policy::{self as policy, Store};

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
    pub(crate) data: PathBuf,
    pub(crate) reach: Reach,
    /// The arguments with which a host would start the same over stdio.
    pub(crate) stdio: Vec<String>,
}

/// How often idle sessions are looked for.
const SWEEP: Duration = Duration::from_secs(30);
/// Least time between two tellings of the same thing.
const CALM: Duration = Duration::from_millis(250);

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
    let store: Arc<dyn Store> = Arc::new(store.map_err(|e| format!("cannot open the state: {e}"))?);
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
        store,
        Arc::new(guardian),
    ));
    // A read of the terminal may still block a thread; it must not hold up the end.
    runtime.shutdown_timeout(Duration::from_millis(200));
    journal.close();
    result
}

fn open_journal(start: &Start) -> Result<Arc<Journal>, String> {
    let mut options = toolgate_journal::Options::new(start.data.join("audit"));
    options.product = format!("toolgate {}", env!("CARGO_PKG_VERSION"));
    options.config_hash = start.config.hash.clone().unwrap_or_default();
    let journal = Journal::open(options).map_err(|e| format!("cannot open the audit log: {e}"))?;
    Ok(Arc::new(journal))
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
    store: Arc<dyn Store>,
    guardian: Arc<Guardian>,
) -> Result<(), String> {
    let address = listener.as_ref().and_then(|l| l.local_addr().ok());
    let listener = listener.map(TcpListener::from_std).transpose();
    let listener = listener.map_err(|e| format!("cannot listen: {e}"))?;
    let parts = Parts::build(&start, &journal, store.clone(), guardian.clone(), address)?;
    let keys = seal_keys::of_now(store.as_ref()).await?;
    let set = parts.server.set_seal_keys(&keys);
    set.map_err(|e| e.public().to_owned())?;
    let control =
        Control::open(&start.data).map_err(|e| format!("cannot open the control socket: {e}"))?;
    eprint!("{}", parts.ready(&start, address));
    let result = tokio::select! {
        result = parts.reached(&start, listener) => result,
        () = control.serve(parts.operator.clone()) => Ok(()),
        () = parts.feed() => Ok(()),
        () = seal_keys::renew(store, parts.server.clone()) => Ok(()),
        () = guardian.died() => Err("the guardian process ended, and with it all servers; start toolgate again".to_owned()),
    };
    drop(control);
    parts.supervisor.stop().await;
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

/// What runs.
struct Parts {
    server: Arc<Front>,
    service: Arc<dyn Service>,
    supervisor: Arc<Supervisor>,
    operator: Arc<Operator>,
    routes: Option<Arc<Routes>>,
}

impl Parts {
    fn build(
        start: &Start,
        journal: &Arc<Journal>,
        store: Arc<dyn Store>,
        guardian: Arc<Guardian>,
        address: Option<SocketAddr>,
    ) -> Result<Parts, String> {
        let config = &start.config;
        let token = config.read_token().map_err(|e| e.to_string())?;
        let board = Arc::new(Board::new());
        let recorder = Arc::new(policy::Recorder::new(journal.clone()));
        let desk = policy::Desk::new(recorder.clone(), stack::desk_limits(config));
        let route = stack::route(config, recorder, desk.clone(), store, board.clone());
        let supervisor = Arc::new(Supervisor::start(guardian, stack::specs(config)));
        let end = Arc::new(stack::aggregate(config, &supervisor)?);
        let known: Arc<dyn Service> = Arc::new(stack::Known(end.clone()));
        let tools: Arc<dyn Service> = Arc::new(policy::inspect(&route, known));
        let service: Arc<dyn Service> = Arc::new(policy::pipeline(&route, end.clone()));
        let witness = Arc::new(EdgeWitness::new(journal.clone()));
        let server = Front::new(
            service.clone(),
            "toolgate",
            env!("CARGO_PKG_VERSION"),
            stack::server_limits(config),
        );
        let instructions = Instructions {
            known: tools.clone(),
            access: stack::access(config),
            most: config.limits.instructions_bytes,
        };
        let server = Arc::new(
            server
                .map_err(|e| e.public().to_owned())?
                .with_instructions_of(Arc::new(instructions))
                .with_witness(witness.clone()),
        );
        let logins = address.map(|address| Arc::new(Logins::new(reachable(address))));
        let operator = Arc::new(Operator {
            board,
            desk,
            supervisor: supervisor.clone(),
            tools,
            servers: end,
            caller: Caller::new(caller_name(config, address)),
            access: stack::access(config),
            server: server.clone(),
            logins: logins.clone(),
            endpoint: address.map_or("stdio".to_owned(), |a| {
                format!("http://{}/mcp", reachable(a))
            }),
            data: start.data.display().to_string(),
        });
        let routes = logins.zip(address).map(|(logins, address)| {
            let guard = HostGuard::loopback(address.port())
                .allow_hosts(own_host(address).as_deref())
                .allow_hosts(config.allowed_hosts.iter().map(String::as_str))
                .allow_origins(config.allowed_origins.iter().map(String::as_str));
            Arc::new(Routes {
                guard,
                token,
                endpoint: Endpoint::new(server.clone(), stack::http_limits(config)),
                console: Console {
                    logins,
                    operator: operator.clone(),
                },
                witness,
            })
        });
        Ok(Parts {
            server,
            service,
            supervisor,
            operator,
            routes,
        })
    }

    fn ready(&self, start: &Start, address: Option<SocketAddr>) -> String {
        let program = std::env::current_exe().unwrap_or_else(|_| "toolgate".into());
        let endpoint = address.map(|a| format!("http://{}/mcp", reachable(a)));
        let console = self.operator.logins.as_ref().map(|logins| logins.link());
        let example = start
            .config
            .is_demo()
            .then_some(("demo.add", "{\"a\": 1, \"b\": 2}"));
        let ready = Ready {
            endpoint: endpoint.as_deref(),
            console: console.as_deref(),
            data: &start.data,
            program: &program,
            stdio: &start.stdio,
            example,
            token: start.config.token.is_some(),
            note: address
                .filter(|a| a.ip().is_unspecified())
                .map(|_| ANY.to_owned()),
        };
        ready.text()
    }

    /// Serves until it is told to stop, or nobody can reach it any more.
    async fn reached(&self, start: &Start, listener: Option<TcpListener>) -> Result<(), String> {
        let stop = stop_signal()?;
        let drain = Duration::from_secs(start.config.limits.drain_seconds);
        match (listener, &self.routes) {
            (Some(listener), Some(routes)) => {
                let limits = ListenLimits {
                    connections: start.config.limits.connections,
                    headers: Duration::from_secs(start.config.limits.header_seconds),
                    drain,
                };
                let (endpoint, server) = (routes.endpoint.clone(), self.server.clone());
                let stop = async {
                    tokio::select! {
                        () = stop => {}
                        () = sweep(&endpoint) => {}
                    }
                    // Streams end, and calls that only wait for a person; what runs may end within the drain time.
                    server.close();
                };
                http_server::serve(listener, routes.clone(), limits, stop).await;
                endpoint.close();
                Ok(())
            }
            _ => {
                let served = stdio::serve(
                    self.server.clone(),
                    Caller::new("local@stdio"),
                    tokio::io::stdin(),
                    tokio::io::stdout(),
                );
                let stop = async {
                    stop.await;
                    // Calls that only wait for a person end; what runs may end within the drain time.
                    self.server.close();
                    tokio::time::sleep(drain).await;
                };
                tokio::select! {
                    result = served => result.map_err(|e| format!("stdin or stdout broke: {e}")),
                    () = stop => Ok(()),
                }
            }
        }
    }

    /// Keeps the console up to date with what is not a call.
    async fn feed(&self) {
        tokio::join!(self.feed_desk(), self.feed_servers(), self.feed_tools());
    }

    async fn feed_desk(&self) {
        let mut desk = self.operator.desk.changes();
        let mut known = Vec::new();
        while desk.changed().await.is_ok() {
            self.operator.tell_pending(&mut known);
        }
    }

    async fn feed_servers(&self) {
        let mut servers = self.supervisor.watch();
        while servers.changed().await.is_ok() {
            if self.operator.board.is_watched() {
                let status = self.operator.server_status();
                self.operator.board.tell("servers", &status);
            }
            // A server that writes a lot must not keep us busy.
            tokio::time::sleep(CALM).await;
        }
    }

    /// Looks again when a list changed, or a server came or went.
    async fn feed_tools(&self) {
        let want = Interest::lists(Caller::new("operator"));
        let mut servers = self.supervisor.watch();
        let mut tools = self.service.changes(want).await.ok();
        loop {
            let running = self.running();
            self.operator.refresh().await;
            self.operator.tell_offered().await;
            tokio::time::sleep(CALM).await;
            let stale = async {
                match &mut tools {
                    Some(tools) => tools.next().await,
                    None => std::future::pending().await,
                }
            };
            let moved = async {
                while self.running() == running && servers.changed().await.is_ok() {
                    tokio::time::sleep(CALM).await;
                }
            };
            tokio::select! {
                told = stale => if told.is_none() { tools = None },
                () = moved => {}
            }
        }
    }

    /// Which servers can be asked.
    fn running(&self) -> Vec<bool> {
        let status = self.supervisor.status();
        status.iter().map(|s| s.state == State::Running).collect()
    }
}

/// Said where the listener takes connections on every address.
const ANY: &str = "It listens on every address of this machine, and answers under the names in allowed_hosts only: \
                   add the names by which others reach it.";

/// An address that a program on this machine can open.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(a) if a.ip().is_unspecified() => (Ipv4Addr::LOCALHOST, a.port()).into(),
        SocketAddr::V6(a) if a.ip().is_unspecified() => (Ipv6Addr::LOCALHOST, a.port()).into(),
        address => address,
    }
}

/// The name of an address that was asked for by itself.
fn own_host(address: SocketAddr) -> Option<String> {
    let host = match address {
        SocketAddr::V4(a) => a.ip().to_string(),
        SocketAddr::V6(a) => format!("[{}]", a.ip()),
    };
    (!address.ip().is_unspecified()).then_some(host)
}

/// The name under which the listener's callers stand in rules and records.
fn caller_name(config: &Config, address: Option<SocketAddr>) -> &'static str {
    match address {
        None => "local@stdio",
        Some(_) if config.token.is_some() => "token@http",
        Some(_) => "anonymous@http",
    }
}

async fn sweep(endpoint: &Endpoint) {
    loop {
        tokio::time::sleep(SWEEP).await;
        endpoint.sweep();
    }
}

/// Ends at the first SIGINT, SIGTERM or SIGHUP.
fn stop_signal() -> Result<impl Future<Output = ()>, String> {
    let listen = |kind| unix::signal(kind).map_err(|e| format!("cannot listen for signals: {e}"));
    let mut interrupt = listen(unix::SignalKind::interrupt())?;
    let mut terminate = listen(unix::SignalKind::terminate())?;
    let mut hangup = listen(unix::SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    })
}
