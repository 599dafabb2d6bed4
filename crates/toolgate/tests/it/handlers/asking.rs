//! One way to ask, in every revision.

use super::peer::{NEWEST_REVISION, Peer};
use crate::rows::web::request;
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};
use toolgate::{
    Error,
    core::ErrorKind,
    edge::{
        self,
        http::{HttpEndpoint, HttpLimits},
    },
    handlers::{Cx, HandlerExit, Server, Tool, ask},
};

fn server_of(runs: &Arc<AtomicUsize>) -> Arc<edge::ProtocolServer> {
    let object = || json!({"type": "object"});
    let count = runs.clone();
    let chain = Tool::dynamic("chain", object(), move |_, cx: Cx| {
        count.fetch_add(1, Relaxed);
        async move {
            let name = cx.ask("name", ask::text("Who?"))?;
            let sure = cx.ask("sure", ask::confirm("Sure?"))?;
            Ok::<_, HandlerExit>(format!("{name} {sure}"))
        }
    });
    let all = Tool::dynamic("all", object(), |_, cx: Cx| async move {
        let (name, said, roots) = cx.ask_all((
            ("name", ask::text("Who?")),
            ("said", ask::model("Say hello", 10)),
            ("roots", ask::roots()),
        ))?;
        Ok::<_, HandlerExit>(format!("{name} {said} {}", roots[0].uri))
    });
    let no = Tool::dynamic("no", object(), |_, cx: Cx| async move {
        Ok::<_, HandlerExit>(
            match cx.ask_reply("q", ask::choice("Which?", ["a", "b"]))? {
                ask::Reply::Accepted(choice) => choice,
                other => format!("{other:?}"),
            },
        )
    });
    Server::new("asking", "1")
        .tool(chain)
        .tool(all)
        .tool(no)
        .build()
        .unwrap()
}

fn able() -> Value {
    json!({"elicitation": {}, "sampling": {}, "roots": {}})
}

fn answer(method: &str, params: &Value) -> Value {
    match method {
        "sampling/createMessage" => {
            json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "hello"}})
        }
        "roots/list" => json!({"roots": [{"uri": "file:///r"}]}),
        _ => {
            let boolean = params["requestedSchema"]["properties"]["value"]["type"] == "boolean";
            let value = if boolean { json!(true) } else { json!("Ada") };
            json!({"action": "accept", "content": {"value": value}})
        }
    }
}

/// The revisions in which a user can be asked.
const ASKING: [&str; 3] = ["2025-06-18", "2025-11-25", NEWEST_REVISION];

/// Holds: MRTR-01, MRTR-04, ELIC-06, ELIC-13, ELIC-03
#[tokio::test]
async fn answers_of_earlier_rounds_are_kept() {
    for revision in ASKING {
        let runs = Arc::default();
        let mut peer = Peer::open(&server_of(&runs), revision, able()).await;
        let result = peer.call("chain", json!({}), answer).await;
        assert_eq!(result["content"][0]["text"], "Ada true", "{revision}");
        assert_eq!(
            runs.load(Relaxed),
            3,
            "once for each question, and once to the end"
        );
    }
}

/// Holds: MRTR-03
#[tokio::test]
async fn input_requests_have_unique_keys_and_known_methods() {
    let mut peer = Peer::open(&server_of(&Arc::default()), NEWEST_REVISION, able()).await;
    let called = json!({"name": "all", "arguments": {}});
    let result = peer.result("tools/call", called).await;
    assert_eq!(result["resultType"], "input_required", "{result}");
    let methods: Vec<(&String, &Value)> = result["inputRequests"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, request)| (key, &request["method"]))
        .collect();
    let [name, roots, said] = ["name", "roots", "said"].map(str::to_owned);
    assert_eq!(
        methods,
        [
            (&name, &json!("elicitation/create")),
            (&roots, &json!("roots/list")),
            (&said, &json!("sampling/createMessage")),
        ]
    );
    // A map of a parsed message has each key once, so count in the text.
    let text = peer.texts().pop().unwrap();
    for key in [name, roots, said] {
        assert_eq!(
            text.matches(&format!("\"{key}\":{{\"method\"")).count(),
            1,
            "{text}"
        );
    }
}

#[tokio::test]
async fn several_questions_leave_together() {
    for revision in ASKING {
        let mut peer = Peer::open(&server_of(&Arc::default()), revision, able()).await;
        let result = peer.call("all", json!({}), answer).await;
        assert_eq!(
            result["content"][0]["text"], "Ada hello file:///r",
            "{revision}"
        );
    }
}

