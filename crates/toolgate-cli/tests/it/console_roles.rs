//! Roles of people who sign in to the console at a real authorization server, with a real browser.

use crate::help::{Gate, Response, SOON, Script, Setup, browser, raw, real, request, until};
use crate::notify::Receivers;
use crate::oauth::{Issuer, RESOURCE, bearer, call};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    io::{Read, Write},
    net::TcpStream,
};

/// People, and the groups of each in the tokens of the issuer.
const PEOPLE: [(&str, &str); 5] = [
    ("vic", "staff"),
    ("app", "oncall"),
    ("aud", "audit"),
    ("ops", "sre"),
    ("own", "admins"),
];

/// Routes of the console, and the people who may use each: by the first letters `v`iewer, `a`pprover, a`u`ditor, `o`perator
/// and `w` for the owner. Contents are restricted.
const ROUTES: &[(&str, &str, &str)] = &[
    ("GET", "state", "vauow"),
    ("POST", "approval", "auow"),
    ("POST", "approve", "aow"),
    ("POST", "approve/text", "aow"),
    ("POST", "audit/call", "uw"),
    ("POST", "audit/export", "uw"),
    ("POST", "audit/search", "uw"),
    ("POST", "audit/verify", "uw"),
    ("POST", "call", "ow"),
    ("POST", "calls", "uw"),
    ("POST", "calls/get", "uw"),
    ("POST", "config/check", "w"),
    ("POST", "config/get", "w"),
    ("POST", "config/preview", "w"),
    ("POST", "config/save", "w"),
    ("POST", "config/version", "w"),
    ("POST", "console", "w"),
    ("POST", "console/end", "w"),
    ("POST", "console/sessions", "w"),
    ("POST", "deny", "aow"),
    ("POST", "explain", "vauow"),
    ("POST", "freeze", "ow"),
    ("POST", "freezes", "vauow"),
    ("POST", "grants", "vauow"),
    ("POST", "grants/revoke", "aow"),
    ("POST", "history/calls", "vauow"),
    ("POST", "history/insights", "vauow"),
    ("POST", "history/overview", "vauow"),
    ("POST", "inbox", "auow"),
    ("POST", "items", "vauow"),
    ("POST", "items/get", "vauow"),
    ("POST", "keys", "vauow"),
    ("POST", "keys/create", "w"),
    ("POST", "keys/extend", "w"),
    ("POST", "keys/revoke", "w"),
    ("POST", "keys/rotate", "w"),
    ("POST", "notifications", "vauow"),
    ("POST", "notifications/test", "ow"),
    ("POST", "passkeys", "vauow"),
    ("POST", "passkeys/change", "aow"),
    ("POST", "passkeys/entries", "uw"),
    ("POST", "passkeys/prepare", "aow"),
    ("POST", "passkeys/request", "aow"),
    ("POST", "passkeys/sign", "aow"),
    ("POST", "pins", "vauow"),
    ("POST", "pins/accept", "ow"),
    ("POST", "pins/diff", "vauow"),
    ("POST", "pins/forget", "ow"),
    ("POST", "pins/open", "vauow"),
    ("POST", "pins/reject", "ow"),
    ("POST", "prompts", "vauow"),
    ("POST", "push/key", "aow"),
    ("POST", "push/remove", "w"),
    ("POST", "push/subscribe", "aow"),
    ("POST", "push/subscriptions", "w"),
    ("POST", "push/unsubscribe", "aow"),
    ("POST", "requests/conditions", "auow"),
    ("POST", "requests/get", "auow"),
    ("POST", "requests/look", "vauow"),
    ("POST", "requests/reveal", "aow"),
    ("POST", "resources", "vauow"),
    ("POST", "servers/restart", "ow"),
    ("POST", "servers/signed-in", "ow"),
    ("POST", "servers/signed-out", "ow"),
    ("POST", "sign-in/begin", "ow"),
    ("POST", "sign-in/end", "ow"),
    ("POST", "sign-in/out", "ow"),
    ("POST", "state", "uw"),
    ("POST", "status", "vauow"),
    ("POST", "stop", "ow"),
    ("POST", "tasks", "vauow"),
    ("POST", "tasks/stop", "ow"),
    ("POST", "thaw", "ow"),
    ("POST", "tools", "vauow"),
];

