//! A server of one's own, whose callers show tokens.
#![allow(clippy::print_stdout, reason = "the figures of a test")]

use crate::handlers::panicking::files;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use ring::{
    rand::SystemRandom,
    signature::{Ed25519KeyPair, KeyPair},
};
use serde_json::{Value, json};
use std::{
    io::{Read, Write},
    net::TcpListener,
    process::{Command, Stdio},
    sync::Mutex,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use toolgate::{
    Call, Cx, Http, Server,
    auth::{
        Url,
        jose::encode,
        resource::{ResourceServer, TrustedIssuer},
    },
    core::{Item, MaybeReady},
    edge::http::Body,
    policy::{GlobPattern, RequiredScopes, ScopeRule},
    rule::{Rule, RuleDecision},
    tool,
};
use toolgate_testkit::canary::spellings;

const RESOURCE: &str = "https://tools.example.com/mcp";

/// Tells who calls.
#[tool(read_only)]
async fn who(cx: Cx) -> String {
    let caller = cx.caller();
    let principal = caller.principal().unwrap();
    format!("{} {}", caller.name(), principal.scopes.join(" "))
}

/// Puts something away.
#[tool]
async fn put() -> String {
    "put".to_owned()
}

/// The keys of an issuer, at an address that answers everything with them.
fn issuer(pair: &Ed25519KeyPair) -> String {
    let key = json!({"kty": "OKP", "crv": "Ed25519", "kid": "1", "x": encode(pair.public_key().as_ref())});
    let body = json!({ "keys": [key] }).to_string();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.read(&mut [0; 4096]);
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
            let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len());
        }
    });
    url
}

fn token(pair: &Ed25519KeyPair, issuer: &str, scope: &str) -> String {
    token_until(
        pair,
        issuer,
        scope,
        SystemTime::now() + Duration::from_secs(300),
    )
}

fn token_until(pair: &Ed25519KeyPair, issuer: &str, scope: &str, end: SystemTime) -> String {
    let end = end.duration_since(UNIX_EPOCH).unwrap();
    let payload =
        json!({"iss": issuer, "sub": "ann", "aud": RESOURCE, "exp": end.as_secs(), "scope": scope});
    let header = json!({"alg": "EdDSA", "kid": "1"}).to_string();
    let text = format!("{}.{}", encode(header), encode(payload.to_string()));
    let signature = encode(pair.sign(text.as_bytes()).as_ref());
    format!("{text}.{signature}")
}

fn server(issuer: &str) -> Http {
    let server = Server::new("t", "1.0.0").tool(who).tool(put);
    protected(server, issuer)
}

fn protected(server: Server, issuer: &str) -> Http {
    let needs = ScopeRule::new(vec![GlobPattern::new("*.put")], vec!["write".to_owned()]);
    let url = Url::parse(issuer).unwrap();
    let keys = Url::parse(&format!("{issuer}/keys")).unwrap();
    let resource = ResourceServer::new(Url::parse(RESOURCE).unwrap())
        .issuer(TrustedIssuer::new("corp", url).keys(keys))
        .scopes(["write".to_owned()]);
    let server = server.scopes(RequiredScopes::new(vec![needs]));
    toolgate::http(server).unwrap().protected(resource)
}

async fn ask(
    http: &Http,
    method: &str,
    path: &str,
    token: Option<&str>,
    body: &Value,
) -> Response<Body> {
    let mut request = Request::builder().method(method).uri(path);
    let name = body["params"]["name"].as_str().unwrap_or_default();
    for (key, value) in [
        ("host", "localhost"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        (
            "mcp-method",
            body["method"].as_str().unwrap_or("tools/call"),
        ),
        ("mcp-name", name),
    ] {
        request = request.header(key, value);
    }
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let body = Full::<bytes::Bytes>::from(body.to_string());
    http.handle(request.body(body).unwrap()).await
}

fn call(tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {},
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}})
}

