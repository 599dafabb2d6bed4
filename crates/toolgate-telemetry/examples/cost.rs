//! What the telemetry of one call does, to count its instructions: `valgrind --tool=callgrind cost COUNT metrics|traces`.

#![allow(clippy::print_stdout, reason = "a program that prints what it did")]

use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};
use toolgate_telemetry::{
    EventAttribute, MetricCounter, MetricDefinition, OperationFailure, OperationSeries, SpanKind,
    SpanOrigin, SpanQueueLimits, SpanRecorder, SpanSampler, TelemetryResource,
    definition::{MCP_CLIENT_OPERATION, MCP_SERVER_OPERATION},
};

fn series(metric: &'static MetricDefinition, kind: SpanKind, tool: &str) -> OperationSeries {
    let attributes = [
        ("mcp.method.name", "tools/call"),
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", tool),
        ("mcp.protocol.version", "2026-07-28"),
        ("network.transport", "tcp"),
        ("network.protocol.name", "http"),
        ("network.protocol.version", "1.1"),
    ];
    let attributes = attributes.map(|(key, value)| (key, value.into()));
    OperationSeries::new(metric, kind, attributes.into())
}

fn main() {
    let mut words = std::env::args().skip(1);
    let calls: usize = words
        .next()
        .and_then(|count| count.parse().ok())
        .unwrap_or(1000);
    let is_traced = words.next().as_deref() == Some("traces");
    let (sampler, limits) = (SpanSampler::default(), SpanQueueLimits::default());
    let resource = TelemetryResource::default();
    let recorder = Arc::new(SpanRecorder::new(sampler, limits, [3, 4], &resource));
    let received = series(&MCP_SERVER_OPERATION, SpanKind::Server, "files.read");
    let sent = series(&MCP_CLIENT_OPERATION, SpanKind::Client, "read");
    let (ok, allowed) = (MetricCounter::default(), MetricCounter::default());
    let none = OperationFailure::default();
    let allow = [("toolgate.decision", EventAttribute::Text("allow"))];
    let mut bytes = 0;
    for call in 0..calls {
        let (begun, forwarded) = (Instant::now(), Instant::now());
        let origin = SpanOrigin {
            request_id: Some("17"),
            started: Some(begun),
            ..SpanOrigin::default()
        };
        let span = is_traced
            .then(|| recorder.begin(origin))
            .flatten()
            .map(Arc::new);
        if let Some(span) = &span {
            span.add_event("toolgate.decision", &allow);
            let child = span.child_context();
            black_box(child.text());
            let times = (child.span_id, forwarded, Duration::from_micros(90));
            span.end_child(times, &sent, none);
        }
        sent.record(forwarded.elapsed(), none);
        received.record(begun.elapsed(), none);
        ok.increment();
        allowed.increment();
        if let Some(span) = &span {
            span.end(&received, none, Duration::from_micros(99));
        }
        if is_traced && call % 256 == 255 {
            bytes += recorder.take().into_request(&recorder).0.len();
        }
    }
    println!("{calls} calls, {bytes} bytes");
}