struct Session {
    cookie: String,
    key: String,
}

impl Session {
    fn send(&self, port: u16, method: &str, route: &str, body: &Value) -> Response {
        raw(port, &self.request(port, method, route, body))
    }

    fn request(&self, port: u16, method: &str, route: &str, body: &Value) -> Vec<u8> {
        let lines = [
            format!("Cookie: {}", self.cookie),
            format!("X-Toolgate-Console: {}", self.key),
            format!("Origin: http://127.0.0.1:{port}"),
            "Content-Type: application/json".to_owned(),
        ];
        let path = format!("/console/api/{route}");
        let body = match method {
            "GET" => String::new(),
            _ => body.to_string(),
        };
        request(port, method, &path, &lines, body.as_bytes())
    }

    fn post(&self, port: u16, route: &str, body: &Value) -> (u16, Value) {
        let response = self.send(port, "POST", route, body);
        let value = serde_json::from_str(&response.body).unwrap_or(Value::Null);
        (response.status, value)
    }
}

fn config(issuer: &Issuer) -> String {
    format!(
        "[auth]\nresource = \"{RESOURCE}\"\n\
         [auth.issuer.corp]\nurl = \"{}\"\ngroups_claim = \"groups\"\nsign_in = {{ client_id = \"app\", scopes = [\"demo:read\"] }}\n\
         [console]\nrestrict_contents = true\n\
         [console.role]\nviewer = [\"group:staff\"]\napprover = [\"group:oncall\"]\nauditor = [\"group:audit\"]\n\
         operator = [\"group:sre\"]\nowner = [\"group:admins\"]\n",
        issuer.url
    )
}

fn issuer() -> Option<Issuer> {
    let groups: BTreeMap<&str, Value> = PEOPLE
        .into_iter()
        .map(|(name, group)| (name, json!([group])))
        .collect();
    Issuer::with(&json!({"people": {}, "groups": groups}))
}

/// Signs people in at the page; returns their sessions.
fn sign_in(gate: &Gate, names: &[&str]) -> (BTreeMap<String, Session>, Script) {
    sign_in_at(gate, names, Value::Null)
}

/// The same at one of several issuers.
fn sign_in_at(gate: &Gate, names: &[&str], issuer: Value) -> (BTreeMap<String, Session>, Script) {
    let url = format!("http://127.0.0.1:{}/", gate.port);
    let job = json!({"url": url, "names": names, "issuer": issuer});
    let mut script = Script::start(&real().unwrap(), "console_sign_in.mjs", &job);
    script.event("done");
    let text = |event: &Value, key: &str| event[key].as_str().unwrap().to_owned();
    let sessions = script.seen("session").into_iter().map(|event| {
        let session = Session {
            cookie: text(event, "cookie"),
            key: text(event, "key"),
        };
        (text(event, "name"), session)
    });
    (sessions.collect(), script)
}

/// A generator of random numbers with a seed: the same pairs in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % most
    }
}

