//! Signing in at a server from the console, as its page does it.

use crate::{
    help::{Gate, Login, Response, SOON, Script, browser, real, request, send, shot, until},
    login::{Far, add, get, state},
};
use serde_json::{Value, json};
use std::{io::Write, net::TcpStream, sync::atomic::Ordering::Relaxed, thread};

/// A step of a sign-in at the console.
pub(crate) fn post(gate: &Gate, step: &str, lines: &[String], with: &Value) -> Response {
    let path = format!("/console/api/sign-in/{step}");
    send(gate.port, "POST", &path, lines, with.to_string().as_bytes())
}

/// The page where a person signs in, and the query with which the browser comes back from there.
fn go(gate: &Gate, login: &Login) -> (String, String) {
    let begun = post(gate, "begin", login.lines(), &json!({"server": "far"}));
    assert_eq!(begun.status, 200, "{begun:?}");
    let page: Value = serde_json::from_str(&begun.body).unwrap();
    let page = page["page"].as_str().unwrap().to_owned();
    let led = get(&page);
    let back = led.header("location").expect("it leads back").to_owned();
    let (path, query) = back.split_once('?').unwrap();
    assert_eq!(
        path,
        format!("http://127.0.0.1:{}/console/signed-in", gate.port)
    );
    (page, query.to_owned())
}

fn end(gate: &Gate, login: &Login, query: &str) -> Response {
    post(gate, "end", login.lines(), &json!({"query": query}))
}

#[test]
fn a_person_signs_in_at_the_console() {
    let far = Far::new();
    let near = far.near();
    state(&near, "sign-in");
    let login = near.log_in("");
    let (page, query) = go(&near, &login);
    assert!(page.contains("code_challenge_method=S256"), "{page}");
    // The browser comes with nothing but the address: the cookie does not follow a link of another site.
    let landed = get(&format!(
        "http://127.0.0.1:{}/console/signed-in?{query}",
        near.port
    ));
    assert_eq!(landed.status, 200);
    let policy = landed.header("content-security-policy").unwrap();
    assert!(policy.contains("script-src 'self'"), "{policy}");
    assert_eq!(landed.header("referrer-policy"), Some("no-referrer"));
    assert!(landed.body.contains("/console/signed-in.js"));
    state(&near, "sign-in");

    let done = end(&near, &login, &query);
    assert_eq!(done.status, 200, "{done:?}");
    let done: Value = serde_json::from_str(&done.body).unwrap();
    assert_eq!(
        (&done["server"], &done["scopes"]),
        (&json!("far"), &json!("tools"))
    );
    state(&near, "running");
    assert!(add(&near).contains("\"sum\":3"));

    // It ends while the server is in use, and is begun anew.
    far.end();
    assert!(add(&near).contains("the sign-in has ended"));
    state(&near, "sign-in");
    far.ended.store(false, Relaxed);
    let (_, query) = go(&near, &login);
    assert_eq!(end(&near, &login, &query).status, 200);
    state(&near, "running");
    assert!(add(&near).contains("\"sum\":3"));
    assert!(!near.state().to_string().contains("canary"));
    let audit = near.audit();
    let signed: Vec<_> = audit.iter().filter(|r| r["ev"] == "sign_in").collect();
    assert_eq!(signed.len(), 2);
    let is = |key: &str, word: &str| signed.iter().all(|r| r[key] == word);
    assert!(is("server", "far") && is("by", "console") && is("state", "signed_in"));
}

/// A code is good once: it is traded though the browser that brought it was closed.
#[test]
fn a_browser_that_is_gone_has_signed_in() {
    let far = Far::new();
    let near = far.near();
    state(&near, "sign-in");
    let login = near.log_in("");
    let (_, query) = go(&near, &login);
    let held = far.tokens.lock().unwrap();
    let body = json!({"query": query}).to_string();
    let path = "/console/api/sign-in/end";
    let bytes = request(near.port, "POST", path, login.lines(), body.as_bytes());
    let mut gone = TcpStream::connect(("127.0.0.1", near.port)).unwrap();
    gone.write_all(&bytes).unwrap();
    until("the code is there", SOON, || {
        (far.asked.load(Relaxed) == 1).then_some(())
    });
    drop(gone);
    // The gateway has read that it is closed once it answers what came later.
    near.state();
    drop(held);
    state(&near, "running");
    let audit = near.audit();
    assert!(audit.iter().any(|r| r["ev"] == "sign_in"), "{audit:?}");
}

