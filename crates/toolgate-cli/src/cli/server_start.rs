//! Brief start of the servers of a config, to list what they offer: for `check --servers`, `doctor` and
//! `import`.

use crate::{
    cli::progress::ProgressLine,
    config::Config,
    oauth::{self, SignInInstructions},
    runtime::compose,
    servers::{ServerSpec, ServerState, ServerStatus, ServerSupervisor},
};
use futures_util::future::join_all;
use std::{path::Path, sync::Arc, time::Duration};
use toolgate_core::{Caller, Catalog, ItemKind, ListRequest, Pipeline, Service};
use toolgate_guardian::Guardian;
use toolgate_protocol::{memory_budget::MemoryBudget, plural::count_of};

/// Interval at which the progress is updated.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

/// Servers after a start, which have been stopped again.
pub(crate) struct StartedServers {
    /// A list for each requested kind.
    pub(crate) lists: Vec<Catalog>,
    /// Last status of each server.
    pub(crate) status: Vec<ServerStatus>,
}

impl StartedServers {
    /// Returns why a server did not list its items; `None` if it did.
    pub(crate) fn failure(&self, server: &ServerStatus) -> Option<String> {
        let missing = |list: &Catalog| list.missing_servers().iter().any(|id| **id == *server.id);
        let failed = self.lists.iter().any(missing);
        let silent = || {
            "it did not respond in time; raise start_seconds in its section, or find out what it waits for".to_owned()
        };
        failed.then(|| server.error.clone().unwrap_or_else(silent))
    }
}

/// Starts the guardian process, which runs the servers.
///
/// # Errors
/// It cannot be started.
pub(crate) fn start_guardian() -> Result<Guardian, String> {
    Guardian::start()
        .map_err(|e| format!("cannot start the guardian process, which runs the servers: {e}; raise the limits on processes and open files of this user"))
}

/// Starts the servers, lists their items of these kinds once through a pipeline, and stops them. Each server may use its full start
/// timeout. Meanwhile the terminal
/// shows the servers that are still starting.
///
/// # Errors
/// The servers cannot be started at all.
pub(crate) async fn start_and_list(
    guardian: Guardian,
    config: &Config,
    data: &Path,
    kinds: &[ItemKind],
    pipeline: impl FnOnce(Arc<dyn Service>) -> Pipeline,
) -> Result<StartedServers, String> {
    // Its thread must not start before the guardian.
    let progress = ProgressLine::start(start_text(config.servers.iter().map(|server| &*server.id)));
    let supervisor = ServerSupervisor::new(Arc::new(guardian));
    let room = MemoryBudget::new(config.limits.memory_bytes);
    let instructions = SignInInstructions::default();
    let specs = compose::server_specs(
        config,
        &room,
        &oauth::credentials_dir(data),
        (&instructions, None),
    );
    let specs = specs.into_iter().map(|spec| ServerSpec {
        list_start_wait: spec.start_timeout,
        ..spec
    });
    let leases = supervisor.lease(specs.collect());
    let servers = compose::aggregate(config, &leases)?;
    let servers = servers.list_timeout(compose::longest_start(config));
    let servers = pipeline(Arc::new(servers));
    supervisor.replace_servers(leases);
    // Each list has its own timeout, and so has the shutdown.
    let list = |kind: &ItemKind| servers.list(ListRequest::all(Caller::new("toolgate"), *kind));
    let mut lists = std::pin::pin!(join_all(kinds.iter().map(list)));
    let mut ticks = tokio::time::interval(PROGRESS_INTERVAL);
    let lists = loop {
        tokio::select! {
            lists = &mut lists => break lists,
            _ = ticks.tick() => show_progress(&progress, &supervisor.status()),
        }
    };
    let status = supervisor.status();
    supervisor.stop().await;
    let lists = lists
        .into_iter()
        .map(|list| list.map_err(|e| e.public_message().to_owned()));
    Ok(StartedServers {
        lists: lists.collect::<Result<_, _>>()?,
        status,
    })
}

/// Shows the servers that are still starting.
fn show_progress(progress: &ProgressLine, status: &[ServerStatus]) {
    let starting = status
        .iter()
        .filter(|server| server.state == ServerState::Starting);
    let names = starting.map(|server| &*server.id);
    progress.set(match names.clone().next() {
        Some(_) => start_text(names),
        None => "Listing the items of the servers".to_owned(),
    });
}

fn start_text<'a>(servers: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = servers.collect();
    let count = count_of(names.len() as u64, "server");
    format!("Starting {count}: {}", names.join(", "))
}
