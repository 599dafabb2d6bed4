//! Definitions of all metrics: names, units, attributes and bucket boundaries.

/// Kind of a metric, as in OpenTelemetry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MetricKind {
    /// Value that only grows, except when the program starts again.
    Counter,
    /// Current value.
    Gauge,
    /// Distribution of durations over buckets.
    Histogram,
}

/// Definition of a metric by its OpenTelemetry name. [`MetricDefinition::prometheus_name`] is the name in `/metrics`.
#[derive(Debug)]
pub struct MetricDefinition {
    /// OpenTelemetry name, for example `mcp.server.operation.duration`.
    pub name: &'static str,
    /// Kind of the metric.
    pub kind: MetricKind,
    /// Unit in UCUM, for example `s`, `By`, `1` or `{call}`.
    pub unit: &'static str,
    /// Description in one sentence.
    pub description: &'static str,
    /// Names of the attributes that a sample may have.
    pub attributes: &'static [&'static str],
    /// Upper bounds of the histogram's buckets in seconds; empty for other kinds.
    pub bounds: &'static [f64],
}

impl MetricDefinition {
    /// Returns the Prometheus name: dots become underscores, and the unit and `_total` are suffixes.
    pub fn prometheus_name(&self) -> String {
        let mut name = prometheus_label(self.name);
        let unit = match self.unit {
            "s" => "_seconds",
            "By" => "_bytes",
            _ => "",
        };
        if !name.ends_with(unit) {
            name.push_str(unit);
        }
        if self.kind == MetricKind::Counter {
            name.push_str("_total");
        }
        name
    }
}

/// Returns the Prometheus name of a label: dots become underscores.
pub fn prometheus_label(name: &str) -> String {
    name.replace('.', "_")
}

/// Bucket boundaries of the MCP histograms in seconds, as the semantic conventions define them.
pub const MCP_DURATION_BOUNDS: &[f64] = &[
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];

/// Bucket boundaries of disk writes in seconds: a sync takes from 50 µs on a fast disk to seconds on a failing one.
const DISK_DURATION_BOUNDS: &[f64] = &[
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    10.0,
];

/// Attributes of an operation, as the conventions define them.
const OPERATION_ATTRIBUTES: &[&str] = &[
    "mcp.method.name",
    "gen_ai.operation.name",
    "gen_ai.tool.name",
    "gen_ai.prompt.name",
    "error.type",
    "rpc.response.status_code",
    "mcp.protocol.version",
    "network.transport",
    "network.protocol.name",
    "network.protocol.version",
];

/// Attributes of a request to a server: those of an operation, the address of the server, and its name in the config.
const CLIENT_OPERATION_ATTRIBUTES: &[&str] = &[
    "mcp.method.name",
    "gen_ai.operation.name",
    "gen_ai.tool.name",
    "gen_ai.prompt.name",
    "error.type",
    "rpc.response.status_code",
    "mcp.protocol.version",
    "network.transport",
    "network.protocol.name",
    "network.protocol.version",
    "server.address",
    "server.port",
    "toolgate.server",
];

