//! Export over OTLP: batches of spans, and metrics at an interval.

mod client;
mod settings;

pub use settings::{OtlpDestination, OtlpOverrides, OtlpProtocol, OtlpSettings, TelemetrySignal};

use crate::{
    CounterFamily, MetricRegistry, SpanBatch, SpanRecorder, TelemetryResource,
    definition::{EXPORT_FAILURES, SPANS_DROPPED, SPANS_EXPORTED},
    metrics_request,
};
use bytes::Bytes;
use client::{CollectorClient, ExportFailure};
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout_at};

/// First pause before an export is repeated; each further one is twice as long.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(500);
/// Number of attempts of an export.
const MAX_ATTEMPTS: u32 = 4;
/// Longest pause that a collector can ask for.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);
/// Time that the last export at the shutdown may take.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// Receiver of the reasons of failed exports.
type FailureObserver = Box<dyn Fn(TelemetrySignal, &str) + Send + Sync>;

/// Exporter of spans and metrics to a collector.
pub struct OtlpExporter {
    traces: Option<(CollectorClient, Arc<SpanRecorder>)>,
    metrics: Option<(CollectorClient, Arc<MetricRegistry>)>,
    resource: TelemetryResource,
    schedule_delay: Duration,
    metric_interval: Duration,
    failures: Arc<CounterFamily>,
    /// Receives the reason of each failure that follows a success, and of the first one.
    on_failure: FailureObserver,
}

impl OtlpExporter {
    /// Creates the exporter, and the recorder of its spans if spans are exported. `seeds` are random numbers.
    ///
    /// # Errors
    /// TLS is needed, and no certificates can be read.
    pub fn new(
        settings: OtlpSettings,
        registry: &Arc<MetricRegistry>,
        seeds: [u64; 2],
        on_failure: impl Fn(TelemetrySignal, &str) + Send + Sync + 'static,
    ) -> Result<(OtlpExporter, Option<Arc<SpanRecorder>>), String> {
        let client = |to| CollectorClient::new(to, settings.certificate.as_deref());
        let traces = settings.traces.clone().map(client).transpose()?;
        let metrics = settings.metrics.clone().map(client).transpose()?;
        let recorder =
            SpanRecorder::new(settings.sampler, settings.queue, seeds, &settings.resource);
        let recorder = traces.is_some().then(|| Arc::new(recorder));
        let failures = Arc::new(CounterFamily::new(&EXPORT_FAILURES, 4));
        registry.register(failures.clone());
        if let Some(recorder) = recorder.clone() {
            registry.register(Arc::new(move |samples: &mut crate::SampleList| {
                samples.plain(&SPANS_EXPORTED, recorder.exported.get() as f64);
                samples.plain(&SPANS_DROPPED, recorder.dropped.get() as f64);
            }));
        }
        let exporter = OtlpExporter {
            traces: traces.zip(recorder.clone()),
            metrics: metrics.map(|client| (client, registry.clone())),
            resource: settings.resource,
            schedule_delay: settings.schedule_delay,
            metric_interval: settings.metric_interval,
            failures,
            on_failure: Box::new(on_failure),
        };
        Ok((exporter, recorder))
    }

    /// Exports until the future is dropped.
    pub async fn run(&self) {
        tokio::join!(self.export_traces(), self.export_metrics());
    }

    /// Exports what is queued, within a short time: for the shutdown.
    pub async fn flush(&self) {
        let end = Instant::now() + FLUSH_TIMEOUT;
        let last = async {
            if let Some((client, recorder)) = &self.traces {
                let batch = recorder.take();
                if batch.count > 0 {
                    let _ = self.send_spans(client, recorder, batch, 1).await;
                }
            }
            if let Some((client, registry)) = &self.metrics {
                let _ = self.send_metrics(client, registry, 1).await;
            }
        };
        let _ = timeout_at(end, last).await;
    }

    async fn export_traces(&self) {
        let Some((client, recorder)) = &self.traces else {
            return std::future::pending().await;
        };
        let mut failing = false;
        loop {
            tokio::select! {
                () = recorder.full.notified() => {}
                () = sleep(self.schedule_delay) => {}
            }
            let batch = recorder.take();
            if batch.count > 0 {
                let sent = self.send_spans(client, recorder, batch, MAX_ATTEMPTS).await;
                self.report(TelemetrySignal::Traces, sent, &mut failing);
            }
        }
    }

    async fn export_metrics(&self) {
        let Some((client, registry)) = &self.metrics else {
            return std::future::pending().await;
        };
        let (mut ticks, mut failing) = (interval(self.metric_interval), false);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick is at once.
        ticks.tick().await;
        loop {
            ticks.tick().await;
            let sent = self.send_metrics(client, registry, MAX_ATTEMPTS).await;
            self.report(TelemetrySignal::Metrics, sent, &mut failing);
        }
    }

    fn report(&self, signal: TelemetrySignal, sent: Result<(), ExportFailure>, failing: &mut bool) {
        match sent {
            Ok(()) => *failing = false,
            Err(failure) => {
                self.failures.increment(&[signal.name()]);
                if !std::mem::replace(failing, true) {
                    (self.on_failure)(signal, &failure.reason);
                }
            }
        }
    }

    async fn send_spans(
        &self,
        client: &CollectorClient,
        recorder: &SpanRecorder,
        batch: SpanBatch,
        attempts: u32,
    ) -> Result<(), ExportFailure> {
        let (request, count) = batch.into_request(recorder);
        let sent = send_with_retries(client, request.into(), attempts).await;
        match &sent {
            Ok(()) => recorder.exported.add(count as u64),
            Err(_) => recorder.dropped.add(count as u64),
        }
        sent
    }

    async fn send_metrics(
        &self,
        client: &CollectorClient,
        registry: &MetricRegistry,
        attempts: u32,
    ) -> Result<(), ExportFailure> {
        let samples = registry.collect();
        let (from, now) = (registry.started_at(), SystemTime::now());
        let request = metrics_request(&self.resource, &samples, from, now);
        send_with_retries(client, request.into(), attempts).await
    }
}

async fn send_with_retries(
    client: &CollectorClient,
    request: Bytes,
    attempts: u32,
) -> Result<(), ExportFailure> {
    let mut delay = FIRST_RETRY_DELAY;
    for _ in 1..attempts {
        match client.send(request.clone()).await {
            Err(failure) if failure.may_retry => {
                let asked = failure.retry_after.unwrap_or(delay);
                sleep(asked.min(MAX_RETRY_DELAY)).await;
                delay *= 2;
            }
            sent => return sent,
        }
    }
    client.send(request).await
}
