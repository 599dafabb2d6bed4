//! `credentials = "per_caller"`: each caller of a server has a sign-in of its own, and nobody uses another's. The authorization
//! server and the server are played; each sign-in is another account.

use crate::{
    help::{
        Gate, Heard, Login, Modern, Response, SOON, Script, Setup, answer_of, browser, real, send,
        shot, toolgate, typed_login, until,
    },
    known_client::login,
    login::{get, query_value},
    sign_in,
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufReader, Write},
    net::{TcpListener, TcpStream},
    process::Output,
    sync::{Arc, Mutex},
    thread,
};

#[derive(Default)]
pub(crate) struct Seen {
    /// Accounts that signed in so far.
    pub(crate) accounts: usize,
    /// Tokens that are taken no more, also for a renewal.
    ended: BTreeSet<String>,
    /// Accounts whose tokens may too little for a call.
    pub(crate) narrow: BTreeSet<String>,
    /// The accounts of each session.
    sessions: BTreeMap<String, BTreeSet<String>>,
    /// The account of each call, by what the call says of itself.
    pub(crate) calls: Vec<(String, String)>,
    /// Tokens that were given back.
    pub(crate) back: Vec<String>,
    /// Requests to the server without a token.
    bare: usize,
}

/// A server with sessions that says whose account is used, and its authorization server.
pub(crate) struct Far {
    port: u16,
    seen: Arc<Mutex<Seen>>,
}

impl Far {
    pub(crate) fn new() -> Far {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::<Mutex<Seen>>::default();
        let all = seen.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let seen = all.clone();
                thread::spawn(move || serve(stream, port, &seen));
            }
        });
        Far { port, seen }
    }

    pub(crate) fn seen<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        look(&mut self.seen.lock().unwrap())
    }

    pub(crate) fn gate(&self, more: &str) -> Gate {
        self.setup(more).start()
    }

    pub(crate) fn setup(&self, more: &str) -> Setup {
        self.setup_with(more, "")
    }

    /// The same, with more in the section of the server.
    pub(crate) fn setup_with(&self, more: &str, of_server: &str) -> Setup {
        Setup::config(self.config(more, of_server))
    }

    pub(crate) fn config(&self, more: &str, of_server: &str) -> String {
        format!(
            "[limits]\nrate = \"1000000/s\"\n{more}\n[server.far]\nurl = \"http://127.0.0.1:{}/mcp\"\ncredentials = \"per_caller\"\n\
             {of_server}trust_annotations = true\n[[rule]]\ntools = [\"far.*\"]\naction = \"allow\"\n",
            self.port
        )
    }
}

fn serve(stream: TcpStream, port: u16, seen: &Mutex<Seen>) -> Option<()> {
    let mut from = BufReader::new(stream.try_clone().ok()?);
    let mut to = stream;
    loop {
        let request = Heard::read(&mut from)?;
        let (status, more, body) = match request.target.as_str() {
            "/mcp" => answer(&request, seen),
            _ => granting(&request, port, seen),
        };
        let head = format!(
            "HTTP/1.1 {status} x\r\nContent-Type: application/json\r\n{more}Content-Length: {}\r\n\r\n",
            body.len()
        );
        to.write_all([head, body].concat().as_bytes()).ok()?;
    }
}

