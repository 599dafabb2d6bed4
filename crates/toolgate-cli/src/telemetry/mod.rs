//! Metrics of the running gateway.
//!
//! - `call_metrics`: counters of calls, by tool.
//! - `process`: processor time and memory of the program.

mod call_metrics;
mod process;

pub(crate) use call_metrics::CallMetrics;

use crate::config::TelemetrySettings;
use std::{sync::Arc, time::Duration};
use toolgate_journal::JournalObserver;
use toolgate_telemetry::{
    CounterFamily, DurationHistogram, MetricCounter, MetricRegistry, SampleList, SampleValue,
    definition::{
        AUDIT_RECORDS, AUDIT_SYNC, EDGE_REJECTIONS, HTTP_REJECTIONS, PIN_EVENTS, SERVER_FAILURES,
    },
};

/// Maximum number of series of a family whose values the program chooses. There are fewer; this only bounds mistakes.
const MAX_FAMILY_SERIES: usize = 1000;

/// Metrics of one gateway process.
#[derive(Debug)]
pub(crate) struct GatewayTelemetry {
    pub(crate) registry: Arc<MetricRegistry>,
    /// Counters of calls; `None` if calls are not counted.
    pub(crate) calls: Option<Arc<CallMetrics>>,
    /// Requests that were rejected before any call, by reason.
    pub(crate) http_rejections: Arc<CounterFamily>,
    /// Messages that the edges rejected, by transport.
    pub(crate) edge_rejections: Arc<CounterFamily>,
    /// Events of definitions, by server and kind.
    pub(crate) pin_events: Arc<CounterFamily>,
    /// Failures of servers, by server.
    pub(crate) server_failures: Arc<CounterFamily>,
    /// Writes of the audit log.
    pub(crate) audit_writes: Arc<AuditWrites>,
}

impl GatewayTelemetry {
    /// Creates the metrics, without those of the gateway's state.
    pub(crate) fn new(settings: &TelemetrySettings) -> Arc<GatewayTelemetry> {
        let registry = Arc::new(MetricRegistry::default());
        let family = |metric| Arc::new(CounterFamily::new(metric, MAX_FAMILY_SERIES));
        let calls = CallMetrics::new(settings, registry.clone());
        let telemetry = GatewayTelemetry {
            calls: settings.metrics.then(|| Arc::new(calls)),
            http_rejections: family(&HTTP_REJECTIONS),
            edge_rejections: family(&EDGE_REJECTIONS),
            pin_events: family(&PIN_EVENTS),
            server_failures: family(&SERVER_FAILURES),
            audit_writes: Arc::default(),
            registry,
        };
        let registry = &telemetry.registry;
        for family in [
            &telemetry.http_rejections,
            &telemetry.edge_rejections,
            &telemetry.pin_events,
            &telemetry.server_failures,
        ] {
            registry.register(family.clone());
        }
        if let Some(calls) = &telemetry.calls {
            registry.register(calls.clone());
        }
        let writes = telemetry.audit_writes.clone();
        registry.register(Arc::new(move |samples: &mut SampleList| {
            writes.collect(samples)
        }));
        registry.register(Arc::new(process::collect));
        Arc::new(telemetry)
    }
}

/// Counter and durations of the writes of the audit log.
#[derive(Debug)]
pub(crate) struct AuditWrites {
    records: MetricCounter,
    durations: DurationHistogram,
}

impl Default for AuditWrites {
    fn default() -> AuditWrites {
        AuditWrites {
            records: MetricCounter::default(),
            durations: DurationHistogram::new(AUDIT_SYNC.bounds),
        }
    }
}

impl AuditWrites {
    fn collect(&self, samples: &mut SampleList) {
        samples.plain(&AUDIT_RECORDS, self.records.get() as f64);
        let durations = SampleValue::Histogram(self.durations.values());
        samples.add(&AUDIT_SYNC, Vec::new(), durations);
    }
}

impl JournalObserver for AuditWrites {
    fn on_write(&self, records: u64, duration: Duration) {
        self.records.add(records);
        self.durations.record(duration);
    }
}
