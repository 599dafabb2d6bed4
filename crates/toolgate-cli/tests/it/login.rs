//! `toolgate login`: a server that wants to know who calls, and a person who signs in.

pub(crate) use crate::help::get;
use crate::help::{Gate, Modern, SOON, Setup, typed_login, until};
use serde_json::{Value, json};
use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    thread,
};

/// Access token that the far gateway accepts and the authorization server issues.
const TOKEN: &str = "canary-access-of-many-letters";
const REFRESH: &str = "canary-refresh-of-many-letters";

/// A far gateway that wants a token, and before it an authorization server on the same port.
pub(crate) struct Far {
    _gate: Gate,
    port: u16,
    /// True once the token is no longer accepted nor refreshed.
    pub(crate) ended: Arc<AtomicBool>,
    /// Held by whoever holds the answers of the token endpoint back; how often it was asked.
    pub(crate) tokens: Arc<Mutex<()>>,
    pub(crate) asked: Arc<AtomicUsize>,
    /// Error of a refresh.
    pub(crate) why_not: Arc<Mutex<&'static str>>,
    /// The connections that were passed on.
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Far {
    pub(crate) fn new() -> Far {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let gate = Setup::fast_demo("")
            .top("token = { env = \"FAR_TOKEN\" }")
            .top(&format!("allowed_hosts = [\"127.0.0.1:{port}\"]"))
            .env("FAR_TOKEN", TOKEN)
            .start();
        let behind = gate.port;
        let ended = Arc::new(AtomicBool::new(false));
        let (over, open) = (ended.clone(), Arc::<Mutex<Vec<TcpStream>>>::default());
        let why_not = Arc::new(Mutex::new("invalid_grant"));
        let (tokens, asked) = (Arc::<Mutex<()>>::default(), Arc::<AtomicUsize>::default());
        let (passed, why) = (open.clone(), why_not.clone());
        let (held, count) = (tokens.clone(), asked.clone());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let over = over.load(Relaxed);
                passed.lock().unwrap().push(stream.try_clone().unwrap());
                let over = over.then(|| *why.lock().unwrap());
                let (held, count) = (held.clone(), count.clone());
                let wait = move || {
                    count.fetch_add(1, Relaxed);
                    drop(held.lock());
                };
                thread::spawn(move || answer(stream, port, behind, over, wait));
            }
        });
        Far {
            _gate: gate,
            port,
            ended,
            tokens,
            asked,
            why_not,
            open,
        }
    }

    /// Takes no token any more, and renews none.
    pub(crate) fn end(&self) {
        self.ended.store(true, Relaxed);
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }

    /// Its authorization server, as that names itself.
    pub(crate) fn issuer(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn near(&self) -> Gate {
        self.setup().start()
    }

    pub(crate) fn setup(&self) -> Setup {
        Setup::config(format!(
            "[limits]\nrate = \"1000000/s\"\n[server.far]\nurl = \"http://127.0.0.1:{}/mcp\"\ntrust_annotations = true\n",
            self.port
        ))
    }
}

fn answer(mut stream: TcpStream, port: u16, behind: u16, over: Option<&str>, waits: impl FnOnce()) {
    let mut head = Vec::new();
    let mut part = [0; 4096];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut part) {
            Ok(read) if read > 0 => head.extend_from_slice(&part[..read]),
            _ => return,
        }
    }
    let text = String::from_utf8_lossy(&head).into_owned();
    let target = text.split(' ').nth(1).unwrap_or_default();
    if target.starts_with("/mcp") && over.is_none() {
        return pass(stream, behind, &head);
    }
    if target == "/token" {
        waits();
    }
    let (status, location, body) = match (target, over) {
        ("/mcp", _) => (401, String::new(), String::new()),
        ("/token", Some(why)) => (400, String::new(), json!({"error": why}).to_string()),
        _ => say(target, port),
    };
    let answer = format!(
        "HTTP/1.1 {status} x\r\nLocation: {location}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.write_all(answer.as_bytes());
}