async fn text(response: Response<Body>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn challenge(response: &Response<Body>) -> &str {
    response.headers()["www-authenticate"].to_str().unwrap()
}

/// Holds: AUTH-03, AUTH-05, AUTH-06, AUTH-14, AUTH-19, AUTH-34
#[tokio::test]
async fn a_server_of_ones_own_takes_tokens_and_scopes() {
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    let pair = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
    let issuer = issuer(&pair);
    let http = server(&issuer);
    let metadata = "https://tools.example.com/.well-known/oauth-protected-resource/mcp";

    let path = "/.well-known/oauth-protected-resource/mcp";
    let page = ask(&http, "GET", path, None, &Value::Null).await;
    let page: Value = serde_json::from_str(&text(page).await).unwrap();
    assert_eq!(page["authorization_servers"], json!([issuer]));
    let posted = ask(&http, "POST", path, None, &call("who")).await;
    assert_eq!(posted.status(), StatusCode::METHOD_NOT_ALLOWED);

    let nobody = ask(&http, "POST", "/mcp", None, &call("who")).await;
    assert_eq!(nobody.status(), StatusCode::UNAUTHORIZED);
    let asks = format!("Bearer resource_metadata=\"{metadata}\", scope=\"write\"");
    assert_eq!(challenge(&nobody), asks);
    let wrong = ask(&http, "POST", "/mcp", Some("x.y.z"), &call("who")).await;
    assert_eq!(wrong.status(), StatusCode::UNAUTHORIZED);

    let read = token(&pair, &issuer, "read");
    let known = ask(&http, "POST", "/mcp", Some(&read), &call("who")).await;
    assert_eq!(known.status(), StatusCode::OK);
    let said = text(known).await;
    assert!(said.contains("corp:ann read"), "{said}");
    let lacking = ask(&http, "POST", "/mcp", Some(&read), &call("put")).await;
    assert_eq!(lacking.status(), StatusCode::FORBIDDEN);
    let more = format!(
        "Bearer resource_metadata=\"{metadata}\", error=\"insufficient_scope\", scope=\"write\""
    );
    assert_eq!(challenge(&lacking), more);
    let write = token(&pair, &issuer, "write");
    let put = ask(&http, "POST", "/mcp", Some(&write), &call("put")).await;
    assert_eq!(put.status(), StatusCode::OK);
}

/// Lets `waits` come to its end.
static GO_ON: tokio::sync::Semaphore = tokio::sync::Semaphore::const_new(0);

/// Waits.
#[tool(read_only)]
async fn waits() -> String {
    let _ = GO_ON.acquire().await;
    "it is done".to_owned()
}

/// Taken a little longer than its own time, as clocks may be off; what it began in that time is not cut off.
#[tokio::test]
async fn a_call_outlives_the_token_that_began_it_and_a_stream_does_not() {
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    let pair = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
    let issuer = issuer(&pair);
    let http = protected(Server::new("t", "1.0.0").tool(who).tool(waits), &issuer);
    let end = SystemTime::now() - Duration::from_secs(60 - 4);
    let token = token_until(&pair, &issuer, "read", end);
    let token = Some(token.as_str());
    let mut listen = call("");
    listen["method"] = json!("subscriptions/listen");
    listen["params"]["notifications"] = json!({"toolsListChanged": true});
    let (waits, hears, over) = tokio::join!(
        async { text(ask(&http, "POST", "/mcp", token, &call("waits")).await).await },
        async {
            let heard = ask(&http, "POST", "/mcp", token, &listen).await;
            assert_eq!(heard.status(), StatusCode::OK);
            text(heard).await
        },
        async {
            let mut answered = 0;
            while ask(&http, "POST", "/mcp", token, &call("who"))
                .await
                .status()
                == StatusCode::OK
            {
                answered += 1;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            GO_ON.add_permits(1);
            answered
        }
    );
    assert!(waits.contains("it is done"), "{waits}");
    assert!(!hears.contains("\"result\""), "{hears}");
    assert!(over > 3);
}

/// The token that code of the server has in hand when it panics.
static IN_HAND: Mutex<String> = Mutex::new(String::new());

fn in_hand() -> String {
    IN_HAND.lock().unwrap().clone()
}

/// Uses a token.
#[tool(read_only)]
async fn uses() -> String {
    tokio::task::yield_now().await;
    panic!("cannot use the token {}", in_hand())
}

/// Panics over a token as well, before the tool is reached.
struct Over;

impl Rule for Over {
    fn name(&self) -> &'static str {
        "over"
    }

    fn decide<'a>(&'a self, _: &'a Call, item: &'a Item) -> MaybeReady<'a> {
        if item.full_name().ends_with(".put") {
            let token = in_hand();
            assert_eq!(token, "something else", "Bearer {token}");
        }
        MaybeReady::Ready(RuleDecision::Allow)
    }
}

