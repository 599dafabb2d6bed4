//! Views: endpoints of their own, for callers by their groups, over HTTP and with tokens of a real authorization server.

use crate::help::{
    Gate, Modern, Response, SOON, Setup, answer_of, message_of, raw, request, until,
};
use crate::oauth::{Issuer, RESOURCE, bearer};
use serde_json::{Value, json};

/// Two demo servers, and one that does not start; a view for `oncall`, and one for everybody.
fn gate(issuer: &Issuer) -> Gate {
    let program = env!("CARGO_BIN_EXE_toolgate");
    let demo = |id: &str| {
        format!(
            "[server.{id}]\ncommand = [{program:?}, \"demo-server\"]\ntrust_annotations = true\n"
        )
    };
    Setup::config(format!(
        "[limits]\nrate = \"1000000/s\"\n{}{}[server.down]\ncommand = [\"/nonexistent\"]\n\
         [auth]\nresource = \"{RESOURCE}\"\n\
         [auth.issuer.corp]\nurl = \"{}\"\ngroups_claim = \"groups\"\n\
         [[rule]]\ntools = [\"*.fail\"]\naction = \"ask\"\n\
         [view.ops]\nservers = [\"demo\"]\ncallers = [\"group:oncall\"]\n\
         [[view.ops.rule]]\ntools = [\"demo.picture\"]\naction = \"deny\"\n\
         [view.desk]\nservers = [\"other\"]\n",
        demo("demo"),
        demo("other"),
        issuer.url
    ))
    .start()
}

fn post(port: u16, path: &str, lines: &[String], body: &Value, name: Option<&str>) -> Response {
    let method = body["method"].as_str().unwrap();
    let mut head = Modern::headers(method, name);
    head.extend_from_slice(lines);
    raw(
        port,
        &request(port, "POST", path, &head, body.to_string().as_bytes()),
    )
}

fn list(port: u16, path: &str, token: &str) -> Value {
    let body = Modern::body(&json!(1), "tools/list", json!({}));
    let response = post(port, path, &bearer(token), &body, None);
    answer_of(&response, &json!(1))["result"].clone()
}

