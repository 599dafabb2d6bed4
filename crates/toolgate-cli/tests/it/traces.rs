//! Traces and metrics over OTLP: the spans of one call join client, gateway and server.

use crate::{
    help::{Collector, Modern, Reply, SOON, Session, Setup, attribute, sayer, send, until},
    monitoring::metrics_of,
};
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind, status::StatusCode};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn exporting(collector: &Collector, more: &str) -> String {
    format!(
        "[telemetry]\notlp_endpoint = \"http://127.0.0.1:{}\"\n{more}",
        collector.port
    )
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Spans of the trace, once there are that many. Batches are exported every few milliseconds in these tests.
fn spans_of(collector: &Collector, trace: &str, count: usize) -> Vec<Span> {
    until("the spans arrive", SOON, || {
        let mut spans = collector.spans();
        spans.retain(|span| hex(&span.trace_id) == trace);
        (spans.len() >= count).then_some(spans)
    })
}

fn of_kind(spans: &[Span], kind: SpanKind) -> &Span {
    spans.iter().find(|span| span.kind() == kind).unwrap()
}

/// A server whose calls are noted, and a config with it.
fn noting_server() -> (Arc<Mutex<Vec<Value>>>, String) {
    let calls = Arc::<Mutex<Vec<Value>>>::default();
    let noted = calls.clone();
    let url = sayer(move |message| {
        noted.lock().unwrap().push(message.clone());
        Reply::result(
            message,
            json!({"content": [{"type": "text", "text": "said"}]}),
        )
    });
    let config = format!(
        "[server.far]\nurl = {url:?}\ntrust_annotations = true\n[[rule]]\ntools = [\"*\"]\naction = \"allow\"\n"
    );
    (calls, config)
}

fn call_with_meta(port: u16, meta: &Value, headers: &[String]) -> Value {
    let mut body = Modern::body(
        &json!("call-1"),
        "tools/call",
        json!({"name": "far_say", "arguments": {}}),
    );
    for (key, value) in meta.as_object().unwrap() {
        body["params"]["_meta"][key] = value.clone();
    }
    let mut all = Modern::headers("tools/call", Some("far_say"));
    all.extend_from_slice(headers);
    let response = send(port, "POST", "/mcp", &all, body.to_string().as_bytes());
    crate::help::answer_of(&response, &json!("call-1"))
}

#[test]
fn the_spans_of_a_call_join_client_gateway_and_server() {
    for (protocol, schedule) in [("http/protobuf", "20"), ("grpc", "20")] {
        let collector = Collector::start();
        let (calls, config) = noting_server();
        let more = format!("otlp_protocol = \"{protocol}\"\n{config}");
        let gate = Setup::config(exporting(&collector, &more))
            .env("OTEL_BSP_SCHEDULE_DELAY", schedule)
            .env(
                "OTEL_RESOURCE_ATTRIBUTES",
                "deployment.environment.name=test",
            )
            .env("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=seven")
            .start();
        let meta = json!({"traceparent": PARENT, "tracestate": "vendor=1", "baggage": "user=7"});
        let answer = call_with_meta(gate.port, &meta, &[]);
        assert_eq!(answer["result"]["content"][0]["text"], "said", "{answer}");
        let spans = spans_of(&collector, TRACE, 2);
        let (server, client) = (
            of_kind(&spans, SpanKind::Server),
            of_kind(&spans, SpanKind::Client),
        );
        // Client to gateway, and gateway to server.
        assert_eq!(hex(&server.parent_span_id), "b7ad6b7169203331");
        assert_eq!(client.parent_span_id, server.span_id);
        let sent = calls.lock().unwrap()[0]["params"]["_meta"].clone();
        let expected = format!("00-{TRACE}-{}-01", hex(&client.span_id));
        assert_eq!(sent["traceparent"], expected, "{sent}");
        assert_eq!(
            (&sent["tracestate"], &sent["baggage"]),
            (&json!("vendor=1"), &json!("user=7"))
        );
        // Names and attributes of the conventions.
        assert_eq!(server.name, "tools/call far_say");
        assert_eq!(client.name, "tools/call say");
        for (span, key, value) in [
            (server, "mcp.method.name", "tools/call"),
            (server, "gen_ai.operation.name", "execute_tool"),
            (server, "gen_ai.tool.name", "far_say"),
            (server, "mcp.protocol.version", "2026-07-28"),
            (server, "network.transport", "tcp"),
            (server, "jsonrpc.request.id", "call-1"),
            (client, "gen_ai.tool.name", "say"),
            (client, "mcp.protocol.version", "2025-06-18"),
            (client, "toolgate.server", "far"),
            (client, "server.address", "127.0.0.1"),
        ] {
            assert_eq!(
                attribute(&span.attributes, key).as_deref(),
                Some(value),
                "{key}"
            );
        }
        let events: Vec<&str> = server
            .events
            .iter()
            .map(|event| event.name.as_str())
            .collect();
        assert_eq!(events, ["toolgate.decision"]);
        let resource = collector.resources()[0].clone();
        assert_eq!(
            attribute(&resource, "service.name").as_deref(),
            Some("toolgate")
        );
        assert_eq!(
            attribute(&resource, "deployment.environment.name").as_deref(),
            Some("test")
        );
        assert_eq!(collector.headers()[0]["x-tenant"], "seven");
        gate.stop();
        // The shutdown exports what is left.
        let names: Vec<String> = collector
            .metrics()
            .into_iter()
            .map(|metric| metric.name)
            .collect();
        assert!(
            names
                .iter()
                .any(|name| name == "mcp.server.operation.duration"),
            "{names:?}"
        );
    }
}

#[test]
fn a_trace_in_the_http_headers_is_continued_and_linked() {
    let collector = Collector::start();
    let (calls, config) = noting_server();
    let gate = Setup::config(exporting(&collector, &config))
        .env("OTEL_BSP_SCHEDULE_DELAY", "20")
        .start();
    let header = format!("traceparent: {PARENT}");
    call_with_meta(gate.port, &json!({}), std::slice::from_ref(&header));
    let server = of_kind(&spans_of(&collector, TRACE, 2), SpanKind::Server).clone();
    assert_eq!(hex(&server.parent_span_id), "b7ad6b7169203331");
    // The context of the message comes first; that of the transport becomes a link.
    let other = "11111111111111111111111111111111";
    let meta = json!({"traceparent": format!("00-{other}-2222222222222222-01")});
    call_with_meta(gate.port, &meta, std::slice::from_ref(&header));
    let server = of_kind(&spans_of(&collector, other, 2), SpanKind::Server).clone();
    assert_eq!(hex(&server.parent_span_id), "2222222222222222");
    assert_eq!(hex(&server.links[0].trace_id), TRACE);
    // Sessions continue it too.
    let session = Session::open(gate.port);
    let mut headers = session.headers();
    headers.push(header);
    let body = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "far_say", "arguments": {}}});
    send(
        gate.port,
        "POST",
        "/mcp",
        &headers,
        body.to_string().as_bytes(),
    );
    let sent = until("the call arrives", SOON, || {
        calls.lock().unwrap().get(2).cloned()
    });
    let parent = sent["params"]["_meta"]["traceparent"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(parent.starts_with(&format!("00-{TRACE}-")), "{parent}");
    assert_ne!(parent, PARENT);
}

