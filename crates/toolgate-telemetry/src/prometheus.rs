//! Prometheus text format, version 0.0.4.

use crate::{
    MetricDefinition, MetricKind, MetricSample, SampleList, SampleValue, prometheus_label,
};
use std::fmt::Write;

/// Content type of the text format.
pub const PROMETHEUS_CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Writes the samples in the Prometheus text format.
pub fn prometheus_text(samples: &SampleList) -> String {
    let mut out = String::new();
    for (metric, series) in samples.metrics() {
        write_metric(&mut out, metric, series);
    }
    out
}

fn write_metric(out: &mut String, metric: &MetricDefinition, series: &[MetricSample]) {
    let name = metric.prometheus_name();
    let kind = match metric.kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
        MetricKind::Histogram => "histogram",
    };
    // Writing to a string cannot fail.
    let _ = writeln!(out, "# HELP {name} {}", metric.description.trim());
    let _ = writeln!(out, "# TYPE {name} {kind}");
    for sample in series {
        let labels = labels(sample);
        match &sample.value {
            SampleValue::Number(value) => write_line(out, &name, &labels, "", *value),
            SampleValue::Histogram(values) => {
                let mut sum = 0;
                let bounds = metric.bounds.iter().copied().chain([f64::INFINITY]);
                for (bound, count) in bounds.zip(&values.buckets) {
                    sum += count;
                    let le = format!("le=\"{}\"", number(bound));
                    write_line(out, &format!("{name}_bucket"), &labels, &le, sum as f64);
                }
                write_line(out, &format!("{name}_sum"), &labels, "", values.sum);
                write_line(out, &format!("{name}_count"), &labels, "", sum as f64);
            }
        }
    }
}

fn write_line(out: &mut String, name: &str, labels: &str, more: &str, value: f64) {
    let comma = if labels.is_empty() || more.is_empty() {
        ""
    } else {
        ","
    };
    let _ = match labels.is_empty() && more.is_empty() {
        true => writeln!(out, "{name} {}", number(value)),
        false => writeln!(out, "{name}{{{labels}{comma}{more}}} {}", number(value)),
    };
}

fn labels(sample: &MetricSample) -> String {
    let one = |(key, value): &(&'static str, std::sync::Arc<str>)| {
        format!("{}=\"{}\"", prometheus_label(key), escape(value))
    };
    sample
        .attributes
        .iter()
        .map(one)
        .collect::<Vec<_>>()
        .join(",")
}

/// Escapes the value of a label. A name of a server may contain any character.
fn escape(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

fn number(value: f64) -> String {
    match value.is_infinite() {
        true => "+Inf".to_owned(),
        false => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        DurationHistogram,
        definition::{CALLS_RUNNING, HTTP_REJECTIONS, MCP_SERVER_SESSION},
    };
    use std::time::Duration;

    #[test]
    fn writes_help_type_labels_and_cumulative_buckets() {
        let mut samples = SampleList::default();
        samples.plain(&CALLS_RUNNING, 3.0);
        samples.number(
            &HTTP_REJECTIONS,
            [("toolgate.reason", "a\"b\\c\nd".into())],
            2.0,
        );
        let histogram = DurationHistogram::new(MCP_SERVER_SESSION.bounds);
        histogram.record(Duration::from_millis(15));
        histogram.record(Duration::from_secs(400));
        samples.add(
            &MCP_SERVER_SESSION,
            vec![("network.protocol.name", "http".into())],
            SampleValue::Histogram(histogram.values()),
        );
        let text = prometheus_text(&samples);
        for line in [
            "# TYPE toolgate_calls_running gauge",
            "toolgate_calls_running 3",
            "toolgate_http_rejections_total{toolgate_reason=\"a\\\"b\\\\c\\nd\"} 2",
            "# TYPE mcp_server_session_duration_seconds histogram",
            "mcp_server_session_duration_seconds_bucket{network_protocol_name=\"http\",le=\"0.01\"} 0",
            "mcp_server_session_duration_seconds_bucket{network_protocol_name=\"http\",le=\"0.02\"} 1",
            "mcp_server_session_duration_seconds_bucket{network_protocol_name=\"http\",le=\"+Inf\"} 2",
            "mcp_server_session_duration_seconds_sum{network_protocol_name=\"http\"} 400.015",
            "mcp_server_session_duration_seconds_count{network_protocol_name=\"http\"} 2",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
