//! Gauges: the state of the gateway, read for each scrape. Calls need not keep them up to date.

use crate::{admin::GatewayHealth, operator::api::OperatorApi, servers::ServerState};
use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Instant, SystemTime},
};
use toolgate::edge::http::HttpEndpoint;
use toolgate_policy::StateStore;
use toolgate_protocol::memory_budget::MemoryBudget;
use toolgate_telemetry::{
    CounterFamily, MetricSource, SampleList,
    definition::{
        APPROVALS_LIMIT, APPROVALS_OLDEST, APPROVALS_PENDING, AUDIT_DAMAGE, AUDIT_MIRROR_UP,
        AUDIT_QUEUE_LIMIT, AUDIT_QUEUE_RECORDS, AUDIT_QUEUE_SIZE, AUDIT_UP, BUILD, CALLS_LIMIT,
        CALLS_QUEUED, CALLS_RUNNING, CLOCK_AHEAD, CLOCK_DRIFT, CONFIG_REJECTED, CONNECTIONS,
        CONNECTIONS_LIMIT, DISK_FREE, DISK_SIZE, MEMORY_LIMIT, MEMORY_USED, PINS_PENDING,
        PROCESS_UPTIME, READY, SERVER_RESTARTS, SERVER_TOOLS, SERVER_UP, SESSIONS, SESSIONS_LIMIT,
        STORE_ENTRIES, STORE_UP, TASKS,
    },
};

/// Tables of the store whose entries are counted.
const STORE_TABLES: [&str; 6] = ["approvals", "grants", "freezes", "keys", "pins", "lists"];
/// Maximum number of pins that are searched for undecided ones.
const MAX_COUNTED_PINS: usize = 10_000;

/// Source of the gauges of the gateway. It holds the gateway weakly, because the gateway owns the registry.
pub(crate) struct GaugeSource {
    pub(crate) operator: Weak<OperatorApi>,
    pub(crate) health: Arc<GatewayHealth>,
    pub(crate) store: Arc<dyn StateStore>,
    pub(crate) budget: Arc<MemoryBudget>,
    /// HTTP endpoint and its open connections, if the gateway serves HTTP.
    pub(crate) http: Option<(HttpEndpoint, Arc<AtomicUsize>)>,
    pub(crate) clock: ClockComparison,
    /// Counters that begin at zero for each server: an increase from nothing would not be visible in Prometheus.
    pub(crate) pin_events: Arc<CounterFamily>,
    pub(crate) server_failures: Arc<CounterFamily>,
}

/// Comparison of the system clock with the monotonic clock, from the start on.
pub(crate) struct ClockComparison {
    started: Instant,
    started_at: SystemTime,
}

impl Default for ClockComparison {
    fn default() -> ClockComparison {
        ClockComparison {
            started: Instant::now(),
            started_at: SystemTime::now(),
        }
    }
}

impl ClockComparison {
    /// Returns the seconds by which the system clock moved against the monotonic clock.
    fn drift(&self) -> f64 {
        let monotonic = self.started.elapsed().as_secs_f64();
        let system = match SystemTime::now().duration_since(self.started_at) {
            Ok(passed) => passed.as_secs_f64(),
            Err(back) => -back.duration().as_secs_f64(),
        };
        system - monotonic
    }
}

fn flag(is: bool) -> f64 {
    f64::from(u8::from(is))
}

impl MetricSource for GaugeSource {
    fn collect(&self, samples: &mut SampleList) {
        let Some(operator) = self.operator.upgrade() else {
            return;
        };
        let version = [("service.version", env!("CARGO_PKG_VERSION").into())];
        samples.number(&BUILD, version, 1.0);
        samples.plain(&PROCESS_UPTIME, self.clock.started.elapsed().as_secs_f64());
        samples.plain(&READY, flag(self.health.problems().is_empty()));
        samples.plain(
            &CONFIG_REJECTED,
            flag(operator.reloader.is_config_rejected()),
        );
        samples.plain(&CLOCK_DRIFT, self.clock.drift());
        let ahead = operator.approvals.clock().ahead();
        samples.plain(&CLOCK_AHEAD, ahead.as_secs_f64());
        self.collect_calls(&operator, samples);
        collect_approvals_and_pins(&operator, samples);
        self.collect_servers(&operator, samples);
        collect_audit(&operator, samples);
        self.collect_resources(&operator, samples);
    }
}

