//! Decodes our OTLP requests with the official `opentelemetry-proto`.

use opentelemetry_proto::tonic::{
    collector::{metrics::v1::ExportMetricsServiceRequest, trace::v1::ExportTraceServiceRequest},
    common::v1::{KeyValue, any_value::Value},
    metrics::v1::{AggregationTemporality, metric::Data, number_data_point},
    trace::v1::{Span, span::SpanKind as OtlpKind, status::StatusCode},
};
use prost::Message;
use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};
use toolgate_telemetry::{
    CounterFamily, EventAttribute, MetricSource, OperationFailure, OperationSeries, SampleList,
    SpanKind, SpanOrigin, SpanQueueLimits, SpanRecorder, SpanSampler, TelemetryResource,
    TraceParent,
    definition::{HTTP_REJECTIONS, MCP_SERVER_OPERATION},
    metrics_request,
};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn resource() -> TelemetryResource {
    let mut resource = TelemetryResource::default();
    resource.set("service.name", "gate");
    resource
}

fn series(kind: SpanKind) -> OperationSeries {
    let attributes = vec![
        ("mcp.method.name", "tools/call".into()),
        ("gen_ai.tool.name", "files.read".into()),
        ("mcp.protocol.version", "2026-07-28".into()),
    ];
    OperationSeries::new(&MCP_SERVER_OPERATION, kind, attributes)
}

fn recorder(sampler: SpanSampler, max_queue: usize) -> Arc<SpanRecorder> {
    let limits = SpanQueueLimits {
        max_queue,
        max_batch: 512,
    };
    Arc::new(SpanRecorder::new(sampler, limits, [7, 9], &resource()))
}

fn spans(recorder: &SpanRecorder) -> Vec<Span> {
    let (request, count) = recorder.take().into_request(recorder);
    let request = ExportTraceServiceRequest::decode(request.as_slice()).unwrap();
    let [resource_spans] = request.resource_spans.as_slice() else {
        panic!("one resource")
    };
    let found = resource_spans.resource.as_ref().unwrap();
    assert_eq!(
        text(&found.attributes, "service.name").as_deref(),
        Some("gate")
    );
    let [scope] = resource_spans.scope_spans.as_slice() else {
        panic!("one scope")
    };
    assert_eq!(scope.scope.as_ref().unwrap().name, "toolgate");
    assert_eq!(scope.spans.len(), count);
    scope.spans.clone()
}

fn failure<'a>(error: Option<&'a str>, status: Option<&'a str>) -> OperationFailure<'a> {
    OperationFailure { error, status }
}

fn text(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|pair| pair.key == key)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        other => Some(format!("{other:?}")),
    }
}

#[test]
fn a_span_has_the_context_events_and_error_of_its_request() {
    let recorder = recorder(SpanSampler::default(), 10);
    let parent = TraceParent::parse(PARENT);
    let link = TraceParent::parse("00-11111111111111111111111111111111-2222222222222222-00");
    let span = recorder
        .begin(SpanOrigin {
            parent,
            state: Some("vendor=1"),
            link,
            request_id: Some("\"call-7\""),
            started: None,
        })
        .unwrap();
    let decision = [
        ("toolgate.decision", EventAttribute::Text("allow")),
        ("toolgate.count", EventAttribute::Count(3)),
    ];
    span.add_event("toolgate.decision", &decision);
    let child = span.child_context();
    let none = OperationFailure::default();
    span.end_child(
        (child.span_id, Instant::now(), Duration::from_millis(5)),
        &series(SpanKind::Client),
        none,
    );
    span.end(
        &series(SpanKind::Server),
        failure(Some("-32603"), Some("-32603")),
        Duration::from_millis(9),
    );
    let found = spans(&recorder);
    let [client, server] = found.as_slice() else {
        panic!("two spans: {found:?}")
    };
    let trace = parent.unwrap().trace_id.to_vec();
    assert_eq!((&client.trace_id, &server.trace_id), (&trace, &trace));
    assert_eq!(server.parent_span_id, parent.unwrap().span_id.to_be_bytes());
    assert_eq!(client.parent_span_id, server.span_id);
    assert_eq!(client.span_id, child.span_id.to_be_bytes());
    assert_eq!(server.name, "tools/call files.read");
    assert_eq!(
        (server.kind(), client.kind()),
        (OtlpKind::Server, OtlpKind::Client)
    );
    assert_eq!(server.trace_state, "vendor=1");
    assert!(server.start_time_unix_nano <= client.start_time_unix_nano);
    let duration = client.end_time_unix_nano - client.start_time_unix_nano;
    assert_eq!(duration, 5_000_000);
    let server_text = |key| text(&server.attributes, key);
    assert_eq!(server_text("jsonrpc.request.id").as_deref(), Some("call-7"));
    assert_eq!(server_text("error.type").as_deref(), Some("-32603"));
    assert_eq!(
        server_text("rpc.response.status_code").as_deref(),
        Some("-32603")
    );
    assert_eq!(server.status.as_ref().unwrap().code(), StatusCode::Error);
    assert!(client.status.is_none());
    let [event] = server.events.as_slice() else {
        panic!("one event")
    };
    assert_eq!(event.name, "toolgate.decision");
    assert_eq!(
        text(&event.attributes, "toolgate.decision").as_deref(),
        Some("allow")
    );
    assert_eq!(
        text(&event.attributes, "toolgate.count").as_deref(),
        Some("IntValue(3)")
    );
    assert_eq!(server.links[0].span_id, [0x22; 8]);
}