/// All bytes of a connection, both ways.
fn pass(stream: TcpStream, behind: u16, head: &[u8]) {
    let mut far = TcpStream::connect(("127.0.0.1", behind)).unwrap();
    far.write_all(head).unwrap();
    let (mut back, mut to) = (far.try_clone().unwrap(), stream.try_clone().unwrap());
    let mut from = stream;
    thread::spawn(move || {
        let _ = std::io::copy(&mut back, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
    let _ = std::io::copy(&mut from, &mut far);
    let _ = far.shutdown(std::net::Shutdown::Both);
}

fn say(target: &str, port: u16) -> (u16, String, String) {
    let origin = format!("http://127.0.0.1:{port}");
    let ok = |value: Value| (200, String::new(), value.to_string());
    match target.split('?').next().unwrap_or_default() {
        "/.well-known/oauth-protected-resource/mcp" => ok(json!({
            "resource": format!("{origin}/mcp"),
            "authorization_servers": [&origin],
            "scopes_supported": ["tools"],
        })),
        "/.well-known/oauth-authorization-server" => ok(json!({
            "issuer": &origin,
            "authorization_endpoint": format!("{origin}/authorize"),
            "token_endpoint": format!("{origin}/token"),
            "registration_endpoint": format!("{origin}/register"),
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
        })),
        "/register" => (201, String::new(), json!({"client_id": "gate"}).to_string()),
        "/token" => ok(json!({
            "access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600, "refresh_token": REFRESH,
        })),
        "/authorize" => {
            let back = query_value(target, "redirect_uri");
            let state = query_value(target, "state");
            (302, format!("{back}?code=c&state={state}"), String::new())
        }
        _ => (404, String::new(), String::new()),
    }
}

/// A value of a query, as far as addresses here need it.
pub(crate) fn query_value(target: &str, key: &str) -> String {
    let query = target.split_once('?').map_or("", |(_, query)| query);
    let mut pairs = query.split('&');
    let value = pairs.find_map(|pair| pair.strip_prefix(&format!("{key}=")));
    let value = value.unwrap_or_default();
    value.replace("%3A", ":").replace("%2F", "/")
}

fn sign_in(gate: &Gate) -> String {
    let state = gate.data.path().join("state");
    typed_login(&gate.data.file("toolgate.toml"), &state, &["far"]).1
}

pub(crate) fn state(gate: &Gate, wanted: &str) -> Value {
    until("the server is so", SOON, || {
        let server = gate.state()["servers"][0].clone();
        (server["state"] == wanted).then_some(server)
    })
}

#[test]
fn a_person_signs_in_and_the_server_is_used() {
    let far = Far::new();
    let near = far.near();
    let shown = state(&near, "sign-in");
    let error = shown["error"].as_str().unwrap();
    assert!(error.contains("run: toolgate login far"), "{error}");
    let said = sign_in(&near);
    let expected = format!(
        "signed in to far through http://127.0.0.1:{}; scopes: tools\n",
        far.port
    );
    assert_eq!(said, expected);
    state(&near, "running");
    let arguments = json!({"a": 1, "b": 2});
    let body = Modern::call(near.port, &json!(1), "far_demo_add", arguments).body;
    assert!(body.contains("\"sum\":3"), "{body}");
    // Nothing of it stands anywhere in clear.
    assert!(!near.state().to_string().contains("canary"));
    assert!(!near.said().join("\n").contains("canary"));
    let data = near.stop();
    clear(data.path());
}

fn list(gate: &Gate) -> Value {
    let body = Modern::body(&json!(1), "tools/list", json!({}));
    Modern::ask(gate.port, None, &body)["result"].clone()
}

fn names(gate: &Gate) -> Vec<String> {
    let list = list(gate);
    let tools = list["tools"].as_array().unwrap().iter();
    let mut names: Vec<String> = tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

pub(crate) fn add(gate: &Gate) -> String {
    Modern::call(
        gate.port,
        &json!(1),
        "far_demo_add",
        json!({"a": 1, "b": 2}),
    )
    .body
}

#[test]
fn a_sign_in_that_ended_is_a_state_and_takes_nothing_off_the_lists() {
    let far = Far::new();
    let near = far.near();
    // Nobody was ever signed in: nothing is known of it, and the list says that it is not whole.
    state(&near, "sign-in");
    let first = list(&near);
    assert_eq!(first["tools"], json!([]));
    assert_eq!(first["_meta"]["toolgate/missing"], 1, "{first}");
    sign_in(&near);
    state(&near, "running");
    let before = names(&near);
    assert!(before.contains(&"far_demo_add".to_owned()), "{before:?}");
    assert_eq!(list(&near)["_meta"]["toolgate/missing"], Value::Null);
    assert!(add(&near).contains("\"sum\":3"));

    far.end();
    let told = |near: &Gate, words: &str| {
        let body = add(near);
        let link = format!("open http://127.0.0.1:{}/#/servers/far", near.port);
        for part in [words, &link, "run: toolgate login far"] {
            assert!(body.contains(part), "{part}: {body}");
        }
    };
    told(
        &near,
        "the server far: the sign-in has ended; a user has to sign in at",
    );
    let shown = state(&near, "sign-in");
    let error = shown["error"].as_str().unwrap();
    assert!(error.starts_with("the sign-in has ended"), "{error}");
    assert_eq!(shown["signs_in"], true);
    let status = near.run(&["status"]);
    assert_eq!(status.status.code(), Some(1), "it cannot be used");
    let status = String::from_utf8(status.stdout).unwrap();
    assert!(
        status.contains("far sign-in: the sign-in has ended"),
        "{status}"
    );
    assert!(status.contains("run: toolgate login far"), "{status}");
    assert_eq!(names(&near), before);

    // The same after a start: what was pinned is known.
    let data = near.stop();
    let near = far.setup().start_in(data);
    state(&near, "sign-in");
    assert_eq!(names(&near), before);
    told(&near, "the server far: a user has to sign in at");
    assert_eq!(list(&near)["_meta"]["toolgate/missing"], Value::Null);
    far.ended.store(false, Relaxed);
    sign_in(&near);
    state(&near, "running");
    assert!(add(&near).contains("\"sum\":3"));
}

/// An authorization server that lost its registrations, such as by a restart.
#[test]
fn a_client_that_is_known_no_more_is_a_missing_sign_in() {
    let far = Far::new();
    let near = far.near();
    state(&near, "sign-in");
    sign_in(&near);
    state(&near, "running");
    assert!(add(&near).contains("\"sum\":3"));
    *far.why_not.lock().unwrap() = "invalid_client";
    far.end();
    let body = add(&near);
    for part in [
        "the sign-in has ended; a user has to sign in at",
        "invalid_client",
        "run: toolgate login far",
    ] {
        assert!(body.contains(part), "{part}: {body}");
    }
    state(&near, "sign-in");
    far.ended.store(false, Relaxed);
    sign_in(&near);
    state(&near, "running");
    assert!(add(&near).contains("\"sum\":3"));
}

/// No file has a token in clear.
fn clear(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            clear(&path);
        } else if let Ok(bytes) = fs::read(&path) {
            let found = bytes.windows(6).any(|part| part == b"canary");
            assert!(!found, "{}", path.display());
        }
    }
}

#[test]
fn what_was_granted_can_be_forgotten() {
    let far = Far::new();
    let near = far.near();
    sign_in(&near);
    let config = near.data.file("toolgate.toml");
    let out = || near.run(&["logout", "far", "--config", config.to_str().unwrap()]);
    assert!(out().status.success());
    let audit = near.audit();
    let signed = audit.iter().filter(|r| r["ev"] == "sign_in");
    let states: Vec<_> = signed
        .map(|r| (r["by"].clone(), r["state"].clone()))
        .collect();
    let terminal = |state: &str| (json!("terminal"), json!(state));
    assert_eq!(states, [terminal("signed_in"), terminal("signed_out")]);
    let again = out();
    assert_eq!(again.status.code(), Some(1));
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(said.contains("no credentials are stored for far"), "{said}");
}

#[test]
fn there_is_nobody_to_sign_in_to_at_a_server_of_ours() {
    let gate = Setup::fast_demo("").start();
    let config = gate.data.file("toolgate.toml");
    for (server, words) in [
        ("demo", "is a local process"),
        ("other", "its servers are: demo"),
    ] {
        let refused = gate.run(&["login", server, "--config", config.to_str().unwrap()]);
        assert_eq!(refused.status.code(), Some(2), "{server}");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(said.contains(words), "{said}");
    }
}