/// Holds: AUTH-24, AUTH-54.
#[test]
fn t35_an_answer_is_taken_from_the_login_that_asked_and_once() {
    let far = Far::new();
    let near = far.near();
    state(&near, "sign-in");
    let (mine, other) = (near.log_in(""), near.log_in("ann"));
    let (_, query) = go(&near, &mine);
    let state_of = query.split("state=").nth(1).unwrap().to_owned();
    let mut refused = 0;
    for (login, query) in [
        (&other, query.clone()),
        (&mine, format!("code=evil&state={state_of}x")),
        (&mine, format!("code=evil&state=x&state={state_of}")),
        (&mine, "code=evil".to_owned()),
        (&mine, String::new()),
        (&mine, format!("{query}&x={}", "x".repeat(13_000))),
    ] {
        let answer = end(&near, login, &query);
        assert_eq!(answer.status, 409, "{query}: {answer:?}");
        assert!(
            answer.body.contains("does not belong to a sign-in"),
            "{}",
            answer.body
        );
        refused += 1;
    }
    // Without the key of the login, as another site would send it.
    let cookie: Vec<String> = mine
        .lines()
        .iter()
        .filter(|l| !l.contains("X-Toolgate"))
        .cloned()
        .collect();
    for step in ["begin", "end"] {
        let with = json!({"server": "far", "query": query});
        assert_eq!(post(&near, step, &cookie, &with).status, 401, "{step}");
        refused += 1;
    }
    // Nothing of that has changed it.
    assert_eq!(end(&near, &mine, &query).status, 200);
    state(&near, "running");
    assert_eq!(end(&near, &mine, &query).status, 409, "a second time");

    // Another authorization server than the one that was asked.
    let (_, query) = go(&near, &mine);
    let answer = end(
        &near,
        &mine,
        &format!("{query}&iss=https%3A%2F%2Fevil.test"),
    );
    assert_eq!(answer.status, 409);
    assert!(
        answer.body.contains("names another issuer than"),
        "{}",
        answer.body
    );
    println!(
        "T35, console: {} forged answers refused, 0 taken",
        refused + 2
    );
}

#[test]
fn a_sign_in_comes_back_to_the_origin_of_the_page_that_began_it() {
    let far = Far::new();
    let near = far.near();
    let login = near.log_in("");
    let with = |origin: &str| {
        let lines = [login.lines(), &[format!("Origin: {origin}")]].concat();
        post(&near, "begin", &lines, &json!({"server": "far"}))
    };
    assert_eq!(with(&format!("http://127.0.0.1:{}", near.port)).status, 200);
    assert_eq!(with(&format!("http://localhost:{}", near.port)).status, 409);
    assert_eq!(with("https://evil.test").status, 403);
    assert_eq!(with("null").status, 403);
    for server in ["nobody", ""] {
        let answer = post(&near, "begin", login.lines(), &json!({"server": server}));
        assert_eq!(answer.status, 409);
    }
}

#[test]
fn sign_ins_that_nobody_ends_are_few() {
    let far = Far::new();
    let near = far.near();
    let login = near.log_in("");
    let begin = || post(&near, "begin", login.lines(), &json!({"server": "far"}));
    // Also where they begin at the same time.
    let begun: usize = thread::scope(|scope| {
        let all: Vec<_> = (0..40).map(|_| scope.spawn(begin)).collect();
        let all = all.into_iter().map(|one| one.join().unwrap());
        all.filter(|answer| answer.status == 200).count()
    });
    assert_eq!(begun, 32);
    let over = begin();
    assert_eq!(over.status, 409);
    assert!(
        over.body.contains("32 sign-ins are open already"),
        "{}",
        over.body
    );
}

#[test]
fn a_person_signs_in_in_the_browser() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let far = Far::new();
    let near = far.near();
    state(&near, "sign-in");
    let steps = json!([
        {"do": "server", "id": "far", "state": "sign-in"},
        {"do": "shot", "path": shot("sign-in.png")},
        {"do": "narrow", "width": 375},
        {"do": "shot", "path": shot("sign-in-narrow.png")},
        {"do": "sign_in", "id": "far"},
        {"do": "server", "id": "far", "state": "running"},
        {"do": "shot", "path": shot("signed-in.png")},
        {"do": "sign_out", "id": "far"},
        {"do": "sign_in", "id": "far"},
        {"do": "server", "id": "far", "state": "running"},
    ]);
    let mut page = Script::browser(&real, &near.console(), steps);
    let shown = page.event("server")["text"].as_str().unwrap().to_owned();
    assert!(shown.contains("needs a sign-in"), "{shown}");
    assert_eq!(page.event("narrow")["wide"], 375);
    let back = page.event("sign_in");
    let shown = back["text"].as_str().unwrap();
    assert!(shown.contains("Signed in at http://127.0.0.1:"), "{shown}");
    assert!(
        shown.contains("for the server far, with the scope tools"),
        "{shown}"
    );
    assert_eq!(back["wide"], 375);
    // Whose page it is, and who uses what is granted, is told before anybody goes there.
    let told = back["told"].as_str().unwrap();
    let issuer = format!("at the authorization server {}.", far.issuer());
    assert!(told.contains(&issuer), "{told}");
    assert!(told.contains("by all callers that may use far"), "{told}");
    let shown = page.event("server")["text"].as_str().unwrap().to_owned();
    assert!(
        shown.contains("Sign in again") && shown.contains("Sign out"),
        "{shown}"
    );
    assert!(
        page.event("sign_out")["begin"]
            .as_str()
            .unwrap()
            .contains("Sign in again")
    );
    page.event("sign_in");
    page.event("done");
    page.assert_no_page_error();
    assert!(add(&near).contains("\"sum\":3"));
}
