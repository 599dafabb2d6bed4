//! Token exchange (RFC 8693): each caller uses a server in its own name, and no token of a caller reaches it. The tokens
//! of the callers are those of a real authorization server; the token endpoint and the server are played.

use crate::{
    help::{Gate, Heard, Response, SOON, Setup, answer_of, send, until},
    oauth::{Issuer, RESOURCE, bearer, call},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex},
    thread,
};

const SECRET: &str = "canary-secret-of-the-exchange";

/// Behavior of the token endpoint.
#[derive(Clone, Copy, Default, PartialEq)]
enum Mode {
    #[default]
    Good,
    /// Refuses, and repeats the token in its words.
    Refuses,
    /// Gives the token of the caller back.
    Echoes,
}

#[derive(Default)]
struct Seen {
    mode: Mode,
    /// Tokens that were given, by subject.
    given: Vec<String>,
    /// Of those, the ones that the server takes no more.
    ended: BTreeSet<String>,
    /// The subjects of each session.
    sessions: BTreeMap<String, BTreeSet<String>>,
    forms: Vec<String>,
    /// All that came to the server itself.
    bytes: Vec<u8>,
    /// The target of each request to the server, and whether it had a token in its header.
    requests: Vec<(String, bool)>,
    /// True once `hold` may continue.
    released: bool,
    holding: usize,
}

/// A server with sessions, and the token endpoint for it.
struct Far {
    port: u16,
    seen: Arc<(Mutex<Seen>, Condvar)>,
}

impl Far {
    fn new() -> Far {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::<(Mutex<Seen>, Condvar)>::default();
        let all = seen.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let seen = all.clone();
                thread::spawn(move || serve(stream, &seen));
            }
        });
        Far { port, seen }
    }

    fn seen<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        let done = look(&mut self.seen.0.lock().unwrap());
        self.seen.1.notify_all();
        done
    }

    fn gate(&self, issuer: &Issuer, more: &str) -> Gate {
        self.setup(issuer, more).start()
    }

    fn setup(&self, issuer: &Issuer, more: &str) -> Setup {
        let port = self.port;
        Setup::config(format!(
            "[limits]\nrate = \"1000000/s\"\n{more}\n[auth]\nresource = \"{RESOURCE}\"\n[auth.issuer.corp]\nurl = \"{}\"\n\
             [server.far]\nurl = \"http://127.0.0.1:{port}/mcp\"\ntrust_annotations = true\n\
             [server.far.exchange]\nurl = \"http://127.0.0.1:{port}/token\"\nclient_id = \"gateway\"\n\
             client_secret = {{ env = \"EXCHANGE_SECRET\" }}\naudience = \"far\"\nscopes = [\"far:use\"]\n\
             [[rule]]\ntools = [\"far.*\"]\naction = \"allow\"\n",
            issuer.url
        ))
        .env("EXCHANGE_SECRET", SECRET)
    }
}

fn serve(stream: TcpStream, seen: &(Mutex<Seen>, Condvar)) -> Option<()> {
    let mut from = BufReader::new(stream.try_clone().ok()?);
    let mut to = stream;
    loop {
        let request = Heard::read(&mut from)?;
        if request.target != "/token" {
            let mut seen = seen.0.lock().unwrap();
            let token = request.header("authorization");
            let has_token = token.is_some_and(|token| token.starts_with("Bearer canary-up-"));
            seen.requests.push((request.target.clone(), has_token));
            seen.bytes.extend_from_slice(request.head.as_bytes());
            seen.bytes.extend_from_slice(request.body.as_bytes());
        }
        let (status, session, body) = match request.target.as_str() {
            "/token" => {
                let (status, body) = exchange(&request, &mut seen.0.lock().unwrap());
                (status, None, body)
            }
            _ => answer(&request, seen),
        };
        let session = session.map_or(String::new(), |id: String| {
            format!("Mcp-Session-Id: {id}\r\n")
        });
        let head = format!(
            "HTTP/1.1 {status} x\r\nContent-Type: application/json\r\n{session}Content-Length: {}\r\n\r\n",
            body.len()
        );
        to.write_all([head, body].concat().as_bytes()).ok()?;
    }
}