#[test]
fn a_role_may_use_its_routes_and_no_others() {
    let (Some(issuer), Some(_)) = (issuer(), browser()) else {
        return;
    };
    let gate = Setup::fast_demo(&config(&issuer)).start();
    let names: Vec<&str> = PEOPLE.iter().map(|(name, _)| *name).collect();
    let (sessions, script) = sign_in(&gate, &[&names[..], &["mal"]].concat());
    let refused = script.seen("refused");
    assert_eq!(sessions.len(), PEOPLE.len(), "{refused:?}");
    let text = refused[0]["text"].as_str().unwrap();
    assert!(
        text.contains("corp:mal") && text.contains("no role"),
        "{text}"
    );
    let shown = script.seen("session");
    for (event, (name, _)) in shown.iter().zip(PEOPLE) {
        assert_eq!(event["me"], format!("corp:{name}"));
        assert_eq!(event["freeze"], matches!(name, "ops" | "own"), "{name}");
        assert!(!event["address"].as_str().unwrap().contains("code="));
    }
    let port = gate.port;
    let mut random = Random(20_261_128);
    let (mut differences, mut allowed_count) = (Vec::new(), 0);
    for _ in 0..1000 {
        let (name, _) = PEOPLE[random.below(PEOPLE.len())];
        let (method, route, letters) = ROUTES[random.below(ROUTES.len())];
        let letter = match name {
            "vic" => 'v',
            "app" => 'a',
            "aud" => 'u',
            "ops" => 'o',
            _ => 'w',
        };
        let expected = letters.contains(letter);
        let status = sessions[name].send(port, method, route, &json!({})).status;
        // What an allowed action says about an empty body does not matter here.
        let allowed = match status {
            403 => false,
            200 | 400 | 404 | 409 => true,
            other => panic!("{name} {method} {route}: HTTP {other}"),
        };
        allowed_count += usize::from(allowed);
        if allowed != expected {
            differences.push((name, method, route, status));
        }
    }
    println!(
        "1000 pairs of a role and a route, {allowed_count} allowed, {} differences",
        differences.len()
    );
    assert_eq!(differences, []);
}

#[test]
fn a_person_decides_under_their_own_name_and_loses_the_right_with_the_role() {
    let (Some(issuer), Some(_)) = (issuer(), browser()) else {
        return;
    };
    let gate = Setup::fast_demo(&config(&issuer)).start();
    let port = gate.port;
    let (sessions, _) = sign_in(&gate, &["app", "vic", "own"]);
    let (approver, viewer, owner) = (&sessions["app"], &sessions["vic"], &sessions["own"]);
    let token = issuer.token("agent.ES256", "demo:read");
    let call = std::thread::spawn(move || {
        let arguments = json!({"name": "n", "text": "canary-argument"});
        call(port, &bearer(&token), "demo_note", arguments)
    });
    let id = gate.pending();
    // A viewer sees the request without its arguments; an approver sees them.
    let state = |session: &Session| {
        let body = session.send(port, "GET", "state", &json!({})).body;
        serde_json::from_str::<Value>(&body).unwrap()
    };
    let seen = state(viewer);
    assert!(seen["pending"].to_string().contains(&id), "{seen}");
    assert!(!seen.to_string().contains("canary-argument"), "{seen}");
    assert!(
        state(approver)["pending"]
            .to_string()
            .contains("canary-argument")
    );
    let (status, told) = viewer.post(port, "approve", &json!({"id": id}));
    assert_eq!(status, 403, "{told}");
    assert!(
        told["error"].as_str().unwrap().contains("\"approve\""),
        "{told}"
    );
    let digest = state(approver)["pending"][0]["digest"].clone();
    let (status, told) = approver.post(port, "approve", &json!({"id": id, "digest": digest}));
    assert_eq!(status, 200, "{told}");
    assert_eq!(call.join().unwrap().status, 200);
    // Contents of ended calls are for auditors and owners.
    assert!(
        !state(approver)["calls"]
            .to_string()
            .contains("canary-argument")
    );
    assert!(
        state(owner)["calls"]
            .to_string()
            .contains("canary-argument")
    );

    let records = gate.audit();
    let approved = records
        .iter()
        .find(|record| record["ev"] == "approval" && record["state"] == "approved")
        .unwrap();
    assert_eq!(approved["who"], "corp:app", "{approved}");
    assert_eq!(approved["issuer"], "corp", "{approved}");
    let signed_in = |record: &&Value| record["ev"] == "console.sign_in";
    assert_eq!(records.iter().filter(signed_in).count(), 3);

    // Sessions survive a restart, are listed, and can be ended.
    let data = gate.stop();
    let gate = Setup::fast_demo(&config(&issuer)).at(port).start_in(data);
    let (status, listed) = owner.post(gate.port, "console/sessions", &json!({}));
    assert_eq!(status, 200, "{listed}");
    let listed = listed.as_array().unwrap();
    let of = |name: &str| listed.iter().find(|one| one["who"] == name).unwrap();
    assert_eq!(of("corp:app")["groups"], json!(["oncall"]));
    assert!(gate.cli(&["console", "--sessions"]).contains("corp:vic"));
    let end = json!({"id": of("corp:vic")["id"]});
    assert_eq!(owner.post(gate.port, "console/end", &end).0, 200);
    assert_eq!(viewer.post(gate.port, "status", &json!({})).0, 401);
    assert_eq!(approver.post(gate.port, "status", &json!({})).0, 200);

    // A role that the config takes away is gone at once.
    let path = gate.data.file("toolgate.toml");
    take_role(&gate);
    until("the role is gone", SOON, || {
        (approver.post(gate.port, "status", &json!({})).0 == 403).then_some(())
    });
    assert_eq!(owner.post(gate.port, "status", &json!({})).0, 200);

    // Two halves of different sessions are no session, and neither is a bearer of one of them.
    let mixed = Session {
        cookie: approver.cookie.clone(),
        key: owner.key.clone(),
    };
    assert_eq!(mixed.post(gate.port, "status", &json!({})).0, 401);

    // An issuer that is no longer in the config attests nobody, not even an owner.
    let text = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        text.replace("[auth.issuer.corp]", "[auth.issuer.other]"),
    )
    .unwrap();
    gate.cli(&["reload"]);
    until("the owner has no right", SOON, || {
        (owner.post(gate.port, "status", &json!({})).0 == 403).then_some(())
    });
}