/// The authorization server: everybody who comes is another account.
fn granting(request: &Heard, port: u16, seen: &Mutex<Seen>) -> (u16, String, String) {
    let origin = format!("http://127.0.0.1:{port}");
    let ok = |value: Value| (200, String::new(), value.to_string());
    match request.target.split('?').next().unwrap_or_default() {
        "/.well-known/oauth-protected-resource/mcp" => ok(json!({
            "resource": format!("{origin}/mcp"), "authorization_servers": [&origin],
        })),
        "/.well-known/oauth-authorization-server" => ok(json!({
            "issuer": &origin, "authorization_endpoint": format!("{origin}/authorize"),
            "token_endpoint": format!("{origin}/token"), "registration_endpoint": format!("{origin}/register"),
            "revocation_endpoint": format!("{origin}/revoke"),
            "code_challenge_methods_supported": ["S256"], "token_endpoint_auth_methods_supported": ["none"],
        })),
        "/register" => (201, String::new(), json!({"client_id": "gate"}).to_string()),
        "/revoke" => {
            seen.lock().unwrap().back.push(request.body.clone());
            (200, String::new(), String::new())
        }
        "/token" if request.body.contains("grant_type=refresh_token") => (
            400,
            String::new(),
            json!({"error": "invalid_grant"}).to_string(),
        ),
        "/token" => {
            let mut seen = seen.lock().unwrap();
            seen.accounts += 1;
            let account = format!("account{}", seen.accounts);
            ok(json!({
                "access_token": format!("canary-access-of-{account}"), "token_type": "Bearer",
                "expires_in": 3600, "refresh_token": format!("canary-refresh-of-{account}"),
            }))
        }
        "/authorize" => {
            let back = query_value(&request.target, "redirect_uri");
            let state = query_value(&request.target, "state");
            let location = format!("Location: {back}?code=c&state={state}\r\n");
            (302, location, String::new())
        }
        _ => (404, String::new(), String::new()),
    }
}

pub(crate) fn answer(request: &Heard, seen: &Mutex<Seen>) -> (u16, String, String) {
    let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
    let mut seen = seen.lock().unwrap();
    let token = request
        .header("authorization")
        .and_then(|value| value.strip_prefix("Bearer "));
    let Some(token) = token else {
        seen.bare += 1;
        return (401, String::new(), String::new());
    };
    let Some(who) = token
        .strip_prefix("canary-access-of-")
        .filter(|who| !seen.ended.contains(*who))
    else {
        return (401, String::new(), String::new());
    };
    let session = match request.header("mcp-session-id") {
        Some(id) => id.to_owned(),
        None => format!("s{}", seen.sessions.len()),
    };
    if message["method"] != "server/discover" {
        let accounts = seen.sessions.entry(session.clone()).or_default();
        accounts.insert(who.to_owned());
    }
    if message["id"].is_null() {
        let status = if message.is_null() { 405 } else { 202 };
        return (status, String::new(), String::new());
    }
    if message["method"] == "tools/call" && seen.narrow.contains(who) {
        let wants = "WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"write\"\r\n";
        return (403, wants.to_owned(), String::new());
    }
    let result = match message["method"].as_str().unwrap() {
        "initialize" => {
            json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}, "resources": {}},
            "serverInfo": {"name": "far", "version": "1"}})
        }
        "tools/list" => json!({"tools": [{"name": "who",
            "inputSchema": {"type": "object", "properties": {"i_am": {"type": "string"}}},
            "annotations": {"readOnlyHint": true}}]}),
        "resources/list" => {
            json!({"resources": [{"uri": format!("file:///{who}"), "name": format!("of {who}")}]})
        }
        "resources/templates/list" => json!({"resourceTemplates": []}),
        "tools/call" => {
            let said = message["params"]["arguments"]["i_am"].as_str();
            let said = said.unwrap_or_default().to_owned();
            seen.calls.push((said, who.to_owned()));
            json!({"content": [{"type": "text", "text": format!("you are {who}")}]})
        }
        _ => {
            let error = json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}});
            return (200, String::new(), error.to_string());
        }
    };
    let more = match message["method"] == "initialize" {
        true => format!("Mcp-Session-Id: {session}\r\n"),
        false => String::new(),
    };
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    (200, more, answer.to_string())
}

pub(crate) fn key(gate: &Gate, name: &str) -> String {
    gate.cli(&["keys", "create", name]).trim().to_owned()
}

/// Shows a key; nothing where it is empty.
pub(crate) fn with(key: &str) -> Vec<String> {
    let shown = (!key.is_empty()).then(|| format!("Authorization: Bearer {key}"));
    Vec::from_iter(shown)
}