fn exchange(request: &Heard, seen: &mut Seen) -> (u16, String) {
    seen.forms.push(request.body.clone());
    let pair = base64::engine::general_purpose::STANDARD.encode(format!("gateway:{SECRET}"));
    assert_eq!(
        request.header("authorization"),
        Some(format!("Basic {pair}").as_str())
    );
    let value = |key: &str| {
        let mut pairs = request
            .body
            .split('&')
            .filter_map(|pair| pair.split_once('='));
        pairs
            .find(|(name, _)| *name == key)
            .map(|(_, value)| value.replace("%3A", ":").replace("%2F", "/"))
    };
    assert_eq!(
        value("grant_type").as_deref(),
        Some("urn:ietf:params:oauth:grant-type:token-exchange")
    );
    assert_eq!(value("audience").as_deref(), Some("far"));
    let resource = value("resource").unwrap();
    assert!(
        resource.starts_with("http://127.0.0.1:") && !resource.contains('?'),
        "{resource}"
    );
    assert_eq!(value("scope").as_deref(), Some("far:use"));
    let subject = value("subject_token").unwrap();
    let claims = URL_SAFE_NO_PAD
        .decode(subject.split('.').nth(1).unwrap())
        .unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    let token = match seen.mode {
        Mode::Refuses => {
            let error =
                json!({"error": "invalid_target", "error_description": format!("not {subject}")});
            return (400, error.to_string());
        }
        Mode::Echoes => subject,
        Mode::Good => format!(
            "canary-up-{}-{}",
            claims["sub"].as_str().unwrap(),
            seen.given.len()
        ),
    };
    seen.given.push(token.clone());
    let given = json!({
        "access_token": token, "token_type": "Bearer", "expires_in": 3600,
        "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
    });
    (200, given.to_string())
}

fn answer(request: &Heard, seen: &(Mutex<Seen>, Condvar)) -> (u16, Option<String>, String) {
    let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
    let token = request
        .header("authorization")
        .and_then(|value| value.strip_prefix("Bearer "));
    let mut all = seen.0.lock().unwrap();
    let known = token.is_some_and(|token| {
        all.given.iter().any(|one| one == token) && !all.ended.contains(token)
    });
    if !known {
        return (401, None, String::new());
    }
    let who = token
        .unwrap()
        .rsplit_once('-')
        .unwrap()
        .0
        .replace("canary-up-", "");
    let session = match request.header("mcp-session-id") {
        Some(id) => id.to_owned(),
        None => format!("s{}", all.sessions.len()),
    };
    if message["method"] != "server/discover" {
        all.sessions
            .entry(session.clone())
            .or_default()
            .insert(who.clone());
    }
    if message["id"].is_null() {
        return (
            if message.is_null() { 405 } else { 202 },
            None,
            String::new(),
        );
    }
    let result = match message["method"].as_str().unwrap() {
        "initialize" => {
            json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}, "serverInfo": {"name": "far", "version": "1"}})
        }
        "tools/list" => {
            let tool = |name| json!({"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}});
            let mut work = tool("work");
            work["execution"] = json!({"taskSupport": "required"});
            json!({"tools": [tool("who"), tool("hold"), work]})
        }
        "tools/call" if message["params"]["name"] == "work" => json!({"task": task("working")}),
        "tasks/get" if all.released => task("completed"),
        "tasks/get" => task("working"),
        "tools/call" | "tasks/result" => {
            let waits = message["method"] == "tasks/result";
            if waits || message["params"]["name"] == "hold" {
                all.holding += 1;
                let wait = seen.1.wait_while(all, |all| !all.released);
                all = wait.unwrap();
            }
            json!({"content": [{"type": "text", "text": format!("you are {who}")}]})
        }
        _ => {
            let error = json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}});
            return (200, None, error.to_string());
        }
    };
    drop(all);
    let session = (message["method"] == "initialize").then_some(session);
    (
        200,
        session,
        json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string(),
    )
}

/// The one task of the server.
fn task(status: &str) -> Value {
    json!({"taskId": "t-1", "status": status, "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": 600_000, "pollInterval": 100})
}

/// Calls until the tool is known: the first caller that comes is in whose name it is listed.
fn who(gate: &Gate, token: &str) -> String {
    text(&call(gate.port, &bearer(token), "far_who", json!({})))
}

fn text(response: &Response) -> String {
    assert_eq!(response.status, 200, "{response:?}");
    answer_of(response, &json!(1)).to_string()
}