#[test]
fn without_an_exporter_the_trace_context_passes_unchanged() {
    let (calls, config) = noting_server();
    let gate = Setup::config(config).start();
    call_with_meta(gate.port, &json!({"traceparent": PARENT}), &[]);
    call_with_meta(gate.port, &json!({}), &[format!("traceparent: {PARENT}")]);
    call_with_meta(gate.port, &json!({}), &[]);
    let calls = calls.lock().unwrap().clone();
    assert_eq!(calls[0]["params"]["_meta"]["traceparent"], PARENT);
    assert_eq!(calls[1]["params"]["_meta"]["traceparent"], PARENT);
    assert_eq!(calls[2]["params"]["_meta"]["traceparent"], Value::Null);
}

#[test]
fn spans_tell_of_waiting_refusals_and_sanitizing_without_contents() {
    let collector = Collector::start();
    // In two parts, so that a search for keys in this file finds none.
    let secret = ["AKI", "AQ4T5Z2LM7NPR3SVX"].concat();
    let told = secret.clone();
    let url = sayer(move |message| {
        let text = format!("the key is {told}");
        Reply::result(
            message,
            json!({"content": [{"type": "text", "text": text}]}),
        )
    });
    let config = format!(
        "[server.far]\nurl = {url:?}\n[[rule]]\ntools = [\"far.*\"]\naction = \"ask\"\nwhen = \"!has(args.free)\"\n[[rule]]\ntools = [\"far.*\"]\naction = \"deny\"\nwhen = \"has(args.bad)\"\n"
    );
    let gate = Setup::config(exporting(&collector, &config))
        .env("OTEL_BSP_SCHEDULE_DELAY", "20")
        .start();
    let port = gate.port;
    let argument = "argument-that-no-span-shows";
    let waiting = std::thread::spawn(move || {
        Modern::call(port, &json!(1), "far_say", json!({"text": argument}))
    });
    let id = gate.pending();
    gate.cli(&["approve", &id]);
    waiting.join().unwrap();
    Modern::call(port, &json!(2), "far_say", json!({"bad": argument}));
    let spans = until("the spans arrive", SOON, || {
        let spans = collector.spans();
        (spans
            .iter()
            .filter(|span| span.name.starts_with("tools/call"))
            .count()
            >= 3)
            .then_some(spans)
    });
    let events = |wanted: &str| -> Vec<String> {
        let is = |span: &&Span| {
            span.kind() == SpanKind::Server
                && attribute(&span.attributes, "jsonrpc.request.id").as_deref() == Some(wanted)
        };
        let span = spans.iter().find(is).unwrap();
        let one = |event: &opentelemetry_proto::tonic::trace::v1::span::Event| {
            let of = |key| attribute(&event.attributes, key);
            [
                Some(event.name.clone()),
                of("toolgate.decision"),
                of("toolgate.policy"),
            ]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" ")
        };
        span.events.iter().map(one).collect()
    };
    assert_eq!(
        events("1"),
        [
            "toolgate.decision toolgate.decision ask access",
            "toolgate.wait.begin",
            "toolgate.wait.end",
            "toolgate.decision toolgate.decision ask access",
            "toolgate.decision toolgate.decision allow",
            "toolgate.sanitized",
        ]
        .map(|line| line.replace("toolgate.decision toolgate.decision", "toolgate.decision"))
    );
    assert!(
        events("2")
            .iter()
            .any(|event| event == "toolgate.decision deny access"),
        "{:?}",
        events("2")
    );
    let refused = spans
        .iter()
        .find(|span| attribute(&span.attributes, "jsonrpc.request.id").as_deref() == Some("2"))
        .unwrap();
    assert_eq!(
        attribute(&refused.attributes, "error.type").as_deref(),
        Some("tool_error")
    );
    assert_eq!(refused.status.as_ref().unwrap().code(), StatusCode::Error);
    for hidden in [argument, secret.as_str()] {
        assert!(!collector.contains(hidden), "{hidden}");
    }
}