#[test]
fn each_entry_of_groups_needs_a_person_of_its_own() {
    let (Some(issuer), Some(_)) = (issuer(), browser()) else {
        return;
    };
    let rule = "[[rule]]\ntools = [\"demo.note\"]\naction = \"ask\"\napprovals = { count = 2, groups = [[\"oncall\"], [\"sre\", \"lead\"]] }\n";
    let gate = Setup::fast_demo(&format!("{}{rule}", config(&issuer))).start();
    let port = gate.port;
    let (sessions, _) = sign_in(&gate, &["app", "ops", "own"]);
    let token = issuer.token("agent.ES256", "demo:read");
    let call = std::thread::spawn(move || {
        let arguments = json!({"name": "n", "text": "t"});
        call(port, &bearer(&token), "demo_note", arguments)
    });
    let id = gate.pending();
    // The user of a terminal is in no group, and an owner is not in these.
    let out = gate.run(&["approve", &id]);
    let told = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(
        told.contains("an approver of oncall, and sre or lead"),
        "{told}"
    );
    let approve = |name: &str| {
        let digest = sessions[name].post(port, "approval", &json!({"id": id})).1["digest"].clone();
        let (status, told) =
            sessions[name].post(port, "approve", &json!({"id": id, "digest": digest}));
        (
            status,
            told["error"].as_str().unwrap_or_default().to_owned(),
        )
    };
    assert_eq!(approve("own").0, 409);
    assert_eq!(approve("app"), (200, String::new()));
    let (status, told) = approve("app");
    assert!(status == 409 && told.contains("already approved"), "{told}");
    assert_eq!(gate.inbox(), [id.as_str()]);
    assert_eq!(approve("ops"), (200, String::new()));
    assert_eq!(call.join().unwrap().status, 200);
    let records = gate.audit();
    let yes = records
        .iter()
        .filter(|record| record["ev"] == "approval" && record["issuer"] == "corp");
    let who: Vec<&str> = yes.map(|record| record["who"].as_str().unwrap()).collect();
    assert_eq!(who, ["corp:app", "corp:ops"]);
}

/// Takes the role of approvers away, and lets the gateway read its config again.
fn take_role(gate: &Gate) {
    let path = gate.data.file("toolgate.toml");
    let text = fs::read_to_string(&path).unwrap();
    let text = text.replace("[\"group:oncall\"]", "[\"group:other\"]");
    fs::write(&path, text).unwrap();
    gate.cli(&["reload"]);
}

