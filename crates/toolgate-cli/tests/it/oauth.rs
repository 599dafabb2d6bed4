//! Tokens of a real authorization server, at the door of the real program.

use crate::help::{
    Gate, Modern, Reply, Response, SOON, Script, Setup, Signer, all_of, answer_of, encode, raw,
    real, request, sayer, until,
};
use base64::Engine;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc::sync_channel};
use std::{thread, time::Duration};
use toolgate_testkit::canary::CanarySet;

pub(crate) const RESOURCE: &str = "https://tools.example.com/mcp";
const METADATA: &str = "https://tools.example.com/.well-known/oauth-protected-resource/mcp";

/// An authorization server that nobody here wrote.
pub(crate) struct Issuer {
    pub(crate) url: String,
    pub(crate) port: u16,
    _script: Script,
}

impl Issuer {
    pub(crate) fn start() -> Option<Issuer> {
        Issuer::with(&json!({}))
    }

    /// One that is set in another way; `interop/servers/oidc.mjs` says how.
    pub(crate) fn with(job: &Value) -> Option<Issuer> {
        let real = real()?;
        let mut script = Script::start(&real, "servers/oidc.mjs", job);
        let url = script.event("ready")["issuer"].as_str().unwrap().to_owned();
        let port = url.rsplit(':').next().unwrap().parse().unwrap();
        Some(Issuer {
            url,
            port,
            _script: script,
        })
    }

    fn post(&self, path: &str, client: &str, more: &[String], form: &str) -> Value {
        let pair = format!("{client}:secret-of-{client}-0123456789");
        let basic = base64::engine::general_purpose::STANDARD.encode(pair);
        let mut lines = vec![
            format!("Authorization: Basic {basic}"),
            "Content-Type: application/x-www-form-urlencoded".to_owned(),
        ];
        lines.extend_from_slice(more);
        // Its answers are no messages of the protocol, so they are read as they are.
        let bytes = request(self.port, "POST", path, &lines, form.as_bytes());
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        stream.write_all(&bytes).unwrap();
        let mut all = String::new();
        let _ = stream.read_to_string(&mut all);
        let start = all.find('{').unwrap_or(all.len());
        let end = all.rfind('}').map_or(start, |at| at + 1);
        serde_json::from_str(all.get(start..end).unwrap_or_default()).unwrap_or(Value::Null)
    }

    pub(crate) fn token_for(
        &self,
        client: &str,
        resource: &str,
        scope: &str,
        more: &[String],
    ) -> String {
        let form = format!(
            "grant_type=client_credentials&scope={}&resource={resource}",
            scope.replace(' ', "+")
        );
        let said = self.post("/token", client, more, &form);
        let token = said["access_token"].as_str();
        token
            .unwrap_or_else(|| panic!("no token: {said}"))
            .to_owned()
    }

    pub(crate) fn token(&self, client: &str, scope: &str) -> String {
        self.token_for(client, RESOURCE, scope, &[])
    }

    fn revoke(&self, client: &str, token: &str) {
        self.post("/token/revocation", client, &[], &format!("token={token}"));
    }

    /// Returns the requests to its token endpoint.
    pub(crate) fn told(&self) -> Vec<Value> {
        let done = raw(self.port, &request(self.port, "GET", "/told", &[], b""));
        let told: Value = serde_json::from_str(&done.body).unwrap();
        told["told"].as_array().unwrap().clone()
    }

    /// Takes back all that people allowed.
    pub(crate) fn withdraw(&self) {
        let done = raw(self.port, &request(self.port, "GET", "/withdraw", &[], b""));
        assert_eq!(done.status, 200);
    }

    /// Sets its clock back.
    fn back(&self, seconds: u32) {
        let path = format!("/clock/back/{seconds}");
        let done = raw(self.port, &request(self.port, "GET", &path, &[], b""));
        assert_eq!(done.status, 200);
    }
}

