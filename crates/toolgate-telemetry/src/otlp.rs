//! Requests of OTLP 1.x: `ExportTraceServiceRequest` and `ExportMetricsServiceRequest`.

use crate::{
    MetricDefinition, MetricKind, MetricSample, SampleList, SampleValue, protobuf::ProtobufBuffer,
};
use std::time::{SystemTime, UNIX_EPOCH};

/// Version of the semantic conventions that names and attributes follow.
pub const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.41.0";
/// Name of the instrumentation scope.
const SCOPE_NAME: &str = "toolgate";
/// Cumulative aggregation: values count from the start of the program.
const CUMULATIVE: u64 = 2;

/// Resource: what the program is, as attributes of everything that it exports.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TelemetryResource(Vec<(String, String)>);

impl TelemetryResource {
    /// Sets an attribute; a later value replaces an earlier one.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<String>) {
        let key = key.into();
        self.0.retain(|(known, _)| *known != key);
        self.0.push((key, value.into()));
    }

    /// Returns the value of an attribute.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(known, _)| known == key)
            .map(|(_, value)| value.as_str())
    }

    fn write(&self, out: &mut ProtobufBuffer) {
        out.message(1, |resource| {
            for (key, value) in &self.0 {
                resource.text_attribute(1, key, value);
            }
        });
    }
}

fn write_scope(out: &mut ProtobufBuffer) {
    out.message(1, |scope| {
        scope.text(1, SCOPE_NAME);
        scope.text(2, env!("CARGO_PKG_VERSION"));
    });
}

/// Begin of each request that exports spans: resource and scope. Spans follow as they end, so nothing is copied.
#[derive(Debug)]
pub(crate) struct TraceRequestHead {
    bytes: Box<[u8]>,
    /// Position of the message with the spans.
    scope_at: usize,
}

impl TraceRequestHead {
    /// Encodes the head for a resource.
    pub(crate) fn new(resource: &TelemetryResource) -> TraceRequestHead {
        let mut bytes = ProtobufBuffer::default();
        bytes.open_message(1);
        resource.write(&mut bytes);
        let scope_at = bytes.len();
        bytes.open_message(2);
        write_scope(&mut bytes);
        TraceRequestHead {
            bytes: bytes.into_vec().into(),
            scope_at,
        }
    }

    /// Begins a request.
    pub(crate) fn begin(&self, request: &mut ProtobufBuffer) {
        request.append(&self.bytes);
    }

    /// Completes a request to which spans were appended.
    pub(crate) fn finish(&self, request: &mut ProtobufBuffer) {
        request.text(3, SCHEMA_URL);
        request.close_message(self.scope_at);
        request.close_message(0);
    }
}

/// Encodes a request that exports metrics. Values count from `started_at` on.
pub fn metrics_request(
    resource: &TelemetryResource,
    samples: &SampleList,
    started_at: SystemTime,
    now: SystemTime,
) -> Vec<u8> {
    let nanos = |time: SystemTime| {
        let passed = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX)
    };
    let times = (nanos(started_at), nanos(now));
    let mut out = ProtobufBuffer::default();
    out.message(1, |metrics| {
        resource.write(metrics);
        metrics.message(2, |scope| {
            write_scope(scope);
            for (metric, series) in samples.metrics() {
                scope.message(2, |fields| write_metric(fields, metric, series, times));
            }
            scope.text(3, SCHEMA_URL);
        });
    });
    out.into_vec()
}

fn write_metric(
    out: &mut ProtobufBuffer,
    metric: &MetricDefinition,
    series: &[MetricSample],
    times: (u64, u64),
) {
    out.text(1, metric.name);
    out.text(2, metric.description.trim());
    out.text(3, metric.unit);
    let (data, more): (u32, &[(u32, u64)]) = match metric.kind {
        MetricKind::Gauge => (5, &[]),
        MetricKind::Counter => (7, &[(2, CUMULATIVE), (3, 1)]),
        MetricKind::Histogram => (9, &[(2, CUMULATIVE)]),
    };
    out.message(data, |fields| {
        for sample in series {
            fields.message(1, |point| write_point(point, metric, sample, times));
        }
        more.iter()
            .for_each(|(field, value)| fields.uint(*field, *value));
    });
}

fn write_point(
    point: &mut ProtobufBuffer,
    metric: &MetricDefinition,
    sample: &MetricSample,
    (start, now): (u64, u64),
) {
    let attributes = match sample.value {
        SampleValue::Number(_) => 7,
        SampleValue::Histogram(_) => 9,
    };
    for (key, value) in &sample.attributes {
        match (*key, value.parse()) {
            ("server.port", Ok(port)) => point.int_attribute(attributes, key, port),
            _ => point.text_attribute(attributes, key, value),
        }
    }
    point.fixed64(2, start);
    point.fixed64(3, now);
    match &sample.value {
        SampleValue::Number(value) => point.double(4, *value),
        SampleValue::Histogram(values) => {
            point.fixed64(4, values.count());
            point.double(5, values.sum);
            point.packed64(6, values.buckets.iter().copied());
            point.packed64(7, metric.bounds.iter().map(|bound| bound.to_bits()));
        }
    }
}