#[test]
fn a_token_of_another_issuer_signs_nobody_in() {
    let (Some(corp), Some(_)) = (issuer(), browser()) else {
        return;
    };
    // A server that a person may sign in at, and that hands out a token that the other one gave the owner.
    let stolen = format!("{}/of/own?{RESOURCE}", corp.url);
    let Some(rogue) = Issuer::with(&json!({"people": {}, "hands_out": stolen})) else {
        return;
    };
    let more = format!(
        "[auth.issuer.rogue]\nurl = \"{}\"\nsign_in = {{ client_id = \"app\", scopes = [\"demo:read\"] }}\n",
        rogue.url
    );
    let owners = config(&corp).replace("\"group:admins\"", "\"group:admins\", \"rogue:own\"");
    let gate = Setup::fast_demo(&(owners + &more)).start();
    let (sessions, script) = sign_in_at(&gate, &["mal"], json!("rogue"));
    assert!(sessions.is_empty());
    let refused = script.seen("refused")[0]["text"]
        .as_str()
        .unwrap()
        .to_owned();
    println!("refused: {refused}");
    // Its own issuer accepts that token, so the reason is the issuer.
    let (sessions, _) = sign_in_at(&gate, &["own"], json!("corp"));
    assert_eq!(
        sessions["own"].post(gate.port, "config/get", &json!({})).0,
        200
    );
    let signed_in = gate.audit();
    let signed_in = signed_in.iter().filter(|r| r["ev"] == "console.sign_in");
    assert_eq!(signed_in.count(), 1);
}

#[test]
fn a_lost_role_ends_the_push_messages_and_the_event_stream_of_its_person() {
    let (Some(issuer), Some(_)) = (issuer(), browser()) else {
        return;
    };
    let Some(mut receivers) = Receivers::start(json!({})) else {
        return;
    };
    let gate = Setup::fast_demo(&(config(&issuer) + &receivers.push_entry())).start();
    let (sessions, _) = sign_in(&gate, &["app", "own"]);
    let (approver, owner) = (&sessions["app"], &sessions["own"]);
    let endpoint = format!("{}/push/phone", receivers.http);
    let subscription = json!({"endpoint": endpoint, "keys": receivers.keys});
    assert_eq!(
        approver.post(gate.port, "push/subscribe", &subscription).0,
        200
    );
    let (_, listed) = owner.post(gate.port, "push/subscriptions", &json!({}));
    assert_eq!(listed[0]["person"], "corp:app", "{listed}");

    let mut stream = TcpStream::connect(("127.0.0.1", gate.port)).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let asks = approver.request(gate.port, "GET", "events", &json!({}));
    stream.write_all(&asks).unwrap();
    let mut seen = String::new();
    let mut buffer = [0; 16 * 1024];
    while !seen.contains("\"rights\"") {
        let read = stream.read(&mut buffer).unwrap();
        seen += &String::from_utf8_lossy(&buffer[..read]);
    }

    let port = gate.port;
    let token = issuer.token("agent.ES256", "demo:read");
    let request = |name: &'static str| {
        let bearer = bearer(&token);
        let call = std::thread::spawn(move || {
            call(
                port,
                &bearer,
                "demo_note",
                json!({"name": name, "text": "t"}),
            )
        });
        (gate.pending(), call)
    };
    let (id, first) = request("first");
    receivers.got("web_push", &id);
    gate.cli(&["deny", &id, "-m", "no"]);
    first.join().unwrap();

    take_role(&gate);
    // The stream ends; with it open, this read would not.
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    let (id, second) = request("second");
    gate.cli(&["deny", &id, "-m", "no"]);
    second.join().unwrap();
    until("the message is not sent", SOON, || {
        let failed = |record: &Value| {
            record["ev"] == "notify"
                && record["approval"] == id.as_str()
                && record["state"] == "failed"
        };
        gate.audit().iter().any(failed).then_some(())
    });
    assert_eq!(receivers.count("web_push"), 1);
}