/// Holds: AUTH-29, AUTH-33
#[test]
fn t31_each_caller_uses_a_server_in_its_own_name_and_its_token_stays_here() {
    let Some(issuer) = Issuer::start() else {
        return;
    };
    let far = Far::new();
    let gate = far.gate(&issuer, "");
    let tokens =
        ["agent.ES256", "agent.RS256"].map(|client| (client, issuer.token(client, "demo:read")));
    thread::scope(|scope| {
        for (client, token) in tokens.iter().cycle().take(8) {
            let gate = &gate;
            scope.spawn(move || {
                for _ in 0..10 {
                    let said = who(gate, token);
                    assert!(
                        said.contains(&format!("you are {client}\"")),
                        "{client}: {said}"
                    );
                }
            });
        }
    });
    far.seen(|seen| {
        assert_eq!(
            seen.given.len(),
            2,
            "a token is kept until it ends: {:?}",
            seen.given
        );
        for (session, who) in &seen.sessions {
            assert_eq!(who.len(), 1, "the session {session} is of {who:?}");
        }
        assert!(seen.sessions.len() >= 2);
    });
    // One that the server takes no more is exchanged anew, once.
    far.seen(|seen| seen.ended.extend(seen.given.clone()));
    assert!(who(&gate, &tokens[0].1).contains("you are agent.ES256"));
    assert_eq!(far.seen(|seen| seen.given.len()), 3);

    // Who has no token of an authorization server is told, and nothing is sent for him.
    let before = far.seen(|seen| seen.bytes.len());
    let key = gate.cli(&["keys", "create", "ci"]);
    let said = who(&gate, key.trim());
    assert!(said.contains("call with an OAuth token"), "{said}");
    assert_eq!(far.seen(|seen| seen.bytes.len()), before);

    let shown = [
        gate.state().to_string(),
        gate.cli(&["audit", "tail", "--json", "-n", "100000"]),
        gate.cli(&["status"]),
        gate.said().join("\n"),
    ];
    let upstream = far.seen(|seen| String::from_utf8_lossy(&seen.bytes).into_owned());
    assert!(upstream.matches("tools/call").count() > 80);
    // Each request has the token in its header, and nothing in its URL.
    let requests = far.seen(|seen| std::mem::take(&mut seen.requests));
    assert!(requests.len() > 80);
    for (target, has_token) in &requests {
        assert_eq!(
            (target.as_str(), has_token),
            ("/mcp", &true),
            "{requests:?}"
        );
    }
    let mut looks = 0;
    for (_, token) in &tokens {
        let secret = token.rsplit('.').next().unwrap();
        for place in shown.iter().chain([&upstream]) {
            assert!(!place.contains(secret));
            looks += 1;
        }
    }
    for place in &shown {
        assert!(!place.contains("canary"), "{place}");
    }
    assert!(!upstream.contains(SECRET));
    println!(
        "T31, exchange: 81 calls of 2 callers, each in its own name and session, 0 of the other; {looks} looks for their tokens, 0 found"
    );
}

#[test]
fn an_exchange_that_fails_says_so_and_sends_nothing() {
    let Some(issuer) = Issuer::start() else {
        return;
    };
    let far = Far::new();
    let gate = far.gate(&issuer, "");
    let good = issuer.token("agent.ES256", "demo:read");
    assert!(who(&gate, &good).contains("you are"));
    for (mode, words) in [
        (Mode::Refuses, "refused to issue a token"),
        (Mode::Echoes, "returned the caller's own token"),
    ] {
        far.seen(|seen| seen.mode = mode);
        let client = if mode == Mode::Refuses {
            "agent.RS256"
        } else {
            "agent.PS256"
        };
        let token = issuer.token(client, "demo:read");
        let said = who(&gate, &token);
        assert!(
            said.contains("the server far cannot be used") && said.contains(words),
            "{said}"
        );
        let secret = token.rsplit('.').next().unwrap();
        assert!(!said.contains(&secret[..16]), "{said}");
        assert!(!gate.state().to_string().contains(&secret[..16]));
        let upstream = far.seen(|seen| String::from_utf8_lossy(&seen.bytes).into_owned());
        assert!(!upstream.contains(secret), "it reached the server");
    }
    // Who has one goes on.
    assert!(who(&gate, &good).contains("you are agent.ES256"));
}

#[test]
fn callers_over_the_limit_wait_for_a_place_or_take_an_idle_one() {
    let Some(issuer) = Issuer::start() else {
        return;
    };
    let far = Far::new();
    let gate = far.gate(&issuer, "callers_per_server = 1\n");
    let [one, two] = ["agent.ES256", "agent.RS256"].map(|client| issuer.token(client, "demo:read"));
    assert!(who(&gate, &one).contains("agent.ES256"));
    // An idle place is free for the next.
    assert!(who(&gate, &two).contains("agent.RS256"));
    thread::scope(|scope| {
        let held = scope.spawn(|| text(&call(gate.port, &bearer(&two), "far_hold", json!({}))));
        until("the call runs", SOON, || {
            (far.seen(|seen| seen.holding) == 1).then_some(())
        });
        let said = who(&gate, &one);
        assert!(
            said.contains("has reached its limit of connections for callers (1)"),
            "{said}"
        );
        far.seen(|seen| seen.released = true);
        assert!(held.join().unwrap().contains("you are agent.RS256"));
    });
    assert!(who(&gate, &one).contains("you are agent.ES256"));
}

