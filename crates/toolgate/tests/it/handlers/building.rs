//! Errors found when the server is built.

use serde_json::{Value, json};
use toolgate::handlers::{HandlerExit, Server, Tool};

fn tool(name: &str, schema: Value) -> Tool {
    Tool::dynamic(name, schema, |_, _| async { Ok::<_, HandlerExit>("x") })
}

fn check(server: Server, expected: &str) {
    let error = match server.build() {
        Err(error) => error.to_string(),
        Ok(_) => panic!("built, though {expected}"),
    };
    assert!(error.contains(expected), "{error}");
}

/// Holds: TOOL-30, TOOL-31, TOOL-32, TOOL-33
#[test]
fn headers_that_cannot_be_sent_are_named() {
    let with = |properties: Value| {
        let schema = json!({"type": "object", "properties": properties});
        Server::new("s", "1").tool(tool("a", schema))
    };
    let marked = |kind: &str, label: &str| json!({"type": kind, "x-mcp-header": label});
    assert!(
        with(json!({"x": marked("string", "Region")}))
            .build()
            .is_ok()
    );
    check(
        with(json!({"x": marked("string", "")})),
        "the tool \"a\": an \"x-mcp-header\" is empty",
    );
    check(
        with(json!({"x": marked("string", "a b")})),
        "is not a valid header name",
    );
    check(
        with(json!({"x": marked("number", "N")})),
        "other than string, integer or boolean",
    );
    check(
        with(json!({"x": marked("string", "A"), "y": marked("string", "a")})),
        "the same",
    );
    let items = json!({"x": {"type": "array", "items": marked("string", "A")}});
    check(with(items), "reachable through \"properties\" alone");
}

/// Holds: TOOL-08, TOOL-24, TOOL-26, TOOL-27, BASE-47
#[test]
fn wrong_definitions_are_named() {
    let server = || Server::new("s", "1");
    let object = || json!({"type": "object"});
    check(
        server().tool(tool("a b", object())),
        "the tool \"a b\": its name is invalid; use 1 to 128",
    );
    check(server().tool(tool("", object())), "the tool \"\": ");
    for name in ["a,b", "a/b", "a:b", "é", "a\n"] {
        check(
            server().tool(tool(name, object())),
            ": its name is invalid; use 1 to 128",
        );
    }
    check(
        server().tool(tool(&"x".repeat(129), object())),
        "its name is invalid; use 1 to 128",
    );
    check(
        server().tool(tool("a", object())).tool(tool("a", object())),
        "the tool \"a\": its name is not unique",
    );
    check(
        server().tool(tool("a", json!({"type": "string"}))),
        "the root of its inputSchema",
    );
    check(
        server().tool(tool("a", json!(null))),
        "\"inputSchema\" is missing or not an object",
    );
    check(
        server().tool(tool(
            "a",
            json!({"type": "object", "properties": {"x": {"type": 7}}}),
        )),
        "a part of its inputSchema cannot be checked: /properties/x/type",
    );
    check(
        server().tool(tool("a", object()).output_schema(json!({"$ref": "https://example.com/x"}))),
        "its outputSchema cannot be used",
    );
}
