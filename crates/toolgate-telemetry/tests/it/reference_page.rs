//! Compares the reference page of the metrics with their definitions. `TOOLGATE_WRITE_SNAPSHOTS=1` writes the page.

use std::{fmt::Write as _, fs, path::Path};
use toolgate_telemetry::{MetricKind, definition::ALL_METRICS, prometheus_label};

const BEGIN: &str = "<!-- generated: metrics -->\n";
const END: &str = "<!-- end of the generated table -->";

fn table() -> String {
    let mut table = String::from(
        "| Prometheus | OpenTelemetry | kind | labels | meaning |\n|---|---|---|---|---|\n",
    );
    for metric in ALL_METRICS {
        let kind = match metric.kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        let labels: Vec<String> = metric
            .attributes
            .iter()
            .map(|name| format!("`{}`", prometheus_label(name)))
            .collect();
        writeln!(
            table,
            "| `{}` | `{}` | {kind} | {} | {} |",
            metric.prometheus_name(),
            metric.name,
            labels.join(", "),
            metric.description.trim()
        )
        .unwrap();
    }
    table
}

#[test]
fn the_reference_page_lists_every_metric() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/metrics.md");
    let text = fs::read_to_string(&page).unwrap();
    let (head, rest) = text.split_once(BEGIN).unwrap();
    let (_, tail) = rest.split_once(END).unwrap();
    let expected = [head, BEGIN, &table(), END, tail].concat();
    if std::env::var_os("TOOLGATE_WRITE_SNAPSHOTS").is_some() {
        fs::write(&page, &expected).unwrap();
    }
    let found = fs::read_to_string(&page).unwrap();
    assert!(
        found == expected,
        "docs/reference/metrics.md differs from the definitions; run: TOOLGATE_WRITE_SNAPSHOTS=1 cargo test -p toolgate-telemetry"
    );
}