/// Holds: ELIC-12, ELIC-13, MRTR-14, MRTR-15, MRTR-16
#[tokio::test]
async fn a_no_is_a_value_and_a_useless_answer_is_asked_for_again() {
    for revision in ASKING {
        let mut peer = Peer::open(&server_of(&Arc::default()), revision, able()).await;
        let decline = |_: &str, _: &Value| json!({"action": "decline"});
        let result = peer.call("no", json!({}), decline).await;
        assert_eq!(result["content"][0]["text"], "Declined");
        let result = peer.call("chain", json!({}), decline).await;
        assert_eq!(
            (&result["isError"], &result["content"][0]["text"]),
            (&json!(true), &json!("the user declined to answer"))
        );
        let asked = AtomicUsize::new(0);
        let result = peer
            .call("no", json!({}), |_, _| match asked.fetch_add(1, Relaxed) {
                0 => json!({"action": "accept", "content": {"value": "c"}}),
                1 => json!(7),
                2 => json!({"action": "maybe", "content": {"value": "b"}}),
                3 => json!({"action": "accept"}),
                4 => json!({"action": "accept", "content": {"value": ["b"]}}),
                _ => json!({"action": "accept", "content": {"value": "b"}, "extra": 1}),
            })
            .await;
        assert_eq!(result["content"][0]["text"], "b", "{revision}");
        assert_eq!(asked.load(Relaxed), 6, "{revision}: all five are rejected");
    }
}

/// Holds: MRTR-14
#[tokio::test]
async fn answers_that_break_the_protocol_are_errors() {
    let mut peer = Peer::open(&server_of(&Arc::default()), NEWEST_REVISION, able()).await;
    for (member, wrong) in [
        ("inputResponses", json!([])),
        ("inputResponses", json!("q")),
        ("inputResponses", json!(null)),
        ("requestState", json!(7)),
        ("requestState", json!("not ours")),
    ] {
        let error = peer.error("tools/call", json!({"name": "no", member: wrong}));
        assert_eq!(error.await["code"], -32602, "{member} {wrong}");
    }
}

/// Holds: MRTR-05, BASE-38, BASE-39, ELIC-04
#[tokio::test]
async fn nobody_is_asked_for_what_he_did_not_declare() {
    let server = server_of(&Arc::default());
    let mut peer = Peer::open(&server, NEWEST_REVISION, json!({"sampling": {}})).await;
    let error = peer.error("tools/call", json!({"name": "chain"})).await;
    assert_eq!(error["code"], -32021);
    assert!(
        error["data"]["requiredCapabilities"]
            .get("elicitation")
            .is_some(),
        "{error}"
    );
    for revision in ["2024-11-05", "2025-11-25"] {
        let mut peer = Peer::open(&server, revision, json!({"sampling": {}})).await;
        let result = peer.result("tools/call", json!({"name": "chain"})).await;
        assert_eq!(result["isError"], true);
        assert!(
            result["content"][0]["text"]
                .as_str()
                .unwrap()
                .contains("did not declare")
        );
    }
}

/// Holds: ELIC-04, MRTR-05
#[tokio::test]
async fn a_client_is_asked_only_in_modes_that_it_declared() {
    let ask = |name: &str, question: fn() -> ask::Question<()>| {
        Tool::dynamic(
            name,
            json!({"type": "object"}),
            move |_, cx: Cx| async move { cx.ask("q", question()).map(|()| "done") },
        )
    };
    let server = Server::new("s", "1")
        .tool(ask("form", || ask::text("Who?").map(drop)))
        .tool(ask("page", || {
            ask::url("Sign in.", "https://example.com/in")
        }));
    let server = server.build().unwrap();
    for revision in ["2025-11-25", NEWEST_REVISION] {
        for (abilities, may, may_not, needs) in [
            (json!({}), "form", "page", "url"),
            (json!({"form": {}}), "form", "page", "url"),
            (json!({"url": {}}), "page", "form", "form"),
        ] {
            let abilities = json!({"elicitation": abilities});
            let mut peer = Peer::open(&server, revision, abilities.clone()).await;
            // No request of the server comes before the answer.
            let reply = peer.request("tools/call", json!({"name": may_not})).await;
            match revision {
                NEWEST_REVISION => {
                    assert_eq!(reply["error"]["code"], -32021, "{abilities}: {reply}");
                    let needed = json!({"elicitation": {needs: {}}});
                    assert_eq!(reply["error"]["data"]["requiredCapabilities"], needed);
                }
                _ => {
                    assert_eq!(reply["result"]["isError"], true, "{abilities}: {reply}");
                    let text = reply["result"]["content"][0]["text"].as_str().unwrap();
                    assert!(text.contains("did not declare"), "{text}");
                }
            }
            let asked = |_: &str, params: &Value| match params["mode"].as_str() {
                Some("url") => json!({"action": "accept"}),
                _ => answer("elicitation/create", params),
            };
            let done = peer.call(may, json!({}), asked).await;
            assert_eq!(done["content"][0]["text"], "done", "{revision} {abilities}");
        }
    }
}