#[test]
fn what_is_listed_is_the_same_for_all() {
    let Some(issuer) = Issuer::start() else {
        return;
    };
    let far = Far::new();
    let gate = far.gate(&issuer, "");
    let token = issuer.token("agent.ES256", "demo:read");
    let of_server = || gate.cli(&["status"]);
    let unused = of_server();
    assert!(unused.contains(" not used yet\n"), "{unused}");
    assert!(who(&gate, &token).contains("you are"));
    let used = of_server();
    assert!(used.contains(" running\n"), "{used}");
    let list = |gate: &Gate, key: &str| {
        let body = crate::help::Modern::body(&json!(1), "tools/list", json!({})).to_string();
        let lines = [
            crate::help::Modern::headers("tools/list", None),
            bearer(key),
        ]
        .concat();
        let listed = send(gate.port, "POST", "/mcp", &lines, body.as_bytes());
        answer_of(&listed, &json!(1))["result"]["tools"]
            .as_array()
            .unwrap()
            .len()
    };
    let key = gate.cli(&["keys", "create", "ci"]);
    assert_eq!(list(&gate, key.trim()), 3);
    assert_eq!(gate.state()["servers"][0]["state"], "running");
}

/// A task that outlived the gateway cannot be looked at without the token of its caller: it waits for that and says so, and
/// what others show is no help.
#[test]
fn a_task_waits_for_its_caller_after_a_restart() {
    let Some(issuer) = Issuer::start() else {
        return;
    };
    let far = Far::new();
    let gate = far.setup(&issuer, "").start();
    let [token, other] =
        ["agent.ES256", "agent.RS256"].map(|client| issuer.token(client, "demo:read"));
    assert!(who(&gate, &token).contains("you are agent.ES256"));
    let send = |gate: &Gate, method: &str, name: &str, params: Value| {
        let body = crate::tasks::body(method, params).to_string();
        let mut head = crate::help::Modern::headers(method, Some(name));
        head.extend(bearer(&token));
        let answer = send(gate.port, "POST", "/mcp", &head, body.as_bytes());
        answer_of(&answer, &json!(7))["result"].take()
    };
    let params = json!({"name": "far_work", "arguments": {}});
    let begun = send(&gate, "tools/call", "far_work", params);
    let id = begun["taskId"].as_str().unwrap().to_owned();
    let waits_there = || far.seen(|seen| seen.holding);
    until("its server has begun", SOON, || {
        (waits_there() == 1).then_some(())
    });
    let gate = far.setup(&issuer, "").start_in(gate.kill());
    // What is known of it without its caller is for the operator.
    let shown = |words: &str| {
        until(words, SOON, || {
            let tasks = gate.state()["tasks"].to_string();
            tasks.contains(words).then_some(())
        })
    };
    shown("paused: the gateway restarted and needs your token");
    // What another caller shows is no help.
    assert!(who(&gate, &other).contains("you are agent.RS256"));
    far.seen(|seen| seen.released = true);
    let state = gate.state()["tasks"][0]["status"].clone();
    assert_eq!(state, "working");
    // The caller comes back for it.
    let task = until("it is completed", SOON, || {
        let task = send(&gate, "tasks/get", &id, json!({"taskId": id}));
        (task["status"] == "completed").then_some(task)
    });
    let said = task["result"].to_string();
    assert!(said.contains("you are agent.ES256"), "{task}");
    gate.stop();
}

#[test]
fn nobody_signs_in_where_tokens_are_exchanged() {
    let Some(issuer) = Issuer::start() else {
        return;
    };
    let far = Far::new();
    let gate = far.gate(&issuer, "");
    let config = gate.data.file("toolgate.toml");
    for more in [&[] as &[&str], &["--caller", "corp:alice"]] {
        let words = [
            "login",
            "far",
            "--no-browser",
            "--config",
            config.to_str().unwrap(),
        ];
        let refused = gate.run(&[&words, more].concat());
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(said.contains("remove its exchange to sign in"), "{said}");
    }
    assert_eq!(gate.state()["servers"][0]["signs_in"], false);
}
