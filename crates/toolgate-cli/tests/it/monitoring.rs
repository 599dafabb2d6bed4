//! Health pages and metrics: on the gateway's listener, and on one of their own.

use crate::help::{Gate, Modern, SOON, Setup, TempDir, free_port, output, send, toolgate, until};
use serde_json::json;
use std::collections::BTreeMap;

/// Metrics of a page, by name and labels.
pub(crate) fn parse_metrics(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pair = |line: &str| {
        let (name, value) = line.rsplit_once(' ')?;
        let value = value.replace("+Inf", "inf").parse().ok()?;
        Some((name.to_owned(), value))
    };
    lines.map(|line| pair(line).expect(line)).collect()
}

/// Metrics of a gateway's own listener.
pub(crate) fn metrics_of(port: u16) -> BTreeMap<String, f64> {
    let page = send(port, "GET", "/metrics", &[], b"");
    assert_eq!(page.status, 200, "{}", page.body.clone());
    parse_metrics(&page.body.clone())
}

fn page(port: u16, path: &str) -> (u16, String) {
    let response = send(port, "GET", path, &[], b"");
    (response.status, response.body.clone())
}

#[test]
fn metrics_count_calls_by_tool_and_outcome_without_contents() {
    let gate = Setup::fast_demo("").start();
    for number in 0..3 {
        let call = Modern::call(
            gate.port,
            &json!(number),
            "demo_add",
            json!({"a": 1, "b": 2}),
        );
        assert_eq!(call.status, 200);
    }
    let secret = "argument-that-no-metric-shows";
    Modern::call(gate.port, &json!(9), "demo_add", json!({"a": secret}));
    Modern::call(gate.port, &json!(10), secret, json!({}));
    let page = send(gate.port, "GET", "/metrics", &[], b"");
    assert_eq!(
        page.header("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    let text = page.body.clone();
    assert!(!text.contains(secret), "{text}");
    let metrics = parse_metrics(&text);
    let calls = |tool: &str, server: &str, outcome: &str| {
        let name = format!(
            "toolgate_calls_total{{toolgate_server=\"{server}\",gen_ai_tool_name=\"{tool}\",toolgate_outcome=\"{outcome}\"}}"
        );
        metrics.get(&name).copied().unwrap_or_default()
    };
    assert_eq!(calls("add", "demo", "ok"), 3.0, "{text}");
    assert_eq!(calls("add", "demo", "refused"), 1.0, "{text}");
    assert_eq!(calls("_OTHER", "_OTHER", "refused"), 1.0, "{text}");
    for (name, value) in [
        ("toolgate_decisions_total{toolgate_decision=\"allow\"}", 3.0),
        (
            "toolgate_call_errors_total{toolgate_error_class=\"not_found\"}",
            1.0,
        ),
        ("toolgate_server_up{toolgate_server=\"demo\"}", 1.0),
        ("toolgate_audit_up", 1.0),
        ("toolgate_store_up", 1.0),
        ("toolgate_ready", 1.0),
        ("toolgate_approvals_pending", 0.0),
        ("toolgate_calls_running", 0.0),
    ] {
        assert_eq!(metrics.get(name), Some(&value), "{name}\n{text}");
    }
    assert!(metrics["toolgate_audit_records_total"] >= 6.0, "{text}");
    assert!(
        metrics["toolgate_audit_sync_duration_seconds_count"] >= 1.0,
        "{text}"
    );
    assert!(metrics["toolgate_memory_limit_bytes"] > 0.0, "{text}");
}

#[test]
fn without_metrics_of_calls_the_page_has_the_state_of_the_gateway() {
    let gate = Setup::fast_demo("[telemetry]\nmetrics = false\n").start();
    Modern::call(gate.port, &json!(1), "demo_add", json!({"a": 1, "b": 2}));
    let metrics = metrics_of(gate.port);
    assert!(
        !metrics
            .keys()
            .any(|name| name.starts_with("toolgate_calls_total"))
    );
    assert_eq!(metrics["toolgate_ready"], 1.0);
}

#[test]
fn probes_need_no_credentials_and_no_known_host() {
    let gate = Setup::fast_demo("")
        .top("token = { env = \"TOOLGATE_TEST_TOKEN\" }")
        .env("TOOLGATE_TEST_TOKEN", "correct-horse-battery-staple")
        .start();
    for path in ["/livez", "/readyz"] {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: 10.1.2.3:8665\r\nConnection: close\r\n\r\n");
        let response = crate::help::raw(gate.port, request.as_bytes());
        assert_eq!(response.status, 200, "{path}: {}", response.body.clone());
        assert_eq!(send(gate.port, "POST", path, &[], b"").status, 405);
    }
    assert_eq!(page(gate.port, "/readyz").1.trim(), "ready");
}

#[test]
fn a_listener_with_credentials_serves_metrics_only_with_the_token_of_admin() {
    let gate = Setup::fast_demo("")
        .top("token = { env = \"TOOLGATE_TEST_TOKEN\" }")
        .env("TOOLGATE_TEST_TOKEN", "correct-horse-battery-staple")
        .start();
    let with = |port, token: &str| {
        let header = format!("Authorization: Bearer {token}");
        send(port, "GET", "/metrics", &[header], b"").status
    };
    assert_eq!(with(gate.port, "correct-horse-battery-staple"), 403);
    drop(gate);
    let gate = Setup::fast_demo("[admin]\ntoken = { env = \"TOOLGATE_TEST_ADMIN\" }\n")
        .env("TOOLGATE_TEST_ADMIN", "metrics-token-of-the-test")
        .start();
    assert_eq!(page(gate.port, "/metrics").0, 401);
    assert_eq!(with(gate.port, "wrong"), 401);
    assert_eq!(with(gate.port, "metrics-token-of-the-test"), 200);
}

#[test]
fn an_admin_listener_serves_the_pages_and_nothing_else() {
    let port = free_port();
    let admin = format!("[admin]\nlisten = \"127.0.0.1:{port}\"\n");
    let gate = Setup::fast_demo(&admin).start();
    assert_eq!(page(port, "/livez"), (200, "ok\n".to_owned()));
    assert_eq!(page(port, "/readyz").0, 200);
    assert_eq!(page(port, "/metrics").0, 200);
    for path in ["/", "/mcp", "/console/api/state"] {
        assert_eq!(page(port, path).0, 404, "{path}");
    }
    for path in ["/livez", "/readyz", "/metrics"] {
        assert_eq!(page(gate.port, path).0, 404, "{path}");
    }
}

#[test]
fn an_open_admin_listener_needs_a_token_or_a_dangerous_setting() {
    let folder = TempDir::new("admin");
    let check = |section: &str| {
        let config = folder.write(
            "toolgate.toml",
            &format!(
                "[server.a]\ncommand = [\"true\"]\n[admin]\nlisten = \"0.0.0.0:9665\"\n{section}"
            ),
        );
        let out = output(toolgate().arg("check").arg("--config").arg(&config));
        (
            out.status.code(),
            String::from_utf8_lossy(&out.stderr).into_owned(),
        )
    };
    let (code, said) = check("");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("danger_open_metrics"), "{said}");
    let (code, said) = check("danger_open_metrics = true\n");
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn readiness_has_reasons() {
    let port = free_port();
    let admin = format!("[admin]\nlisten = \"127.0.0.1:{port}\"\n");
    let gate = Setup::fast_demo(&admin).start();
    gate.configure("not a config");
    let warned = until("the rejected config is shown", SOON, || {
        let (status, text) = page(port, "/readyz");
        text.contains("warning: config").then_some((status, text))
    });
    // The config before is in use and works, so a balancer must not take all gateways out.
    assert_eq!(warned.0, 200, "{}", warned.1);
    assert!(!warned.1.contains("toolgate.toml"), "{}", warned.1);
    let metrics = parse_metrics(&page(port, "/metrics").1);
    assert_eq!(metrics["toolgate_config_rejected"], 1.0);
    assert!(is_draining_before_it_ends(gate, port));
}

/// Stops a gateway while a call runs, and returns whether it reported that it drains.
fn is_draining_before_it_ends(gate: Gate, admin: u16) -> bool {
    let port = gate.port;
    let call = std::thread::spawn(move || {
        Modern::call(port, &json!(1), "demo_slow_count", json!({"to": 3}))
    });
    until("the call runs", SOON, || {
        let metrics = parse_metrics(&page(admin, "/metrics").1);
        (metrics["toolgate_calls_running"] == 1.0).then_some(())
    });
    gate.signal("TERM");
    let reason = until("it drains", SOON, || {
        let (status, text) = page(admin, "/readyz");
        (status == 503).then_some(text)
    });
    call.join().unwrap();
    reason.contains("not ready: draining")
}