/// Holds: BASE-39
#[tokio::test]
async fn a_missing_capability_is_status_400_over_http() {
    let endpoint = HttpEndpoint::new(server_of(&Arc::default()), HttpLimits::default());
    let headers = [
        ("mcp-protocol-version", NEWEST_REVISION),
        ("mcp-method", "tools/call"),
        ("mcp-name", "chain"),
    ];
    for (declared, status) in [
        (json!({"sampling": {}}), 400),
        (json!({"elicitation": {}}), 200),
    ] {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": NEWEST_REVISION,
            "io.modelcontextprotocol/clientCapabilities": declared});
        let params = json!({"name": "chain", "_meta": meta});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let answer = request(&endpoint, "ada", "POST", &headers, &body.to_string()).await;
        assert_eq!(answer.status, status, "{answer:?}");
        if status == 400 {
            let error = answer.json()["error"].take();
            assert_eq!(error["code"], -32021, "{error}");
            let required = &error["data"]["requiredCapabilities"];
            assert!(required["elicitation"].is_object(), "{error}");
        }
    }
}

/// Each revision has its own words for a page and for a form.
///
/// Holds: ELIC-09, ELIC-11, ELIC-06, ELIC-07
#[tokio::test]
async fn a_page_has_an_id_in_one_revision_only() {
    let page = Tool::dynamic("page", json!({"type": "object"}), |_, cx: Cx| async move {
        cx.ask("page", ask::url("Sign in.", "https://example.com/in"))?;
        cx.ask("form", ask::text("Who?"))
    });
    let server = Server::new("s", "1").tool(page).build().unwrap();
    for revision in ["2025-11-25", NEWEST_REVISION] {
        let abilities = json!({"elicitation": {"form": {}, "url": {}}});
        let mut peer = Peer::open(&server, revision, abilities).await;
        let ids = std::sync::Mutex::new(std::collections::HashSet::new());
        for _ in 0..3 {
            let result = peer
                .call("page", json!({}), |method, params| {
                    if params["mode"] == "url" {
                        assert_eq!(params["url"], "https://example.com/in");
                        let id = params.get("elicitationId");
                        assert_eq!(id.is_some(), revision != NEWEST_REVISION);
                        let id = id.map(|id| id.as_str().unwrap().to_owned());
                        ids.lock().unwrap().extend(id);
                    }
                    answer(method, params)
                })
                .await;
            assert_eq!(result["content"][0]["text"], "Ada");
        }
        let ids = ids.into_inner().unwrap().len();
        assert_eq!(
            ids,
            if revision == NEWEST_REVISION { 0 } else { 3 },
            "each has its own"
        );
        // The server sends no completion notifications, so none reach another client.
        let heard = peer.texts();
        assert!(
            !heard
                .iter()
                .any(|line| line.contains("elicitation/complete"))
        );
    }
    let mut peer = Peer::open(&server_of(&Arc::default()), "2025-06-18", able()).await;
    let result = peer
        .call("chain", json!({}), |method, params| {
            assert!(params.get("mode").is_none(), "{params}");
            answer(method, params)
        })
        .await;
    assert_eq!(result["content"][0]["text"], "Ada true");
}

/// The code asks the client to open pages, and a relayed error does not carry their list.
///
/// Holds: ELIC-09, ELIC-11
#[tokio::test]
async fn no_error_asks_for_pages_without_their_list() {
    let opens = Tool::dynamic("opens", json!({"type": "object"}), |_, _| async {
        let error = Error::new(ErrorKind::JsonRpc(-32042), "open the page first");
        Err::<&str, _>(HandlerExit::error(error))
    });
    let server = Server::new("s", "1").tool(opens).build().unwrap();
    for revision in ["2025-11-25", NEWEST_REVISION] {
        let mut peer = Peer::open(&server, revision, able()).await;
        let error = peer.error("tools/call", json!({"name": "opens"})).await;
        assert_eq!(
            (&error["code"], &error["data"]["serverCode"]),
            (&json!(-32603), &json!(-32042)),
            "{revision}: {error}"
        );
        assert_eq!(error["message"], "open the page first");
    }
}

