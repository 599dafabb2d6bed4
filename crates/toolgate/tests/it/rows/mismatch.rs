//! T07: a header that repeats the body and does not say the same is refused, and nothing behind the edge hears of it.

use crate::serve::http::text;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use http_body_util::Full;
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::SeqCst},
};
use toolgate::{
    Caller,
    edge::http::{HttpEndpoint, HttpLimits},
    handlers::{HandlerExit, Prompt, ResourceContents, ResourceTemplate, Server, Tool},
};

const VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";
const PARAM: &str = "mcp-param-where";
const FIELDS: [&str; 4] = [VERSION, METHOD, NAME, PARAM];

/// A server that counts what reaches it.
fn counting() -> (HttpEndpoint, Arc<AtomicUsize>) {
    let reached = Arc::new(AtomicUsize::new(0));
    let count = || {
        let reached = reached.clone();
        move || reached.fetch_add(1, SeqCst)
    };
    let schema = json!({"type": "object", "properties":
        {"where": {"type": "string", "x-mcp-header": "Where"}}});
    let (tool, prompt, page) = (count(), count(), count());
    let server = Server::new("s", "1")
        .tool(Tool::dynamic("Tool-a", schema, move |_, _| {
            tool();
            async { Ok::<_, HandlerExit>("x") }
        }))
        .prompt(Prompt::new("Tool-a", move |_, _| {
            prompt();
            async { Ok::<_, HandlerExit>("x") }
        }))
        .template(ResourceTemplate::new("t://{+any}", "any", move |_, _| {
            page();
            async { Ok::<_, HandlerExit>(ResourceContents::text("x")) }
        }));
    let endpoint = HttpEndpoint::new(server.build().unwrap(), HttpLimits::default());
    (endpoint, reached)
}

/// A good request: its headers and its body.
fn good(method: &str, place: &str) -> (HeaderMap, String) {
    let (key, name) = match method {
        "resources/read" => ("uri", "t://Page"),
        _ => ("name", "Tool-a"),
    };
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let mut params = json!({key: name, "_meta": meta});
    let mut headers = HeaderMap::new();
    headers.insert(VERSION, HeaderValue::from_static("2026-07-28"));
    headers.insert(METHOD, method.parse().unwrap());
    headers.insert(NAME, HeaderValue::from_static(name));
    if method == "tools/call" {
        params["arguments"] = json!({"where": place});
        headers.insert(PARAM, encoded(place).parse().unwrap());
    }
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    (headers, body.to_string())
}

/// The value of a header, in the way of the protocol.
fn encoded(text: &str) -> String {
    let plain = text.bytes().all(|b| matches!(b, 0x21..=0x7e)) && !text.starts_with("=?");
    if plain {
        text.to_owned()
    } else {
        sentinel(text)
    }
}

fn sentinel(text: &str) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    format!("=?base64?{}?=", STANDARD.encode(text))
}

/// Damage to one header.
#[derive(Clone, Debug)]
enum Damage {
    Missing,
    Twice,
    /// Twice, the second with that value.
    Another(String),
    /// That value in place of the right one.
    Says(String),
    /// These bytes in place of it.
    Bytes(Vec<u8>),
}

fn damages(right: &str) -> Vec<Damage> {
    let flip = |c: char| match c.is_ascii_uppercase() {
        true => c.to_ascii_lowercase(),
        false => c.to_ascii_uppercase(),
    };
    let mut all = vec![
        Damage::Missing,
        Damage::Twice,
        Damage::Another("other".to_owned()),
        Damage::Bytes(b"\xff\xfe".to_vec()),
        Damage::Bytes([right.as_bytes(), b"\xc2\xa0"].concat()),
    ];
    let says = [
        right.chars().map(flip).collect(),
        format!(" {right}"),
        format!("{right} "),
        format!("{right}\t"),
        format!("\"{right}\""),
        format!("{right}, {right}"),
        format!("{right},other"),
        format!("{right};q=1"),
        format!("{right}%20"),
        String::new(),
        "other".to_owned(),
        right.chars().skip(1).collect(),
        format!("{right}{right}"),
        sentinel("other"),
        sentinel(&format!("{right} ")),
        sentinel(&sentinel(right)),
        sentinel(right).replace("base64", "Base64"),
        sentinel(right).trim_end_matches("?=").to_owned(),
        format!("=?base64?{right}?="),
        "=?base64?!!!!?=".to_owned(),
        "=?base64?/w==?=".to_owned(),
        sentinel(right).replace("?=", "=?="),
        "x".repeat(9 * 1024),
        "2025-11-25".to_owned(),
        "2024-11-05".to_owned(),
        "2099-01-01".to_owned(),
    ];
    all.extend(says.into_iter().map(Damage::Says));
    all
}

fn damaged(headers: &HeaderMap, field: &'static str, damage: &Damage) -> Option<HeaderMap> {
    let mut headers = headers.clone();
    let right = headers.get(field)?.clone();
    let name = HeaderName::from_static(field);
    match damage {
        Damage::Missing => drop(headers.remove(field)),
        Damage::Twice => drop(headers.append(name, right)),
        Damage::Another(value) => drop(headers.append(name, value.parse().ok()?)),
        Damage::Says(value) if value.as_bytes() == right.as_bytes() => return None,
        Damage::Says(value) => drop(headers.insert(name, value.parse().ok()?)),
        Damage::Bytes(bytes) => drop(headers.insert(name, HeaderValue::from_bytes(bytes).ok()?)),
    }
    Some(headers)
}

