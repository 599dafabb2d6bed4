//! Compares our metrics with the semantic conventions for MCP, vendored in `spec/opentelemetry`.

use serde_json::Value;
use toolgate_telemetry::{
    MetricDefinition, MetricKind, SCHEMA_URL,
    definition::{
        ALL_METRICS, MCP_CLIENT_OPERATION, MCP_CLIENT_SESSION, MCP_SERVER_OPERATION,
        MCP_SERVER_SESSION,
    },
};

/// Attributes of the conventions that no sample has, with the reason.
const LEFT_OUT: [(&str, &str); 3] = [
    (
        "jsonrpc.protocol.version",
        "recommended if it is not 2.0, and the gateway accepts no other version",
    ),
    (
        "mcp.resource.uri",
        "callers choose it: unbounded, and it may contain secrets",
    ),
    ("gen_ai.prompt.variable", "it contains arguments of callers"),
];

/// Attributes that we add to those of the conventions.
const OURS: [&str; 1] = ["toolgate.server"];

fn conventions() -> Value {
    let text = include_str!("../../../../spec/opentelemetry/mcp.json");
    serde_json::from_str(text).unwrap()
}

fn problems(metric: &MetricDefinition, definition: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let name = metric.name;
    if definition["instrument"] != "histogram" || metric.kind != MetricKind::Histogram {
        problems.push(format!("{name} is no histogram"));
    }
    if definition["unit"] != metric.unit {
        problems.push(format!("{name} has the unit {}", metric.unit));
    }
    let buckets: Vec<f64> = definition["buckets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bound| bound.as_f64().unwrap())
        .collect();
    if buckets != metric.bounds {
        problems.push(format!("{name} has other buckets"));
    }
    let defined = definition["attributes"].as_object().unwrap();
    for attribute in defined.keys() {
        let left_out = LEFT_OUT.iter().any(|(name, _)| name == attribute);
        if metric.attributes.contains(&attribute.as_str()) == left_out {
            problems.push(format!(
                "{name}: {attribute} is in neither or both of the lists"
            ));
        }
    }
    for attribute in metric.attributes {
        if !defined.contains_key(*attribute) && !OURS.contains(attribute) {
            problems.push(format!("{name}: the conventions lack {attribute}"));
        }
    }
    problems
}

#[test]
fn mcp_histograms_have_the_names_units_attributes_and_buckets_of_the_conventions() {
    let conventions = conventions();
    let ours: Vec<_> = ALL_METRICS
        .iter()
        .filter(|m| m.name.starts_with("mcp."))
        .collect();
    let defined = conventions["metrics"].as_object().unwrap();
    assert_eq!(ours.len(), defined.len());
    let all: Vec<String> = ours
        .iter()
        .flat_map(|metric| problems(metric, &defined[metric.name]))
        .collect();
    assert!(all.is_empty(), "{all:#?}");
    assert_eq!(conventions["source"]["schema_url"], SCHEMA_URL);
}

#[test]
fn a_difference_from_the_conventions_is_a_problem() {
    let conventions = conventions();
    let definition = |name: &str| conventions["metrics"][name].clone();
    let problems_with = |change: &dyn Fn(&mut Value)| {
        let mut changed = definition(MCP_SERVER_OPERATION.name);
        change(&mut changed);
        problems(&MCP_SERVER_OPERATION, &changed).len()
    };
    assert_eq!(problems_with(&|_| {}), 0);
    assert_eq!(problems_with(&|d| d["unit"] = "ms".into()), 1);
    assert_eq!(problems_with(&|d| d["instrument"] = "counter".into()), 1);
    assert_eq!(problems_with(&|d| d["buckets"][0] = 0.02.into()), 1);
    assert_eq!(
        problems_with(&|d| d["attributes"]["new.one"] = "required".into()),
        1
    );
    let without = |d: &mut Value| {
        d["attributes"]
            .as_object_mut()
            .unwrap()
            .remove("error.type");
    };
    assert_eq!(problems_with(&without), 1);
}

#[test]
fn sessions_and_requests_to_servers_have_the_address_of_the_server() {
    for metric in [&MCP_CLIENT_OPERATION, &MCP_CLIENT_SESSION] {
        assert!(
            metric.attributes.contains(&"server.address"),
            "{}",
            metric.name
        );
    }
    assert!(!MCP_SERVER_SESSION.attributes.contains(&"server.address"));
}
