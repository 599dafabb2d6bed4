//! Metrics and traces of the Toolgate gateway.
//!
//! - [`MetricRegistry`]: the one source of `/metrics` and of metrics over OTLP. [`definition`] has every metric with its
//!   unit, attributes and buckets.
//! - [`prometheus_text`]: the Prometheus text format.
//! - [`SpanRecorder`]: spans of calls, encoded with few instructions.
//! - [`OtlpExporter`]: the export over OTLP.
//!
//! ```
//! use std::sync::Arc;
//! use toolgate_telemetry::{CounterFamily, MetricRegistry, definition::HTTP_REJECTIONS, prometheus_text};
//!
//! let registry = MetricRegistry::default();
//! let rejections = Arc::new(CounterFamily::new(&HTTP_REJECTIONS, 20));
//! registry.register(rejections.clone());
//! rejections.increment(&["invalid_credentials"]);
//! let text = prometheus_text(&registry.collect());
//! assert!(text.contains("toolgate_http_rejections_total{toolgate_reason=\"invalid_credentials\"} 1"));
//! ```

pub mod definition;
mod exporter;
mod instruments;
mod operation_series;
mod otlp;
mod prometheus;
mod protobuf;
mod registry;
mod span;
mod trace_parent;

pub use definition::{MetricDefinition, MetricKind, prometheus_label};
pub use exporter::{
    OtlpDestination, OtlpExporter, OtlpOverrides, OtlpProtocol, OtlpSettings, TelemetrySignal,
};
pub use instruments::{DurationHistogram, HistogramValues, MetricCounter};
pub use operation_series::{OperationFailure, OperationSeries, SpanKind};
pub use otlp::{SCHEMA_URL, TelemetryResource, metrics_request};
pub use prometheus::{PROMETHEUS_CONTENT_TYPE, prometheus_text};
pub use registry::{
    AttributeValue, CounterFamily, MetricRegistry, MetricSample, MetricSource, OTHER_VALUE,
    PeakByKey, SampleList, SampleValue,
};
pub use span::{
    EventAttribute, RequestSpan, SpanBatch, SpanOrigin, SpanQueueLimits, SpanRecorder, SpanSampler,
};
pub use trace_parent::TraceParent;