#[test]
fn the_decisions_of_a_span_keep_their_order_and_times() {
    let recorder = recorder(SpanSampler::default(), 10);
    let span = recorder.begin(SpanOrigin::default()).unwrap();
    let decision = |text| [("toolgate.decision", EventAttribute::Text(text))];
    for text in ["ask", "allow", "deny"] {
        span.add_event("toolgate.decision", &decision(text));
    }
    span.end(
        &series(SpanKind::Server),
        OperationFailure::default(),
        Duration::from_secs(1),
    );
    let found = spans(&recorder);
    let events = &found[0].events;
    let texts: Vec<_> = events
        .iter()
        .map(|e| text(&e.attributes, "toolgate.decision"))
        .collect();
    assert_eq!(
        texts,
        ["ask", "allow", "deny"].map(|text| Some(text.to_owned()))
    );
    assert!(events.iter().map(|event| event.time_unix_nano).is_sorted());
    assert!(events[0].time_unix_nano >= found[0].start_time_unix_nano);
    assert_eq!(
        found[0].end_time_unix_nano - found[0].start_time_unix_nano,
        1_000_000_000
    );
}

#[test]
fn a_request_without_a_trace_begins_one() {
    let recorder = recorder(SpanSampler::default(), 10);
    for _ in 0..2 {
        let span = recorder.begin(SpanOrigin::default()).unwrap();
        span.end(
            &series(SpanKind::Server),
            OperationFailure::default(),
            Duration::ZERO,
        );
    }
    let found = spans(&recorder);
    assert!(
        found
            .iter()
            .all(|span| span.parent_span_id.is_empty() && span.trace_id.len() == 16)
    );
    assert_ne!(found[0].trace_id, found[1].trace_id);
    assert_ne!(found[0].span_id, found[1].span_id);
}

#[test]
fn the_caller_decides_about_sampling_and_the_ratio_about_the_rest() {
    let unsampled = TraceParent::parse(&PARENT.replace("-01", "-00"));
    let with = |parent| SpanOrigin {
        parent,
        ..SpanOrigin::default()
    };
    let none = SpanSampler {
        parent_based: true,
        ratio: 0.0,
    };
    let sampled = TraceParent::parse(PARENT);
    assert!(
        recorder(SpanSampler::default(), 1)
            .begin(with(unsampled))
            .is_none()
    );
    assert!(recorder(none, 1).begin(with(sampled)).is_some());
    assert!(recorder(none, 1).begin(with(None)).is_none());
    let own = SpanSampler {
        parent_based: false,
        ..none
    };
    assert!(recorder(own, 1).begin(with(sampled)).is_none());
    let half = recorder(
        SpanSampler {
            parent_based: true,
            ratio: 0.5,
        },
        1,
    );
    let count = (0..1000)
        .filter(|_| half.begin(with(None)).is_some())
        .count();
    assert!((400..600).contains(&count), "{count}");
}

#[test]
fn spans_above_the_queue_are_dropped_and_counted() {
    let recorder = recorder(SpanSampler::default(), 3);
    for _ in 0..5 {
        let span = recorder.begin(SpanOrigin::default()).unwrap();
        span.end(
            &series(SpanKind::Server),
            OperationFailure::default(),
            Duration::ZERO,
        );
    }
    assert_eq!((spans(&recorder).len(), recorder.dropped.get()), (3, 2));
}

#[test]
fn metrics_have_cumulative_points_with_attributes_and_bounds() {
    let family = CounterFamily::new(&HTTP_REJECTIONS, 5);
    family.add(&["invalid_credentials"], 7);
    let calls = series(SpanKind::Server);
    calls.record(Duration::from_millis(15), OperationFailure::default());
    calls.record(Duration::from_secs(400), failure(Some("tool_error"), None));
    let mut samples = SampleList::default();
    family.collect(&mut samples);
    calls.collect(&mut samples);
    let now = SystemTime::now();
    let request = metrics_request(&resource(), &samples, now - Duration::from_secs(9), now);
    let request = ExportMetricsServiceRequest::decode(request.as_slice()).unwrap();
    let metrics = &request.resource_metrics[0].scope_metrics[0].metrics;
    let named = |name: &str| metrics.iter().find(|metric| metric.name == name).unwrap();
    let Some(Data::Sum(sum)) = &named("toolgate.http.rejections").data else {
        panic!("a counter")
    };
    assert!(sum.is_monotonic);
    assert_eq!(
        sum.aggregation_temporality(),
        AggregationTemporality::Cumulative
    );
    assert_eq!(
        sum.data_points[0].value,
        Some(number_data_point::Value::AsDouble(7.0))
    );
    let operations = named("mcp.server.operation.duration");
    assert_eq!(operations.unit, "s");
    let Some(Data::Histogram(histogram)) = &operations.data else {
        panic!("a histogram")
    };
    let [success, failure] = histogram.data_points.as_slice() else {
        panic!("two series")
    };
    assert_eq!(success.explicit_bounds, MCP_SERVER_OPERATION.bounds);
    assert_eq!((success.count, success.sum), (1, Some(0.015)));
    assert_eq!(success.bucket_counts[1], 1);
    assert_eq!(*failure.bucket_counts.last().unwrap(), 1);
    assert_eq!(
        text(&failure.attributes, "error.type").as_deref(),
        Some("tool_error")
    );
    assert!(failure.time_unix_nano - failure.start_time_unix_nano >= 9_000_000_000);
}