fn gate(issuer: &Issuer, more: &str) -> Gate {
    let auth = format!(
        "[auth]\nresource = \"{RESOURCE}\"\n\
         [auth.issuer.corp]\nurl = \"{}\"\nintrospect = true\nclient_id = \"gateway\"\nclient_secret = {{ env = \"CORP_SECRET\" }}\n\
         [[auth.scope]]\ntools = [\"demo.*\"]\nscopes = [\"demo:read\"]\n\
         [[auth.scope]]\ntools = [\"demo.slow_count\"]\nscopes = [\"demo:write\"]\n\
         [auth.implies]\n\"demo:all\" = [\"demo:write\"]\n\"demo:write\" = [\"demo:read\"]\n{more}",
        issuer.url
    );
    Setup::fast_demo(&auth)
        .env("CORP_SECRET", "secret-of-gateway-0123456789")
        .start()
}

pub(crate) fn bearer(token: &str) -> Vec<String> {
    vec![format!("Authorization: Bearer {token}")]
}

pub(crate) fn call(port: u16, lines: &[String], tool: &str, arguments: Value) -> Response {
    let params = json!({"name": tool, "arguments": arguments});
    let body = Modern::body(&json!(1), "tools/call", params).to_string();
    let mut head = Modern::headers("tools/call", Some(tool));
    head.extend_from_slice(lines);
    raw(port, &request(port, "POST", "/mcp", &head, body.as_bytes()))
}

fn add(port: u16, token: &str) -> Response {
    call(port, &bearer(token), "demo_add", json!({"a": 1, "b": 2}))
}

#[track_caller]
fn works(response: &Response) {
    assert_eq!(response.status, 200, "{response:?}");
    let answer = answer_of(response, &json!(1));
    assert_eq!(answer["result"]["structuredContent"]["sum"], 3, "{answer}");
}

#[track_caller]
fn refused(response: &Response) {
    assert_eq!(response.status, 401, "{response:?}");
    let challenge = format!(
        "Bearer resource_metadata=\"{METADATA}\", error=\"invalid_token\", scope=\"demo:read demo:write\""
    );
    assert_eq!(
        response.header("www-authenticate"),
        Some(challenge.as_str())
    );
}