/// Holds: SAMP-02
#[tokio::test]
async fn a_model_gets_tools_only_where_that_was_declared() {
    for with in ["tools", "toolChoice"] {
        let value = match with {
            "tools" => json!([]),
            _ => json!({"mode": "auto"}),
        };
        let sample = Tool::dynamic("sample", json!({"type": "object"}), move |_, cx: Cx| {
            let params = json!({"messages": [], "maxTokens": 1, with: value});
            async move { cx.ask("m", ask::sample(params)).map(|_| "said") }
        });
        let server = Server::new("s", "1").tool(sample).build().unwrap();
        let called = json!({"name": "sample"});
        let mut peer = Peer::open(&server, NEWEST_REVISION, able()).await;
        let error = peer.error("tools/call", called.clone()).await;
        assert_eq!(
            error["data"]["requiredCapabilities"],
            json!({"sampling": {"tools": {}}}),
            "{with}"
        );
        let mut peer = Peer::open(&server, "2025-11-25", able()).await;
        let refused = peer.result("tools/call", called).await;
        assert_eq!(refused["isError"], true, "{with}: {refused}");
        for revision in ["2025-11-25", NEWEST_REVISION] {
            let with_tools = json!({"sampling": {"tools": {}}});
            let mut peer = Peer::open(&server, revision, with_tools).await;
            let result = peer.call("sample", json!({}), answer).await;
            assert_eq!(result["content"][0]["text"], "said", "{revision} {with}");
        }
    }
}

/// Holds: SAMP-05
#[tokio::test]
async fn context_is_asked_for_only_where_it_can_be_included() {
    let sample = Tool::dynamic(
        "sample",
        json!({"type": "object"}),
        |_, cx: Cx| async move {
            let params = json!({"messages": [], "maxTokens": 1, "includeContext": "thisServer"});
            cx.ask("m", ask::sample(params)).map(|_| "said")
        },
    );
    let server = Server::new("s", "1").tool(sample).build().unwrap();
    for revision in ["2025-11-25", NEWEST_REVISION] {
        for (abilities, asked) in [
            (json!({"sampling": {}}), false),
            (json!({"sampling": {"context": {}}}), true),
        ] {
            let mut peer = Peer::open(&server, revision, abilities).await;
            peer.call("sample", json!({}), |method, params| {
                assert_eq!(params.get("includeContext").is_some(), asked, "{params}");
                answer(method, params)
            })
            .await;
        }
    }
}

/// Holds: ROOT-04
#[tokio::test]
async fn roots_are_asked_for_only_where_they_were_declared() {
    let roots = Tool::dynamic("roots", json!({"type": "object"}), |_, cx: Cx| async move {
        let roots = cx.ask("r", ask::roots())?;
        Ok::<_, HandlerExit>(roots.len().to_string())
    });
    let server = Server::new("s", "1").tool(roots).build().unwrap();
    let mut peer = Peer::open(&server, NEWEST_REVISION, json!({})).await;
    let error = peer.error("tools/call", json!({"name": "roots"})).await;
    assert_eq!(error["data"]["requiredCapabilities"], json!({"roots": {}}));
    let mut peer = Peer::open(&server, NEWEST_REVISION, able()).await;
    let result = peer.call("roots", json!({}), answer).await;
    assert_eq!(result["content"][0]["text"], "1");
}

/// State is bound to the tool and its arguments, and cannot be changed.
///
/// Holds: MRTR-06, BASE-27
#[tokio::test]
async fn state_belongs_to_its_call() {
    let server = server_of(&Arc::default());
    let mut peer = Peer::open(&server, NEWEST_REVISION, able()).await;
    let asked = peer.result("tools/call", json!({"name": "chain"})).await;
    let state = asked["requestState"].as_str().unwrap().to_owned();
    let answers = json!({"name": {"action": "accept", "content": {"value": "Ada"}}});
    let with = |name: &str, arguments: Value, state: String| json!({"name": name, "arguments": arguments, "requestState": state, "inputResponses": answers});
    for bad in [
        with("chain", json!({}), format!("{state}-TAMPERED")),
        with("all", json!({}), state.clone()),
        with("chain", json!({"x": 1}), state.clone()),
    ] {
        assert_eq!(peer.error("tools/call", bad).await["code"], -32602);
    }
    let good = peer
        .result("tools/call", with("chain", json!({}), state))
        .await;
    assert_eq!(good["resultType"], "input_required", "the next question");
}
