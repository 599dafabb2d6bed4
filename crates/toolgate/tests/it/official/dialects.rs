//! The dialect tables against the official schemas: a table must not claim a feature that its schema lacks.

use serde_json::Value;
use std::path::Path;
use toolgate_protocol::dialect::{self, Dialect};

/// Definitions of a schema by name.
struct Definitions(Value);

impl Definitions {
    fn of(revision: &str) -> Definitions {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec");
        let text = std::fs::read_to_string(folder.join(revision).join("schema.json")).unwrap();
        let mut schema: Value = serde_json::from_str(&text).unwrap();
        let under = match schema.get("$defs") {
            Some(_) => "$defs",
            None => "definitions",
        };
        Definitions(schema[under].take())
    }

    fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some()
    }

    fn has_property(&self, definition: &str, name: &str) -> bool {
        self.0[definition]["properties"].get(name).is_some()
    }
}

/// Returns each fact of a table with what the schema says about it.
fn facts(dialect: &Dialect, schema: &Definitions) -> Vec<(&'static str, bool, bool)> {
    let result = toolgate_protocol::json::Json::from_value(&serde_json::json!({"resultType": "x"}));
    vec![
        (
            "request_meta",
            dialect.request_meta,
            schema.has_property("RequestMetaObject", "io.modelcontextprotocol/clientInfo"),
        ),
        (
            "result_type",
            dialect.result_type(&result).is_some(),
            schema.has_property("Result", "resultType"),
        ),
        (
            "server_requests",
            dialect.server_requests,
            schema.has("ServerRequest"),
        ),
        (
            "input_required_results",
            dialect.input_required_results,
            schema.has("InputRequiredResult"),
        ),
        ("ping", dialect.ping, schema.has("PingRequest")),
        (
            "request_log_level",
            dialect.request_log_level,
            !schema.has("SetLevelRequest"),
        ),
        (
            "subscription_streams",
            dialect.subscription_streams,
            schema.has("SubscriptionsListenRequest"),
        ),
        (
            "roots_list_changed",
            dialect.roots_list_changed,
            schema.has("RootsListChangedNotification"),
        ),
        (
            "extensions",
            dialect.extensions,
            schema.has_property("ServerCapabilities", "extensions"),
        ),
        (
            "cache_hints",
            dialect.cache_hints,
            schema.has_property("ListToolsResult", "ttlMs"),
        ),
        (
            "missing_capability_error",
            dialect.missing_capability_error,
            schema.has("MissingRequiredClientCapabilityError"),
        ),
        (
            "stateless",
            dialect.stateless,
            !schema.has("InitializeRequest"),
        ),
    ]
}

#[test]
fn each_dialect_table_agrees_with_its_schema() {
    for dialect in dialect::ALL {
        let schema = Definitions::of(dialect.revision);
        for (fact, table, schema) in facts(dialect, &schema) {
            assert_eq!(table, schema, "{fact} of {}", dialect.revision);
        }
    }
}