fn names(port: u16, token: &str) -> Vec<String> {
    let body = Modern::body(&json!(1), "tools/list", json!({})).to_string();
    let mut head = Modern::headers("tools/list", None);
    head.extend(bearer(token));
    let response = raw(port, &request(port, "POST", "/mcp", &head, body.as_bytes()));
    let answer = answer_of(&response, &json!(1));
    let tools = answer["result"]["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Holds: AUTH-03, AUTH-05, AUTH-06, AUTH-14, AUTH-30, AUTH-31, AUTH-33, AUTH-34, AUTH2-01
#[test]
fn tokens_of_a_real_authorization_server_open_and_others_do_not() {
    let Some(issuer) = Issuer::start() else {
        return;
    };
    let gate = gate(&issuer, "");
    let port = gate.port;
    for path in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
    ] {
        let page = raw(port, &request(port, "GET", path, &[], b""));
        let document: Value = serde_json::from_str(&page.body).unwrap();
        assert_eq!(document["resource"], RESOURCE);
        assert_eq!(document["authorization_servers"], json!([issuer.url]));
        assert_eq!(
            document["scopes_supported"],
            json!(["demo:read", "demo:write"])
        );
    }
    let nobody = call(port, &[], "demo_add", json!({"a": 1, "b": 2}));
    assert_eq!(nobody.status, 401);
    let asks = format!("Bearer resource_metadata=\"{METADATA}\", scope=\"demo:read demo:write\"");
    assert_eq!(nobody.header("www-authenticate"), Some(asks.as_str()));

    for alg in ["RS256", "PS256", "ES256", "EdDSA", "opaque"] {
        let client = format!("agent.{alg}");
        works(&add(port, &issuer.token(&client, "demo:read")));
        let other = "https://tools.example.com/other";
        refused(&add(
            port,
            &issuer.token_for(&client, other, "demo:read", &[]),
        ));
        issuer.back(3600);
        refused(&add(port, &issuer.token(&client, "demo:read")));
        issuer.back(0);
    }
    // The name of the caller, in the record; the client is the subject here.
    let records = gate.audit();
    let begun = records.iter().filter(|r| r["ev"] == "call.begin");
    let callers: Vec<&str> = begun.filter_map(|r| r["caller"].as_str()).collect();
    assert_eq!(
        callers,
        [
            "corp:agent.RS256",
            "corp:agent.PS256",
            "corp:agent.ES256",
            "corp:agent.EdDSA",
            "corp:client=agent.opaque"
        ]
    );

    // Withdrawn: the issuer is asked again a moment later.
    let token = issuer.token("agent.opaque", "demo:read");
    works(&add(port, &token));
    issuer.revoke("agent.opaque", &token);
    until("a token that was withdrawn is refused", SOON, || {
        (add(port, &token).status == 401).then_some(())
    });
    // Keys stay what they are, and a token in the address is none.
    let key = gate.cli(&["keys", "create", "ci"]);
    works(&add(port, key.trim()));
    let token = issuer.token("agent.ES256", "demo:read");
    let target = format!("/mcp?access_token={token}");
    let page = raw(port, &request(port, "POST", &target, &[], b"{}"));
    assert_eq!(page.status, 401);
}

/// Holds: AUTH-19, AUTH-20, AUTH-21, AUTH-34
#[test]
fn scopes_bound_what_is_listed_and_a_call_says_which_are_missing() {
    let Some(issuer) = Issuer::start() else {
        return;
    };
    let gate = gate(&issuer, "");
    let port = gate.port;
    let read = issuer.token("agent.ES256", "demo:read");
    let write = issuer.token("agent.ES256", "demo:write");
    let all = issuer.token("agent.ES256", "demo:all");
    let seen = names(port, &read);
    assert!(
        seen.contains(&"demo_add".to_owned()) && !seen.contains(&"demo_slow_count".to_owned()),
        "{seen:?}"
    );
    for broad in [&write, &all] {
        assert_eq!(names(port, broad).len(), seen.len() + 1);
    }
    let count = json!({"to": 1, "delay_ms": 0});
    let missing = format!(
        "Bearer resource_metadata=\"{METADATA}\", error=\"insufficient_scope\", scope=\"demo:read demo:write\""
    );
    let response = call(port, &bearer(&read), "demo_slow_count", count.clone());
    assert_eq!(response.status, 403, "{response:?}");
    assert_eq!(response.header("www-authenticate"), Some(missing.as_str()));
    let error = answer_of(&response, &json!(1))["error"].clone();
    assert_eq!(error["data"]["scopes"], json!(["demo:read", "demo:write"]));
    for broad in [&write, &all] {
        let response = call(port, &bearer(broad), "demo_slow_count", count.clone());
        assert_eq!(response.status, 200, "{response:?}");
    }
    // What is not there is not told from what no rule speaks of.
    let unknown = call(port, &bearer(&read), "demo_nothing", json!({}));
    assert_eq!(answer_of(&unknown, &json!(1))["error"]["code"], -32602);

    // In a session each request has the rights of its own token.
    let session = Session::open(port, &write);
    let allowed = session.call(&write, "demo_slow_count", &count);
    assert_eq!(allowed.status, 200, "{allowed:?}");
    let less = session.call(&read, "demo_slow_count", &count);
    assert_eq!(less.status, 403, "{less:?}");
    assert_eq!(less.header("www-authenticate"), Some(missing.as_str()));
    let more = session.call(&all, "demo_slow_count", &count);
    assert_eq!(more.status, 200, "{more:?}");
    // And it is nobody else's.
    let other = issuer.token("agent.RS256", "demo:all");
    assert_eq!(
        session
            .call(&other, "demo_add", &json!({"a": 1, "b": 2}))
            .status,
        404
    );
    let denied = gate.audit();
    let denied = denied
        .iter()
        .filter(|r| r["ev"] == "deny" && r["code"] == "scope");
    assert_eq!(denied.count(), 2);
}

struct Session {
    port: u16,
    id: String,
}

impl Session {
    fn lines(token: &str, more: &[String]) -> Vec<String> {
        let mut lines = bearer(token);
        lines.push("Accept: application/json, text/event-stream".to_owned());
        lines.push("Content-Type: application/json".to_owned());
        lines.extend_from_slice(more);
        lines
    }

    fn open(port: u16, token: &str) -> Session {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "by-hand", "version": "1"}});
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let lines = Session::lines(token, &[]);
        let opened = raw(
            port,
            &request(port, "POST", "/mcp", &lines, body.to_string().as_bytes()),
        );
        let id = opened.header("mcp-session-id").unwrap().to_owned();
        Session { port, id }
    }

    fn call(&self, token: &str, tool: &str, arguments: &Value) -> Response {
        let more = [
            format!("Mcp-Session-Id: {}", self.id),
            "MCP-Protocol-Version: 2025-11-25".to_owned(),
        ];
        let params = json!({"name": tool, "arguments": arguments});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let lines = Session::lines(token, &more);
        let bytes = request(
            self.port,
            "POST",
            "/mcp",
            &lines,
            body.to_string().as_bytes(),
        );
        raw(self.port, &bytes)
    }
}