fn names(port: u16, path: &str, token: &str) -> Vec<String> {
    let list = list(port, path, token);
    let tools = list["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

fn call(port: u16, path: &str, token: &str, tool: &str) -> Response {
    let arguments = match tool.ends_with("_add") {
        true => json!({"a": 1, "b": 2}),
        false => json!({}),
    };
    let params = json!({"name": tool, "arguments": arguments});
    let body = Modern::body(&json!(1), "tools/call", params);
    post(port, path, &bearer(token), &body, Some(tool))
}

fn is_of(names: &[String], server: &str) -> bool {
    names
        .iter()
        .any(|name| name.starts_with(&format!("{server}_")))
}

#[test]
fn nothing_of_another_view_is_reachable_through_an_endpoint() {
    let groups = json!({"agent.ES256": ["oncall", "staff"], "agent.RS256": ["sales"]});
    let Some(issuer) = Issuer::with(&json!({"groups": groups})) else {
        return;
    };
    let gate = gate(&issuer);
    let port = gate.port;
    let oncall = issuer.token("agent.ES256", "demo:read");
    let sales = issuer.token("agent.RS256", "demo:read");

    // Each list has the servers of its view, and the main endpoint has all.
    until("both servers are listed", SOON, || {
        let all = names(port, "/mcp", &oncall);
        (is_of(&all, "demo") && is_of(&all, "other")).then_some(())
    });
    let ops = names(port, "/mcp/ops", &oncall);
    assert!(is_of(&ops, "demo") && !is_of(&ops, "other"), "{ops:?}");
    assert!(!ops.contains(&"demo_picture".to_owned()), "{ops:?}");
    let desk = names(port, "/mcp/desk", &sales);
    assert!(is_of(&desk, "other") && !is_of(&desk, "demo"), "{desk:?}");
    // A server outside of the view is not even missing.
    let missing = |path| list(port, path, &oncall)["_meta"]["toolgate/missing"].clone();
    assert!(!missing("/mcp").is_null());
    assert!(missing("/mcp/ops").is_null(), "{}", missing("/mcp/ops"));

    // A tool of another view is answered like one that does not exist.
    let text = |path, tool: &str| {
        let answer = answer_of(&call(port, path, &oncall, tool), &json!(1));
        answer.to_string().replace(tool, "TOOL")
    };
    assert!(text("/mcp/ops", "demo_add").contains("\"sum\":3"));
    assert_eq!(text("/mcp/ops", "other_add"), text("/mcp/ops", "none_add"));
    assert_eq!(
        text("/mcp/ops", "demo_picture"),
        text("/mcp/ops", "none_picture")
    );
    assert!(text("/mcp", "demo_picture").contains("image/png"));

    // For a caller outside of the view, its endpoint does not exist. Without credentials, nobody learns of it.
    let answer = |path, token: &str| {
        let response = call(port, path, token, "demo_add");
        (response.status, response.body)
    };
    let outside = answer("/mcp/ops", &sales);
    assert_eq!(outside.0, 404, "{outside:?}");
    assert_eq!(outside, answer("/mcp/none", &sales));
    for path in ["/mcp/ops", "/mcp/none", "/sse/ops"] {
        let body = Modern::body(&json!(1), "tools/list", json!({}));
        assert_eq!(post(port, path, &[], &body, None).status, 401, "{path}");
    }
    let key = gate.cli(&["keys", "create", "pager", "--group", "oncall"]);
    assert!(is_of(&names(port, "/mcp/ops", key.trim()), "demo"));
    let other = gate.cli(&["keys", "create", "desk", "--group", "sales"]);
    assert_eq!(answer("/mcp/ops", other.trim()).0, 404);

    let records = gate.audit();
    let begun = |record: &&Value| record["ev"] == "call.begin" && record["view"] == "ops";
    let begun = records.iter().find(begun).unwrap();
    assert_eq!(begun["groups"], json!(["oncall", "staff"]));
    let rejected = |record: &&Value| {
        record
            .to_string()
            .contains("the view ops is not for this caller")
    };
    assert!(
        records.iter().any(|record| rejected(&record)),
        "{records:?}"
    );
}

#[test]
fn tokens_and_sessions_of_one_view_open_no_other() {
    let groups = json!({"agent.ES256": ["oncall"]});
    let Some(issuer) = Issuer::with(&json!({"groups": groups})) else {
        return;
    };
    let gate = gate(&issuer);
    let port = gate.port;
    let token = issuer.token("agent.ES256", "demo:read");

    // Each view is a protected resource with metadata of its own (RFC 9728).
    let body = Modern::body(&json!(1), "tools/list", json!({}));
    let asked = post(port, "/mcp/ops", &[], &body, None);
    let challenge = asked.header("www-authenticate").unwrap().to_owned();
    let metadata = "/.well-known/oauth-protected-resource/mcp/ops";
    assert!(
        challenge.contains(&format!(
            "resource_metadata=\"https://tools.example.com{metadata}\""
        )),
        "{challenge}"
    );
    let page = raw(port, &request(port, "GET", metadata, &[], b""));
    let document: Value = serde_json::from_str(&page.body).unwrap();
    assert_eq!(document["resource"], format!("{RESOURCE}/ops"));
    let own = issuer.token_for("agent.ES256", &format!("{RESOURCE}/ops"), "demo:read", &[]);
    let status = |path, token: &str| post(port, path, &bearer(token), &body, None).status;
    assert_eq!(status("/mcp/ops", &own), 200);
    for path in ["/mcp", "/mcp/desk"] {
        assert_eq!(status(path, &own), 401, "{path}");
        assert_eq!(status(path, &token), 200, "{path}");
    }

    // A session of one view does not exist at another endpoint.
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let mut lines = vec![
        "Accept: application/json, text/event-stream".to_owned(),
        "Content-Type: application/json".to_owned(),
    ];
    lines.extend(bearer(&token));
    let send = |path, lines: &[String], body: &Value| {
        raw(
            port,
            &request(port, "POST", path, lines, body.to_string().as_bytes()),
        )
    };
    let opened = send("/mcp/ops", &lines, &initialize);
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    lines.push(format!("Mcp-Session-Id: {session}"));
    lines.push("MCP-Protocol-Version: 2025-11-25".to_owned());
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    assert_eq!(send("/mcp/ops", &lines, &list).status, 200);
    for path in ["/mcp", "/mcp/desk"] {
        assert_eq!(send(path, &lines, &list).status, 404, "{path}");
    }
    let ended = raw(port, &request(port, "DELETE", "/mcp", &lines, b""));
    assert_eq!(ended.status, 404);
    assert_eq!(send("/mcp/ops", &lines, &list).status, 200);
}

#[test]
fn an_approval_of_one_view_is_not_used_in_another() {
    let groups = json!({"agent.ES256": ["oncall"]});
    let Some(issuer) = Issuer::with(&json!({"groups": groups})) else {
        return;
    };
    let gate = gate(&issuer);
    let port = gate.port;
    let config = std::fs::read_to_string(gate.data.file("toolgate.toml")).unwrap();
    gate.configure(&config.replace("*.fail", "demo.add"));
    gate.cli(&["reload"]);
    let token = issuer.token("agent.ES256", "demo:read");
    until("the server is listed", SOON, || {
        is_of(&names(port, "/mcp/ops", &token), "demo").then_some(())
    });
    let begin = |path: &'static str| {
        let token = token.clone();
        std::thread::spawn(move || call(port, path, &token, "demo_add"))
    };
    let first = begin("/mcp/ops");
    gate.cli(&["approve", &gate.pending(), "--remember"]);
    let answer = first.join().unwrap();
    assert!(
        message_of(&answer, &json!(1))
            .unwrap()
            .to_string()
            .contains("\"sum\":3")
    );
    // The remembered approval answers in the view, and not at the main endpoint.
    let again = call(port, "/mcp/ops", &token, "demo_add");
    assert!(again.body.contains("\"sum\":3"), "{again:?}");
    let main = begin("/mcp");
    gate.cli(&["deny", &gate.pending(), "-m", "no"]);
    let denied = main.join().unwrap();
    assert!(denied.body.contains("no"), "{denied:?}");
}