#[test]
fn a_collector_that_is_away_costs_no_call_and_is_reported_once() {
    // Bound without listening, so that connections are refused and no other test gets the port.
    let away = tokio::net::TcpSocket::new_v4().unwrap();
    away.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = away.local_addr().unwrap().port();
    let (_, config) = noting_server();
    let config = format!("[telemetry]\notlp_endpoint = \"http://127.0.0.1:{port}\"\n{config}");
    let gate = Setup::config(config)
        .env("OTEL_BSP_SCHEDULE_DELAY", "20")
        .start();
    for number in 0..20 {
        let answer = Modern::call(gate.port, &json!(number), "far_say", json!({}));
        assert_eq!(answer.status, 200);
    }
    let metrics = until("a failed export is counted", SOON, || {
        let metrics = metrics_of(gate.port);
        let failed =
            metrics.get("toolgate_telemetry_export_failures_total{toolgate_signal=\"traces\"}");
        failed.is_some_and(|count| *count >= 1.0).then_some(metrics)
    });
    assert!(metrics["toolgate_telemetry_spans_dropped_total"] >= 1.0);
    let count = || {
        let lines = gate.said().into_iter();
        lines
            .filter(|line| line.contains("collector cannot be reached"))
            .count()
    };
    until("the failure is printed", SOON, || {
        (count() > 0).then_some(())
    });
    until("another export failed", SOON, || {
        Modern::call(gate.port, &json!(99), "far_say", json!({}));
        let metrics = metrics_of(gate.port);
        let failed =
            metrics["toolgate_telemetry_export_failures_total{toolgate_signal=\"traces\"}"];
        (failed >= 2.0).then_some(())
    });
    assert_eq!(count(), 1);
}