/// A key that proves itself.
struct Holder(Signer);

impl Holder {
    fn new() -> Holder {
        Holder(Signer::new())
    }

    fn proof(&self, url: &str, id: &str, token: Option<&str>) -> String {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let mut claims =
            json!({"jti": id, "htm": "POST", "htu": url, "iat": now.unwrap().as_secs()});
        if let Some(token) = token {
            claims["ath"] = json!(encode(digest(&SHA256, token.as_bytes()).as_ref()));
        }
        let head = json!({"typ": "dpop+jwt", "alg": "ES256", "jwk": self.0.jwk()});
        format!("DPoP: {}", self.0.sign(&head, &claims))
    }
}

/// Holds: XAUTH-04
#[test]
fn a_token_bound_to_a_key_opens_with_a_fresh_proof_only() {
    let Some(issuer) = Issuer::start() else {
        return;
    };
    let gate = gate(&issuer, "");
    let port = gate.port;
    let holder = Holder::new();
    let at_issuer = holder.proof(&format!("{}/token", issuer.url), "t1", None);
    let token = issuer.token_for("agent.ES256", RESOURCE, "demo:read", &[at_issuer]);
    let with = |proof: String| {
        let lines = [format!("Authorization: DPoP {token}"), proof];
        call(port, &lines, "demo_add", json!({"a": 1, "b": 2}))
    };
    let proof = holder.proof(RESOURCE, "p1", Some(&token));
    works(&with(proof.clone()));
    let again = with(proof);
    assert_eq!(again.status, 401);
    let challenge = again.header("www-authenticate").unwrap();
    assert!(
        challenge.starts_with("DPoP ") && challenge.contains("invalid_dpop_proof"),
        "{challenge}"
    );
    assert_eq!(add(port, &token).status, 401, "as a bearer token");
    assert_eq!(
        with(Holder::new().proof(RESOURCE, "p2", Some(&token))).status,
        401
    );
    assert_eq!(with(holder.proof(RESOURCE, "p3", None)).status, 401);
    // Each path that needs a token needs a proof for itself.
    let at = |path: &str, lines: &[String]| {
        let mut lines = lines.to_vec();
        lines.push("Content-Type: application/json".to_owned());
        raw(port, &request(port, "POST", path, &lines, b"{}")).status
    };
    let shown = |url: &str, id: &str| {
        let proof = holder.proof(url, id, Some(&token));
        [format!("Authorization: DPoP {token}"), proof]
    };
    for path in ["/sse", "/messages?session=x"] {
        let own = format!(
            "https://tools.example.com{}",
            path.split('?').next().unwrap()
        );
        assert_eq!(at(path, &bearer(&token)), 401, "{path}");
        assert_eq!(
            at(path, &shown(RESOURCE, &format!("r{path}"))),
            401,
            "{path}"
        );
        let opened = at(path, &shown(&own, &format!("o{path}")));
        assert!(
            (400..500).contains(&opened) && opened != 401,
            "{path}: {opened}"
        );
        assert_eq!(
            at(path, &shown(&own, &format!("o{path}"))),
            401,
            "{path}, again"
        );
    }
    assert_eq!(
        at("/mcp", &shown("https://tools.example.com/sse", "m1")),
        401
    );
    // A reload does not forget which proofs were shown.
    let proof = holder.proof(RESOURCE, "p4", Some(&token));
    works(&with(proof.clone()));
    let config = std::fs::read_to_string(gate.data.file("toolgate.toml")).unwrap();
    gate.configure(&format!("{config}\n# changed\n"));
    gate.cli(&["reload"]);
    assert_eq!(with(proof).status, 401);
    works(&with(holder.proof(RESOURCE, "p5", Some(&token))));
    // Nor does one that changes what is taken.
    let proof = holder.proof(RESOURCE, "p6", Some(&token));
    works(&with(proof.clone()));
    let more = "[auth.implies]\n\"demo:more\" = [\"demo:read\"]";
    gate.configure(&config.replace("[auth.implies]", more));
    gate.cli(&["reload"]);
    assert_eq!(with(proof).status, 401);
    works(&with(holder.proof(RESOURCE, "p7", Some(&token))));
}