fn ask(gate: &Gate, key: &str, method: &str, name: Option<&str>, params: Value) -> Response {
    let body = Modern::body(&json!(1), method, params).to_string();
    let lines = [Modern::headers(method, name), with(key)].concat();
    send(gate.port, "POST", "/mcp", &lines, body.as_bytes())
}

pub(crate) fn who(gate: &Gate, key: &str, i_am: &str) -> String {
    let params = json!({"name": "far_who", "arguments": {"i_am": i_am}});
    let response = ask(gate, key, "tools/call", Some("far_who"), params);
    assert_eq!(response.status, 200, "{response:?}");
    answer_of(&response, &json!(1)).to_string()
}

fn list(gate: &Gate, key: &str, what: &str) -> Value {
    let response = ask(gate, key, &format!("{what}/list"), None, json!({}));
    answer_of(&response, &json!(1))["result"][what].clone()
}

/// Types `toolgate login far --caller NAME`, and does what a browser would.
pub(crate) fn sign_in(gate: &Gate, caller: &str) -> (String, String) {
    let state = gate.data.path().join("state");
    let words = ["far", "--caller", caller];
    typed_login(&gate.data.file("toolgate.toml"), &state, &words)
}

fn run(gate: &Gate, words: &[&str]) -> Output {
    let config = gate.data.file("toolgate.toml");
    gate.run(&[words, &["--config", config.to_str().unwrap()]].concat())
}