/// Status and code of the error.
async fn post(endpoint: &HttpEndpoint, headers: HeaderMap, body: String) -> (u16, Option<i64>) {
    let mut request = Request::post("/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    request.headers_mut().unwrap().extend(headers);
    let request = request.body(Full::<Bytes>::from(body)).unwrap();
    let response = endpoint.handle(Caller::new("test"), request).await;
    let status = response.status().as_u16();
    let body = http_body_util::BodyExt::collect(response.into_body()).await;
    let reply = body.unwrap().to_bytes();
    let reply: Value = serde_json::from_slice(&reply).unwrap_or_default();
    (status, reply["error"]["code"].as_i64())
}

/// A mismatch is a bad request with the code for it; a revision that nobody speaks has one of its own.
fn is_refused(answer: (u16, Option<i64>)) -> bool {
    matches!(answer, (400, Some(-32020 | -32022)))
}

#[tokio::test]
async fn t07_a_header_that_says_something_else_is_refused() {
    let (endpoint, reached) = counting();
    let mut tried = 0;
    for method in ["tools/call", "resources/read", "prompts/get"] {
        for place in ["here", "Zürich", "a b "] {
            let (headers, body) = good(method, place);
            let before = reached.load(SeqCst);
            assert_eq!(post(&endpoint, headers.clone(), body.clone()).await.0, 200);
            assert_eq!(reached.load(SeqCst), before + 1, "the good one is served");
            for field in FIELDS {
                let Some(right) = headers.get(field) else {
                    continue;
                };
                for damage in damages(right.to_str().unwrap()) {
                    let Some(bad) = damaged(&headers, field, &damage) else {
                        continue;
                    };
                    let answer = post(&endpoint, bad, body.clone()).await;
                    assert!(is_refused(answer), "{field} {damage:?}: {answer:?}");
                    tried += 1;
                }
            }
            assert_eq!(reached.load(SeqCst), before + 1, "nothing else was");
        }
    }
    println!("T07: table of {tried} mismatches, all refused, 0 reached the server");
}

/// The revisions that do not ask for these headers hold to them where they are there.
#[tokio::test]
async fn t07_an_old_revision_is_no_way_round() {
    let (endpoint, reached) = counting();
    let mut tried = 0;
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let session = open(&endpoint, revision).await;
        let (mut headers, body) = good("tools/call", "here");
        let mut body: Value = serde_json::from_str(&body).unwrap();
        body["params"].as_object_mut().unwrap().remove("_meta");
        headers.insert(VERSION, revision.parse().unwrap());
        headers.insert("mcp-session-id", session.parse().unwrap());
        let before = reached.load(SeqCst);
        assert_eq!(
            post(&endpoint, headers.clone(), body.to_string()).await.0,
            200
        );
        for field in [VERSION, METHOD, NAME] {
            let right = headers.get(field).unwrap().to_str().unwrap().to_owned();
            for damage in damages(&right) {
                if matches!(damage, Damage::Missing) {
                    continue;
                }
                let Some(bad) = damaged(&headers, field, &damage) else {
                    continue;
                };
                let answer = post(&endpoint, bad, body.to_string()).await;
                assert_eq!(answer.0, 400, "{revision} {field} {damage:?}: {answer:?}");
                tried += 1;
            }
        }
        assert_eq!(reached.load(SeqCst), before + 1);
        if revision == "2025-03-26" {
            let batch = format!("[{body}]");
            assert_eq!(post(&endpoint, headers, batch).await.0, 400);
        }
    }
    println!("T07: {tried} mismatches in old revisions, all refused, 0 reached the server");
}

async fn open(endpoint: &HttpEndpoint, revision: &str) -> String {
    let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let opened = crate::serve::http::send(endpoint, "POST", &[], &hello.to_string()).await;
    let id = opened.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned();
    text(opened).await;
    id
}

/// Returns the number of random cases.
fn cases() -> u32 {
    let set = std::env::var("TOOLGATE_T07").ok();
    set.and_then(|n| n.parse().ok()).unwrap_or(10_000)
}

/// Random values in place of the right ones, with one law: what does not decode to the letters of the body is refused.
#[test]
fn t07_random_headers_pass_only_where_they_say_the_same() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (endpoint, reached) = counting();
    let value = prop_oneof![
        "[ -~\t]{0,24}",
        "=\\?base64\\?[A-Za-z0-9+/=]{0,16}\\?=",
        any::<String>().prop_map(|text| sentinel(&text)),
        Just("here".to_owned()),
        Just(sentinel("here")),
    ];
    let field = prop::sample::select(FIELDS.to_vec());
    let (refused, passed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        ..Config::with_cases(cases())
    });
    let law = |(field, value): (&'static str, String)| {
        let (headers, body) = good("tools/call", "here");
        let right = headers.get(field).unwrap().to_str().unwrap().to_owned();
        let Some(bad) = damaged(&headers, field, &Damage::Says(value.clone())) else {
            return Ok(());
        };
        let before = reached.load(SeqCst);
        let answer = runtime.block_on(post(&endpoint, bad, body));
        let ran = reached.load(SeqCst) - before;
        if value == sentinel(&right) && field != VERSION {
            passed.fetch_add(1, SeqCst);
            prop_assert_eq!((answer.0, ran), (200, 1));
        } else {
            refused.fetch_add(1, SeqCst);
            prop_assert!(is_refused(answer) && ran == 0, "{:?} {}", answer, ran);
        }
        Ok(())
    };
    runner.run(&(field, value), law).unwrap();
    let (refused, passed) = (refused.into_inner(), passed.into_inner());
    println!("T07: {refused} random mismatches refused, {passed} equal ones passed");
    assert!(refused > passed && passed > 0);
}