/// Variable by which the test runs itself as that server: the folder of its audit log.
const FOLDER: &str = "TOOLGATE_TEST_TOKENS";

#[tokio::test]
async fn panicking_over_tokens() {
    let Ok(folder) = std::env::var(FOLDER) else {
        return;
    };
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    let pair = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
    let issuer = issuer(&pair);
    let server = Server::new("t", "1.0.0").tool(who).tool(uses).tool(put);
    let http = protected(
        server.rule(Over).audit_in(format!("{folder}/record")),
        &issuer,
    );
    let token = token(&pair, &issuer, "write");
    std::fs::write(format!("{folder}/token"), &token).unwrap();
    IN_HAND.lock().unwrap().clone_from(&token);
    for tool in ["uses", "who", "put", "who"] {
        let answer = ask(&http, "POST", "/mcp", Some(&token), &call(tool)).await;
        // On one line: where a backtrace takes long, the answer is a stream.
        println!("\nanswer {tool} {}", text(answer).await.replace('\n', " "));
    }
    drop(http);
    std::process::exit(0);
}

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "it starts itself again, as a program of its own"
)]
fn t31_a_panic_with_a_token_in_hand_tells_nobody_the_token() {
    let folder = std::env::temp_dir().join(toolgate::ids::short_id("toolgate-tokens"));
    std::fs::create_dir(&folder).unwrap();
    let mut start = Command::new(std::env::current_exe().unwrap());
    start.args([
        "--exact",
        "serve::protected::panicking_over_tokens",
        "--nocapture",
    ]);
    start.env(FOLDER, &folder).env("RUST_BACKTRACE", "1");
    let ran = start.stdin(Stdio::null()).output().unwrap();
    let (said, told) = (
        String::from_utf8_lossy(&ran.stdout).into_owned(),
        String::from_utf8_lossy(&ran.stderr).into_owned(),
    );
    assert!(ran.status.success(), "{said}\n{told}");
    let answers: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("answer "))
        .collect();
    assert_eq!(answers.len(), 4, "{said}\n{told}");
    for answer in &answers {
        let wanted = match answer.contains("answer who") {
            true => "corp:ann write",
            false => "internal error",
        };
        assert!(answer.contains(wanted), "{answer}");
    }
    assert_eq!(
        told.matches("panic at ").count(),
        2,
        "each says where: {told}"
    );
    let token = std::fs::read_to_string(folder.join("token")).unwrap();
    let mut all = vec![("stdout".to_owned(), said), ("stderr".to_owned(), told)];
    files(&folder.join("record"), &mut all);
    assert!(all.len() > 2, "a record");
    let (_, signature) = token.rsplit_once('.').unwrap();
    for canary in spellings(&token).into_iter().chain(spellings(signature)) {
        for (place, text) in &all {
            assert!(!text.contains(&canary), "{place} has the token: {text}");
        }
    }
    println!(
        "T31: 2 panics with a token in hand, {} streams and files, 0 found",
        all.len()
    );
    std::fs::remove_dir_all(folder).unwrap();
}