macro_rules! metrics {
    ($($(#[doc = $doc:literal])+ $constant:ident: $kind:ident, $name:literal, $unit:literal, $attributes:expr, $bounds:expr;)*) => {
        $(
            $(#[doc = $doc])+
            pub const $constant: MetricDefinition = MetricDefinition {
                name: $name,
                kind: MetricKind::$kind,
                unit: $unit,
                description: concat!($($doc),+),
                attributes: $attributes,
                bounds: $bounds,
            };
        )*

        /// All metrics, in the order of the reference page.
        pub const ALL_METRICS: &[&MetricDefinition] = &[$(&$constant),*];
    };
}

metrics! {
    /// Duration of MCP requests from callers, from the time at which the gateway read the request until its response was ready.
    MCP_SERVER_OPERATION: Histogram, "mcp.server.operation.duration", "s", OPERATION_ATTRIBUTES, MCP_DURATION_BOUNDS;
    /// Duration of MCP requests to servers, from the time at which the gateway sent the request until the response arrived.
    MCP_CLIENT_OPERATION: Histogram, "mcp.client.operation.duration", "s", CLIENT_OPERATION_ATTRIBUTES, MCP_DURATION_BOUNDS;
    /// Duration of the sessions of callers that ended (revisions with a handshake).
    MCP_SERVER_SESSION: Histogram, "mcp.server.session.duration", "s",
        &["mcp.protocol.version", "network.protocol.name", "error.type"], MCP_DURATION_BOUNDS;
    /// Duration of the connections to servers that ended.
    MCP_CLIENT_SESSION: Histogram, "mcp.client.session.duration", "s",
        &["mcp.protocol.version", "network.protocol.name", "error.type", "server.address", "server.port", "toolgate.server"], MCP_DURATION_BOUNDS;
    /// Rounds of calls that ended, by outcome as in the audit log. A call that waits for an approval or for input has several rounds.
    CALLS: Counter, "toolgate.calls", "{call}", &["toolgate.server", "gen_ai.tool.name", "toolgate.outcome"], &[];
    /// Calls by caller and outcome, if `callers` is set in `[telemetry]`.
    CALLER_CALLS: Counter, "toolgate.caller.calls", "{call}", &["toolgate.caller", "toolgate.outcome"], &[];
    /// Decisions on calls: allow, ask or deny, with the policy that decided.
    DECISIONS: Counter, "toolgate.decisions", "{decision}", &["toolgate.decision", "toolgate.policy"], &[];
    /// Calls that failed, by error class as in the audit log.
    CALL_ERRORS: Counter, "toolgate.call.errors", "{call}", &["toolgate.error.class"], &[];
    /// Calls that run now, without those that wait for a person.
    CALLS_RUNNING: Gauge, "toolgate.calls.running", "{call}", &[], &[];
    /// Calls that wait for a concurrency limit.
    CALLS_QUEUED: Gauge, "toolgate.calls.queued", "{call}", &[], &[];
    /// Maximum number of calls that run at the same time.
    CALLS_LIMIT: Gauge, "toolgate.calls.limit", "{call}", &[], &[];
    /// Most refusals of one caller by a rate limit within the current minute or the one before.
    RATE_LIMIT_CALLER_MAX: Gauge, "toolgate.rate_limit.caller.refusals", "{call}", &[], &[];
    /// Approval requests that nobody has decided yet.
    APPROVALS_PENDING: Gauge, "toolgate.approvals.pending", "{request}", &[], &[];
    /// Age of the oldest approval request that nobody has decided yet; 0 if there is none.
    APPROVALS_OLDEST: Gauge, "toolgate.approvals.oldest.age", "s", &[], &[];
    /// Maximum number of pending approval requests.
    APPROVALS_LIMIT: Gauge, "toolgate.approvals.limit", "{request}", &[], &[];
    /// Requests that the gateway rejected before any call: missing or invalid credentials, hosts and origins.
    HTTP_REJECTIONS: Counter, "toolgate.http.rejections", "{request}", &["toolgate.reason"], &[];
    /// MCP messages that the edges rejected, for example malformed ones.
    EDGE_REJECTIONS: Counter, "toolgate.edge.rejections", "{request}", &["network.transport"], &[];
    /// Definitions that are new, changed or flagged.
    PIN_EVENTS: Counter, "toolgate.pins.events", "{event}", &["toolgate.server", "toolgate.pin.event"], &[];
    /// Definitions that wait for a decision of the operator: new, changed or flagged ones.
    PINS_PENDING: Gauge, "toolgate.pins.pending", "{definition}", &[], &[];
    /// 1 if the server can be used, 0 if not.
    SERVER_UP: Gauge, "toolgate.server.up", "1", &["toolgate.server"], &[];
    /// Restarts of the server since it was configured.
    SERVER_RESTARTS: Counter, "toolgate.server.restarts", "{restart}", &["toolgate.server"], &[];
    /// Ends of the server's process or connection that nobody asked for, and failed starts.
    SERVER_FAILURES: Counter, "toolgate.server.failures", "{failure}", &["toolgate.server"], &[];
    /// Tools that the server offers.
    SERVER_TOOLS: Gauge, "toolgate.server.tools", "{tool}", &["toolgate.server"], &[];
    /// 1 if audit records can be written, 0 if not; no call runs then.
    AUDIT_UP: Gauge, "toolgate.audit.up", "1", &[], &[];
    /// Records in the queue of the audit log.
    AUDIT_QUEUE_RECORDS: Gauge, "toolgate.audit.queue.records", "{record}", &[], &[];
    /// Size of the records in the queue of the audit log.
    AUDIT_QUEUE_SIZE: Gauge, "toolgate.audit.queue.size", "By", &[], &[];
    /// Maximum size of the records in the queue of the audit log.
    AUDIT_QUEUE_LIMIT: Gauge, "toolgate.audit.queue.limit", "By", &[], &[];
    /// Records that were written to the audit log.
    AUDIT_RECORDS: Counter, "toolgate.audit.records", "{record}", &[], &[];
    /// Duration of a write of the audit log, with its sync to the disk.
    AUDIT_SYNC: Histogram, "toolgate.audit.sync.duration", "s", &[], DISK_DURATION_BOUNDS;
    /// Damages of the audit log that no operator has acknowledged.
    AUDIT_DAMAGE: Gauge, "toolgate.audit.damage", "{damage}", &[], &[];
    /// 1 if the newest checkpoint is in the checkpoint mirror, 0 if not.
    AUDIT_MIRROR_UP: Gauge, "toolgate.audit.mirror.up", "1", &[], &[];
    /// Size of the records that are not in the copy of the audit log in the shared store yet (`copy_segments`).
    AUDIT_COPIES_BEHIND: Gauge, "toolgate.audit.copies.behind", "By", &[], &[];
    /// Chains of the audit log that do not continue their copy in the shared store.
    AUDIT_COPIES_DIVERGED: Gauge, "toolgate.audit.copies.diverged", "{chain}", &[], &[];
    /// Free space of the file system that holds the data directory.
    DISK_FREE: Gauge, "toolgate.disk.free", "By", &[], &[];
    /// Size of the file system that holds the data directory.
    DISK_SIZE: Gauge, "toolgate.disk.size", "By", &[], &[];
    /// 1 if the store can be written, 0 if not.
    STORE_UP: Gauge, "toolgate.store.up", "1", &[], &[];
    /// Entries of the store, by table.
    STORE_ENTRIES: Gauge, "toolgate.store.entries", "{entry}", &["toolgate.table"], &[];
    /// Memory of messages in flight that the memory budget counts.
    MEMORY_USED: Gauge, "toolgate.memory.used", "By", &[], &[];
    /// Memory budget for messages in flight.
    MEMORY_LIMIT: Gauge, "toolgate.memory.limit", "By", &[], &[];
    /// Open sessions of callers (revisions with a handshake).
    SESSIONS: Gauge, "toolgate.sessions", "{session}", &[], &[];
    /// Maximum number of open sessions.
    SESSIONS_LIMIT: Gauge, "toolgate.sessions.limit", "{session}", &[], &[];
    /// Open HTTP connections.
    CONNECTIONS: Gauge, "toolgate.connections", "{connection}", &[], &[];
    /// Maximum number of open HTTP connections.
    CONNECTIONS_LIMIT: Gauge, "toolgate.connections.limit", "{connection}", &[], &[];
    /// Tasks that are running or whose results are stored.
    TASKS: Gauge, "toolgate.tasks", "{task}", &[], &[];
    /// Seconds by which the system clock moved against the monotonic clock since the start: positive if it was set forward.
    CLOCK_DRIFT: Gauge, "toolgate.clock.drift", "s", &[], &[];
    /// Seconds by which the clock of the store is ahead of the system clock, which was set back.
    CLOCK_AHEAD: Gauge, "toolgate.clock.ahead", "s", &[], &[];
    /// 1 if the gateway is ready for calls, 0 if not; `/readyz` has the reasons.
    READY: Gauge, "toolgate.ready", "1", &[], &[];
    /// 1 if the newest version of the config was rejected and an older one is in use, 0 if not.
    CONFIG_REJECTED: Gauge, "toolgate.config.rejected", "1", &[], &[];
    /// Always 1, with the version of the program.
    BUILD: Gauge, "toolgate.build", "1", &["service.version"], &[];
    /// Series that were not created because there are too many.
    SERIES_DROPPED: Counter, "toolgate.telemetry.series.dropped", "{series}", &[], &[];
    /// Spans that were exported.
    SPANS_EXPORTED: Counter, "toolgate.telemetry.spans.exported", "{span}", &[], &[];
    /// Spans that were dropped, because the collector is slow or away.
    SPANS_DROPPED: Counter, "toolgate.telemetry.spans.dropped", "{span}", &[], &[];
    /// Exports over OTLP that failed.
    EXPORT_FAILURES: Counter, "toolgate.telemetry.export.failures", "{export}", &["toolgate.signal"], &[];
    /// Processor time of the gateway without its servers.
    PROCESS_CPU: Counter, "process.cpu.time", "s", &[], &[];
    /// Resident memory of the gateway without its servers.
    PROCESS_MEMORY: Gauge, "process.memory.usage", "By", &[], &[];
    /// Open file descriptors of the gateway.
    PROCESS_FILES: Gauge, "process.unix.file_descriptor.count", "{file_descriptor}", &[], &[];
    /// Time since the gateway started.
    PROCESS_UPTIME: Gauge, "process.uptime", "s", &[], &[];
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_have_prometheus_forms() {
        let names: BTreeSet<String> = ALL_METRICS.iter().map(|m| m.prometheus_name()).collect();
        assert_eq!(names.len(), ALL_METRICS.len());
        assert_eq!(
            MCP_SERVER_OPERATION.prometheus_name(),
            "mcp_server_operation_duration_seconds"
        );
        assert_eq!(CALLS.prometheus_name(), "toolgate_calls_total");
        assert_eq!(
            PROCESS_CPU.prometheus_name(),
            "process_cpu_time_seconds_total"
        );
        let valid = |name: &str| {
            name.bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        };
        assert!(names.iter().all(|name| valid(name)));
    }

    #[test]
    fn histograms_have_ascending_bounds_and_other_kinds_have_none() {
        for metric in ALL_METRICS {
            assert_eq!(
                metric.kind == MetricKind::Histogram,
                !metric.bounds.is_empty()
            );
            assert!(metric.bounds.is_sorted(), "{}", metric.name);
            assert!(metric.description.trim().ends_with('.'), "{}", metric.name);
        }
    }
}
