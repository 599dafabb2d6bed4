//! Metrics of the running gateway.
//!
//! - `call_metrics`: counters of calls, by tool.
//! - `operations`: durations and spans, by the semantic conventions.
//! - `process`: processor time and memory of the program.

mod call_metrics;
mod operations;
mod process;

pub(crate) use call_metrics::CallMetrics;

use crate::{
    config::TelemetrySettings,
    event_log::{self, GatewayEvent},
};
use operations::OperationMetrics;
use ring::rand::{SecureRandom, SystemRandom};
use std::{sync::Arc, time::Duration};
use toolgate_core::OperationObserver;
use toolgate_journal::JournalObserver;
use toolgate_telemetry::{
    CounterFamily, DurationHistogram, MetricCounter, MetricRegistry, OtlpExporter, OtlpOverrides,
    OtlpSettings, SampleList, SampleValue, TelemetrySignal,
    definition::{
        AUDIT_RECORDS, AUDIT_SYNC, EDGE_REJECTIONS, HTTP_REJECTIONS, PIN_EVENTS, SERVER_FAILURES,
    },
};

/// Maximum number of series of a family whose values the program chooses. There are fewer; this only bounds mistakes.
const MAX_FAMILY_SERIES: usize = 1000;

/// Metrics of one gateway process.
pub(crate) struct GatewayTelemetry {
    pub(crate) registry: Arc<MetricRegistry>,
    /// Counters of calls; `None` if calls are not counted.
    pub(crate) calls: Option<Arc<CallMetrics>>,
    /// Observer of operations; `None` if they are neither measured nor traced.
    pub(crate) operations: Option<Arc<dyn OperationObserver>>,
    /// Exporter to a collector, if one is configured.
    pub(crate) exporter: Option<OtlpExporter>,
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
    /// Creates the metrics, without those of the gateway's state, and the exporter if one is configured.
    ///
    /// # Errors
    /// A setting of the export is invalid, or a secret for it cannot be read. The message says what to do.
    pub(crate) fn new(settings: &TelemetrySettings) -> Result<Arc<GatewayTelemetry>, String> {
        let registry = Arc::new(MetricRegistry::default());
        let (exporter, spans) = match otlp_settings(settings)? {
            Some(otlp) => {
                let (exporter, spans) =
                    OtlpExporter::new(otlp, &registry, random_seeds()?, report_failure)?;
                (Some(exporter), spans)
            }
            None => (None, None),
        };
        let family = |metric| Arc::new(CounterFamily::new(metric, MAX_FAMILY_SERIES));
        let calls = Arc::new(CallMetrics::new(settings, registry.clone()));
        let is_measured = settings.metrics || spans.is_some();
        let operations = Arc::new(OperationMetrics::new(calls.clone(), spans));
        if settings.metrics {
            registry.register(calls.clone());
            registry.register(operations.clone());
        }
        let telemetry = GatewayTelemetry {
            calls: settings.metrics.then_some(calls),
            operations: is_measured.then_some(operations),
            exporter,
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
        let writes = telemetry.audit_writes.clone();
        registry.register(Arc::new(move |samples: &mut SampleList| {
            writes.collect(samples)
        }));
        registry.register(Arc::new(process::collect));
        Ok(Arc::new(telemetry))
    }

    /// Exports until the future is dropped. Never ends.
    pub(crate) async fn export(&self) {
        match &self.exporter {
            Some(exporter) => exporter.run().await,
            None => std::future::pending().await,
        }
    }

    /// Exports what is left at the shutdown.
    pub(crate) async fn flush(&self) {
        if let Some(exporter) = &self.exporter {
            exporter.flush().await;
        }
    }
}

/// Returns the settings of the export; `None` if nothing is exported.
fn otlp_settings(settings: &TelemetrySettings) -> Result<Option<OtlpSettings>, String> {
    let headers = settings.otlp_headers.iter();
    let headers = headers.map(|(name, value)| {
        let wrong = |why| format!("the header {name} in otlp_headers of [telemetry] {why}");
        let read = value.read().map_err(wrong)?;
        Ok((name.clone(), read.reveal().to_owned()))
    });
    let overrides = OtlpOverrides {
        endpoint: settings.otlp_endpoint.clone(),
        protocol: settings.otlp_protocol,
        headers: headers.collect::<Result<_, String>>()?,
        sample_ratio: settings
            .sample_percent
            .map(|percent| percent as f64 / 100.0),
        metric_interval: settings.export_seconds.map(Duration::from_secs),
        traces: settings.traces,
        metrics: Some(settings.metrics),
    };
    let variable = |name: &str| std::env::var(name).ok();
    let otlp = OtlpSettings::read(&overrides, &variable)?;
    Ok(otlp.is_active().then_some(otlp))
}

/// Returns the seeds of trace ids, so that those of several gateways differ.
fn random_seeds() -> Result<[u64; 2], String> {
    let mut bytes = [0; 16];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| "the system provides no random bytes for trace ids".to_owned())?;
    let number = u128::from_be_bytes(bytes);
    Ok([(number >> 64) as u64, number as u64])
}

/// Prints that the collector does not take the exports.
fn report_failure(signal: TelemetrySignal, reason: &str) {
    let name = signal.name();
    let text = format!(
        "exporting {name} failed: {reason}; check otlp_endpoint of [telemetry] or OTEL_EXPORTER_OTLP_ENDPOINT"
    );
    event_log::emit(GatewayEvent::Problem { text });
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