impl GaugeSource {
    fn collect_calls(&self, operator: &OperatorApi, samples: &mut SampleList) {
        let snapshot = operator.active.snapshot();
        let (running, queued) = snapshot.policies.concurrency.counts();
        let limits = &snapshot.config.limits;
        samples.plain(&CALLS_RUNNING, running as f64);
        samples.plain(&CALLS_QUEUED, queued as f64);
        samples.plain(&CALLS_LIMIT, limits.calls as f64);
        samples.plain(&TASKS, operator.server.tasks().len() as f64);
        if let Some((endpoint, connections)) = &self.http {
            samples.plain(&SESSIONS, endpoint.session_count() as f64);
            samples.plain(&SESSIONS_LIMIT, limits.sessions as f64);
            samples.plain(&CONNECTIONS, connections.load(Relaxed) as f64);
            samples.plain(&CONNECTIONS_LIMIT, limits.connections as f64);
        }
    }

    fn collect_resources(&self, operator: &OperatorApi, samples: &mut SampleList) {
        samples.plain(&STORE_UP, flag(self.store.failure().is_none()));
        for table in STORE_TABLES {
            let entries = self.store.versions(table).len();
            samples.number(
                &STORE_ENTRIES,
                [("toolgate.table", table.into())],
                entries as f64,
            );
        }
        samples.plain(&MEMORY_USED, self.budget.used() as f64);
        samples.plain(&MEMORY_LIMIT, self.budget.limit() as f64);
        if let Ok(disk) = rustix::fs::statvfs(operator.data.as_str()) {
            let size = |blocks: u64| blocks.saturating_mul(disk.f_frsize) as f64;
            samples.plain(&DISK_FREE, size(disk.f_bavail));
            samples.plain(&DISK_SIZE, size(disk.f_blocks));
        }
    }

    fn collect_servers(&self, operator: &OperatorApi, samples: &mut SampleList) {
        for server in operator.supervisor.status() {
            let is_up = server.state == ServerState::Running;
            let id = || [("toolgate.server", server.id.as_str().into())];
            samples.number(&SERVER_UP, id(), flag(is_up));
            samples.number(&SERVER_RESTARTS, id(), server.restarts.into());
            samples.number(&SERVER_TOOLS, id(), server.tools as f64);
            self.server_failures.add(&[&server.id], 0);
            for event in ["new", "changed", "flagged"] {
                self.pin_events.add(&[&server.id, event], 0);
            }
        }
    }
}

fn collect_approvals_and_pins(operator: &OperatorApi, samples: &mut SampleList) {
    let open = operator.open_approvals();
    let now = operator.approvals.now();
    let age = |at: SystemTime| now.duration_since(at).unwrap_or_default().as_secs_f64();
    let oldest = open
        .iter()
        .map(|view| age(view.requested_at))
        .fold(0.0, f64::max);
    samples.plain(&APPROVALS_PENDING, open.len() as f64);
    samples.plain(&APPROVALS_OLDEST, oldest);
    let snapshot = operator.active.snapshot();
    samples.plain(&APPROVALS_LIMIT, snapshot.config.limits.approvals as f64);
    let pins = snapshot.pins.awaiting_decision(MAX_COUNTED_PINS);
    samples.plain(&PINS_PENDING, pins.len() as f64);
}

fn collect_audit(operator: &OperatorApi, samples: &mut SampleList) {
    let journal = &operator.journal;
    let is_up = journal.health() == toolgate_journal::JournalHealth::Healthy;
    let (records, bytes) = journal.queued();
    samples.plain(&AUDIT_UP, flag(is_up));
    samples.plain(&AUDIT_QUEUE_RECORDS, records as f64);
    samples.plain(&AUDIT_QUEUE_SIZE, bytes as f64);
    let snapshot = operator.active.snapshot();
    samples.plain(
        &AUDIT_QUEUE_LIMIT,
        snapshot.config.limits.audit_queue_bytes as f64,
    );
    samples.plain(&AUDIT_MIRROR_UP, flag(journal.mirror_error().is_none()));
    let damage = journal.notices().map_or(1, |notices| notices.len());
    samples.plain(&AUDIT_DAMAGE, damage as f64);
}