/// Passes bytes on to a server, and keeps all of them.
pub(crate) fn tap(to: &str) -> (String, Arc<Mutex<Vec<u8>>>) {
    let port: u16 = to
        .rsplit(':')
        .next()
        .unwrap()
        .split('/')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keep = kept.clone();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let (mut from, mut back) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            let (mut client, mut server) = (client, server);
            let keep = keep.clone();
            std::thread::spawn(move || std::io::copy(&mut back, &mut client));
            std::thread::spawn(move || {
                let mut buffer = [0; 16 * 1024];
                while let Ok(read @ 1..) = from.read(&mut buffer) {
                    keep.lock().unwrap().extend_from_slice(&buffer[..read]);
                    if server.write_all(&buffer[..read]).is_err() {
                        break;
                    }
                }
                let _ = server.shutdown(std::net::Shutdown::Write);
            });
        }
    });
    (format!("http://127.0.0.1:{own}/mcp"), kept)
}

pub(crate) fn files(folder: &Path, all: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, all);
        } else if path.is_file() {
            all.push((path.display().to_string(), std::fs::read(&path).unwrap()));
        }
    }
}

/// A token for each call: good ones, wrong ones, and some for which the server fails or leads elsewhere.
///
/// Holds: AUTH-50
#[test]
fn t31_no_token_of_a_caller_leaves_or_stays() {
    let Some(issuer) = Issuer::start() else {
        return;
    };
    let calls = std::sync::atomic::AtomicUsize::new(0);
    let far = sayer(move |message| {
        let answer = |result: Value| Reply::result(message, result);
        match calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % 4 {
            0 => Reply::Status(401, "text/plain", "who are you".to_owned()),
            1 => Reply::Status(500, "text/plain", "no".to_owned()),
            2 => Reply::Status(307, "text/plain", "elsewhere".to_owned()),
            _ => answer(json!({"content": [{"type": "text", "text": "said"}]})),
        }
    });
    let (far, upstream_bytes) = tap(&far);
    let more = format!(
        "[server.far]\nurl = \"{far}\"\ntrust_annotations = true\n[[rule]]\ntools = [\"far.*\"]\naction = \"allow\"\n"
    );
    let gate = gate(&issuer, &more);
    let port = gate.port;
    until("the far server is there", SOON, || {
        let state = gate.state()["servers"].to_string();
        state
            .contains("\"far\"")
            .then(|| gate.cli(&["tools"]).contains("far.say").then_some(()))?
    });
    let mut canaries = Vec::new();
    for n in 0..40 {
        let client = ["agent.ES256", "agent.opaque", "agent.EdDSA"][n % 3];
        let token = issuer.token(client, "demo:read");
        let response = call(port, &bearer(&token), "far_say", json!({}));
        assert_eq!(response.status, 200, "{response:?}");
        let mut wrong = token.clone();
        wrong.insert(token.len() - 3, 'x');
        // At most 60 of them are told one by one.
        assert!([401, 429].contains(&add(port, &wrong).status));
        canaries.extend([token, wrong]);
    }
    let mut all = vec![
        (
            "upstream".to_owned(),
            upstream_bytes.lock().unwrap().clone(),
        ),
        ("console".to_owned(), gate.state().to_string().into_bytes()),
    ];
    assert!(
        all[0]
            .1
            .windows(8)
            .filter(|w| w == b"far_say\"" || w == b"\"say\"}}}" || w.starts_with(b"tools/ca"))
            .count()
            > 10
    );
    for args in [
        &["calls"][..],
        &["status"],
        &["audit", "tail", "--json", "-n", "100000"],
        &["audit", "export", "--format", "otlp"],
    ] {
        let out = gate.run(args);
        all.push((args.join(" "), [out.stdout, out.stderr].concat()));
    }
    all.push(("stderr".to_owned(), gate.said().join("\n").into_bytes()));
    let data = gate.stop();
    files(&data.path().join("state"), &mut all);
    // Of a signed token the signature: what stands before it is no secret by itself.
    let secrets = canaries.iter().map(|one| one.rsplit('.').next().unwrap());
    let found = CanarySet::new(secrets.chain(["secret-of-gateway-0123456789"]));
    for (place, bytes) in &all {
        assert!(found.in_bytes(bytes).is_none(), "{place} has a secret");
    }
    println!(
        "T31, tokens: {} of a real issuer in 80 requests, looked for in {} outputs, files and all bytes to a server, 0 found",
        canaries.len(),
        all.len()
    );
}