fn refused(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn t31_each_caller_has_a_sign_in_of_its_own_and_nobody_uses_anothers() {
    let far = Far::new();
    let gate = far.gate("");
    let [ann, bob, eve] = ["ann", "bob", "eve"].map(|name| key(&gate, name));
    let (said, done) = sign_in(&gate, "key:ann");
    assert!(
        said.contains("only key:ann will use these credentials"),
        "{said}"
    );
    assert!(done.contains("to far (caller key:ann)"), "{done}");
    // The first has one, the others do not.
    assert!(who(&gate, &ann, "ann").contains("you are account1"));
    let before = far.seen(|seen| seen.calls.len());
    let told = who(&gate, &bob, "bob");
    let link = format!(
        "open http://127.0.0.1:{}/#/servers/far/key%3Abob",
        gate.port
    );
    for part in [
        "a user has to sign in for key:bob",
        &link,
        "run: toolgate login far --caller key:bob",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let status = gate.cli(&["status"]);
    let waits =
        "key:bob is waiting for a sign-in; run: toolgate login far --caller key:bob --config ";
    assert!(status.contains(waits), "{status}");
    assert!(!status.contains("key:ann is waiting"), "{status}");
    assert_eq!(far.seen(|seen| seen.calls.len()), before);
    // What the server offers stays listed for all; what belongs to an account does not.
    assert_eq!(list(&gate, &bob, "tools").as_array().unwrap().len(), 1);
    assert!(
        list(&gate, &ann, "resources")
            .to_string()
            .contains("account1")
    );
    assert!(
        !list(&gate, &bob, "resources")
            .to_string()
            .contains("account1")
    );

    sign_in(&gate, "key:bob");
    let callers = [("ann", &ann, 1), ("bob", &bob, 2)];
    thread::scope(|scope| {
        for (name, key, account) in callers.iter().cycle().take(8) {
            let gate = &gate;
            scope.spawn(move || {
                for _ in 0..10 {
                    let said = who(gate, key, name);
                    let wanted = format!("you are account{account}\"");
                    assert!(said.contains(&wanted), "{name}: {said}");
                }
            });
        }
    });
    assert!(
        !list(&gate, &bob, "resources")
            .to_string()
            .contains("account1")
    );
    let anonymous = Modern::call(gate.port, &json!(1), "far_who", json!({})).body;
    assert!(anonymous.contains("cannot be told apart"), "{anonymous}");
    assert!(who(&gate, &eve, "eve").contains("sign in for key:eve"));
    far.seen(|seen| {
        for (who, account) in &seen.calls {
            let own = if who == "ann" { "account1" } else { "account2" };
            assert_eq!(account, own, "{who}");
        }
        assert_eq!(seen.calls.len(), 81);
        for (session, accounts) in &seen.sessions {
            assert_eq!(
                accounts.len(),
                1,
                "the session {session} is of {accounts:?}"
            );
        }
        // Nothing was sent for who has no grant, nor in nobody's name.
        assert!(seen.calls.iter().all(|(who, _)| who != "eve"));
    });
    let shown = [
        gate.state().to_string(),
        gate.cli(&["audit", "tail", "--json", "-n", "100000"]),
        gate.cli(&["status"]),
        gate.said().join("\n"),
    ];
    for place in &shown {
        assert!(!place.contains("canary"), "{place}");
    }
    let signed: Vec<_> = gate.audit();
    let signed: Vec<_> = signed.iter().filter(|r| r["ev"] == "sign_in").collect();
    assert_eq!(signed.len(), 2);
    assert_eq!(signed[0]["caller"], "key:ann");
    println!(
        "T31, a sign-in for each caller: 81 calls of 2 callers, 0 with the account of the other, 0 for who has none"
    );
}

#[test]
fn a_sign_in_for_one_caller_leaves_the_others_as_they_are() {
    let far = Far::new();
    let gate = far.gate("");
    let [ann, bob] = ["ann", "bob"].map(|name| key(&gate, name));
    sign_in(&gate, "key:ann");
    sign_in(&gate, "key:bob");
    assert!(who(&gate, &ann, "").contains("account1"));
    assert!(who(&gate, &bob, "").contains("account2"));
    // Another account for one of them counts at once.
    sign_in(&gate, "key:bob");
    assert!(who(&gate, &bob, "").contains("account3"));
    assert!(who(&gate, &ann, "").contains("account1"));
    let out = run(&gate, &["logout", "far", "--caller", "key:ann"]);
    assert!(out.status.success(), "{out:?}");
    assert!(who(&gate, &ann, "").contains("sign in for key:ann"));
    assert!(who(&gate, &bob, "").contains("account3"));
    // One that ended is said to have ended, and to whom.
    far.seen(|seen| seen.ended.insert("account3".to_owned()));
    let told = who(&gate, &bob, "");
    assert!(
        told.contains("run: toolgate login far --caller key:bob"),
        "{told}"
    );
    assert!(!told.contains("you are"), "{told}");
}

#[test]
fn t30_a_new_key_does_not_get_what_was_granted_for_one_of_its_name() {
    let far = Far::new();
    let gate = far.gate("");
    let ann = key(&gate, "ann");
    sign_in(&gate, "key:ann");
    assert!(who(&gate, &ann, "").contains("account1"));
    // A second one of that name is refused, and takes nothing away.
    let taken = gate.run(&["keys", "create", "ann"]);
    assert!(!taken.status.success());
    assert!(who(&gate, &ann, "").contains("account1"));
    gate.cli(&["keys", "revoke", "ann"]);
    // Who granted it gets it back.
    until("it is given back", SOON, || {
        far.seen(|seen| {
            let told = |token: &str| seen.back.iter().any(|body| body.contains(token));
            let both = ["canary-refresh-of-account1", "canary-access-of-account1"];
            both.into_iter().all(told).then_some(())
        })
    });
    let next = key(&gate, "ann");
    assert!(who(&gate, &next, "").contains("sign in for key:ann"));
    // The same where no gateway runs.
    sign_in(&gate, "key:ann");
    assert!(who(&gate, &next, "").contains("account2"));
    let data = gate.stop();
    let state = data.path().join("state");
    for words in [["keys", "revoke", "ann"], ["keys", "create", "ann"]] {
        let done = toolgate().args(words).arg("--data").arg(&state).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{done:?}");
        if words[1] == "create" {
            let gate = far.setup("").start_in(data);
            let last = String::from_utf8(done.stdout).unwrap();
            assert!(who(&gate, last.trim(), "").contains("sign in for key:ann"));
            break;
        }
    }
    far.seen(|seen| assert_eq!(seen.calls.len(), 3));
}

/// A sign-in that was begun for one key is not valid for the next key of the same name.
#[test]
fn t30_a_sign_in_is_for_the_key_with_which_it_was_begun() {
    let far = Far::new();
    let gate = far.gate("");
    let first = key(&gate, "first");
    sign_in(&gate, "key:first");
    assert!(who(&gate, &first, "first").contains("account1"));
    key(&gate, "ci");
    let next = |how: &str| {
        gate.cli(&["keys", "revoke", "ci"]);
        let next = key(&gate, "ci");
        assert!(who(&gate, &next, how).contains("sign in for key:ci"));
        next
    };
    let mut bobs = String::new();
    let done = login(&gate, &["--caller", "key:ci"], || bobs = next("terminal"));
    assert_eq!(done.code, Some(1), "{}", done.said);
    let words = "the key ci has changed since the sign-in began";
    assert!(done.said.contains(words), "{}", done.said);
    assert!(who(&gate, &bobs, "bob").contains("sign in for key:ci"));

    let console = gate.log_in("");
    let (status, begun) = post(
        &gate,
        &console,
        "begin",
        &json!({"server": "far", "caller": "key:ci"}),
    );
    assert_eq!(status, 200, "{begun}");
    let led = get(begun["page"].as_str().unwrap());
    let query = led
        .header("location")
        .unwrap()
        .split_once('?')
        .unwrap()
        .1
        .to_owned();
    let eves = next("console");
    let (status, said) = post(&gate, &console, "end", &json!({"query": query}));
    assert_eq!(status, 409, "{said}");
    assert!(said["error"].as_str().unwrap().contains(words), "{said}");
    assert!(who(&gate, &eves, "eve").contains("sign in for key:ci"));
    far.seen(|seen| {
        assert_eq!((seen.accounts, seen.calls.len()), (3, 1));
        // Nobody uses what was granted: it is given back.
        let back = |account: &str| seen.back.iter().any(|body| body.contains(account));
        assert!(
            back("of-account2") && back("of-account3"),
            "{:?}",
            seen.back
        );
    });
    // A key that stays the same is signed in for as before.
    sign_in(&gate, "key:ci");
    assert!(who(&gate, &eves, "eve").contains("account4"));
}

#[test]
fn sign_ins_of_callers_are_few_and_each_has_a_name() {
    let far = Far::new();
    let gate = far.gate("callers_per_server = 1\n");
    let ann = key(&gate, "ann");
    key(&gate, "bob");
    sign_in(&gate, "key:ann");
    let over = run(
        &gate,
        &["login", "far", "--no-browser", "--caller", "key:bob"],
    );
    let said = refused(&over);
    assert!(
        said.contains("the server far has reached its limit of signed-in callers (1)"),
        "{said}"
    );
    // The one that has one may sign in anew.
    sign_in(&gate, "key:ann");
    assert!(who(&gate, &ann, "").contains("account2"));
    for (words, told) in [
        (vec!["login", "far"], "name the caller"),
        (
            vec!["login", "far", "--caller", "anonymous@http"],
            "cannot be told apart",
        ),
        (
            vec!["login", "far", "--caller", "ann"],
            "is not a caller name",
        ),
        (vec!["logout", "far"], "name the caller"),
    ] {
        let said = refused(&run(&gate, &words));
        assert!(said.contains(told), "{words:?}: {said}");
    }
    until("it is there", SOON, || {
        (gate.state()["servers"][0]["state"] == "running").then_some(())
    });
}

pub(crate) fn post(gate: &Gate, login: &Login, step: &str, with: &Value) -> (u16, Value) {
    let done = sign_in::post(gate, step, login.lines(), with);
    (
        done.status,
        serde_json::from_str(&done.body).unwrap_or_default(),
    )
}

/// Waits until the console shows just these callers, each with whether it is signed in.
fn shown(gate: &Gate, wanted: Value) {
    until("the console shows who is signed in", SOON, || {
        let own = gate.state()["servers"][0]["own_sign_ins"].clone();
        let own: Vec<Value> = own.as_array()?.to_vec();
        let own: Vec<Value> = own
            .iter()
            .map(|one| json!([one["caller"], one["granted"]]))
            .collect();
        (json!(own) == wanted).then_some(())
    });
}

#[test]
fn a_person_at_the_console_signs_in_for_one_caller() {
    let far = Far::new();
    let gate = far.gate("");
    let login = gate.log_in("");
    let [ann, bob] = ["ann", "bob"].map(|name| key(&gate, name));
    shown(&gate, json!([]));
    // Of a server that nobody used nothing is known; who asked for it is shown all the same.
    assert!(!who(&gate, &bob, "").contains("you are"));
    shown(&gate, json!([["key:bob", false]]));
    let begin = |with: Value| post(&gate, &login, "begin", &with);
    for (with, told) in [
        (json!({"server": "far"}), "name the caller"),
        (
            json!({"server": "far", "caller": "bob"}),
            "is not a caller name",
        ),
        (
            json!({"server": "far", "caller": "local@stdio"}),
            "cannot be told apart",
        ),
    ] {
        let (status, said) = begin(with);
        assert_eq!(status, 409);
        assert!(said["error"].as_str().unwrap().contains(told), "{said}");
    }
    let (status, page) = begin(json!({"server": "far", "caller": "key:bob"}));
    assert_eq!(status, 200, "{page}");
    let led = get(page["page"].as_str().unwrap());
    let back = led.header("location").unwrap().to_owned();
    let query = back.split_once('?').unwrap().1;
    let (status, done) = post(&gate, &login, "end", &json!({"query": query}));
    assert_eq!(
        (status, &done["caller"]),
        (200, &json!("key:bob")),
        "{done}"
    );
    assert!(who(&gate, &bob, "").contains("account1"));
    assert!(who(&gate, &ann, "").contains("sign in for key:ann"));
    shown(&gate, json!([["key:ann", false], ["key:bob", true]]));
    let (status, done) = post(
        &gate,
        &login,
        "out",
        &json!({"server": "far", "caller": "key:bob"}),
    );
    assert_eq!(status, 200, "{done}");
    assert!(who(&gate, &bob, "").contains("sign in for key:bob"));
    let (status, _) = post(
        &gate,
        &login,
        "out",
        &json!({"server": "far", "caller": "key:bob"}),
    );
    assert_eq!(status, 409);
    shown(&gate, json!([["key:bob", false], ["key:ann", false]]));
}

#[test]
fn a_person_in_the_browser_is_told_for_whom_a_sign_in_is() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let far = Far::new();
    let gate = far.gate("");
    let bob = key(&gate, "bob");
    assert!(!who(&gate, &bob, "").contains("you are"));
    let steps = json!([
        {"do": "server", "id": "far", "state": "running"},
        {"do": "sign_in", "id": "far", "caller": "key:bob"},
        {"do": "server", "id": "far", "state": "running"},
        {"do": "shot", "path": shot("sign-in-caller.png")},
    ]);
    let mut page = Script::browser(&real, &gate.console(), steps);
    let shown = page.event("server")["text"].as_str().unwrap().to_owned();
    assert!(shown.contains("needs a sign-in"), "{shown}");
    let back = page.event("sign_in");
    let told = back["told"].as_str().unwrap();
    assert!(told.contains("will be used by key:bob only"), "{told}");
    let text = back["text"].as_str().unwrap();
    assert!(text.contains("only for the caller key:bob"), "{text}");
    page.event("server");
    page.event("done");
    page.assert_no_page_error();
    assert!(who(&gate, &bob, "").contains("account1"));
}