/// The issuer takes a token back that would be good for ten minutes.
#[test]
fn a_stream_ends_with_a_token_that_is_withdrawn() {
    let Some(issuer) = Issuer::start() else {
        return;
    };
    let gate = gate(&issuer, "");
    let port = gate.port;
    let config = std::fs::read_to_string(gate.data.file("toolgate.toml")).unwrap();
    let often = "[limits]\nintrospection_recheck_seconds = 1";
    gate.configure(&config.replacen("[limits]", often, 1));
    gate.cli(&["reload"]);
    let listen = |token: &str| {
        let params = json!({"notifications": {"toolsListChanged": true}});
        let body = Modern::body(&json!(1), "subscriptions/listen", params).to_string();
        let mut head = Modern::headers("subscriptions/listen", None);
        head.extend(bearer(token));
        let bytes = request(port, "POST", "/mcp", &head, body.as_bytes());
        let (told, ended) = sync_channel(1);
        thread::spawn(move || told.send(all_of(port, &bytes)));
        ended
    };
    let [kept, lost] = [(); 2].map(|()| issuer.token("agent.opaque", "demo:read"));
    let (stays, ends) = (listen(&kept), listen(&lost));
    // Both are open, and have been asked about again.
    assert!(ends.recv_timeout(Duration::from_secs(3)).is_err());
    issuer.revoke("agent.opaque", &lost);
    let all = ends.recv_timeout(SOON).expect("the stream ends");
    assert!(all.contains("200 OK"), "{all}");
    assert!(stays.try_recv().is_err(), "the other is still good");
}
