//! A person who signs in with a real browser at a real authorization server, and what becomes of what was allowed.

use crate::help::{
    Gate, LONG, Modern, Script, Setup, TempDir, answer_of, browser, real, toolgate, until,
};
use crate::oauth::Issuer;
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::Arc,
};
use toolgate_auth::jose::SigningKey;

/// Returns the path of a test script.
fn script(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop");
    folder.canonicalize().unwrap().join(name)
}

/// The demo server behind a gateway that wants tokens of this issuer for its own address.
fn far(issuer: &Issuer) -> Gate {
    let gate = Setup::fast_demo("")
        .env("CORP_SECRET", "secret-of-gateway-0123456789")
        .start();
    let before = fs::read_to_string(gate.data.file("toolgate.toml")).unwrap();
    gate.configure(&format!(
        "{before}\n[auth]\nresource = \"{}\"\n[auth.issuer.corp]\nurl = \"{}\"\n\
         [[auth.scope]]\ntools = [\"demo.*\"]\nscopes = [\"demo:read\"]\n",
        gate.endpoint, issuer.url
    ));
    gate.cli(&["reload"]);
    gate
}

fn near(url: &str, more: &str) -> Setup {
    Setup::config(format!(
        "[limits]\nrate = \"1000000/s\"\n[server.far]\nurl = \"{url}\"\ntrust_annotations = true\n{more}"
    ))
}

fn login(gate: &Gate, args: &[&str]) -> Command {
    let mut login = toolgate();
    login
        .args(["login", "far"])
        .args(args)
        .arg("--config")
        .arg(gate.data.file("toolgate.toml"))
        .arg("--data")
        .arg(gate.data.path().join("state"))
        .env_remove("BROWSER")
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    login
}

/// Signs in: the page that `toolgate login` prints is opened by hand.
fn sign_in(gate: &Gate) -> Output {
    let mut child = login(gate, &["--no-browser"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let page = lines
        .by_ref()
        .map_while(Result::ok)
        .find(|line| line.starts_with("  http"));
    let page = page.expect("the page is printed");
    let job = json!({"url": page.trim(), "name": "alice"});
    let mut person = Script::start(&real().unwrap(), "sign_in.mjs", &job);
    let back = person.event("back");
    assert!(
        back["text"].as_str().unwrap().contains("has arrived"),
        "{back}"
    );
    let done = child.wait_with_output().unwrap();
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert!(done.status.success(), "{done:?} {rest:?}");
    done
}

/// A program that can be named in `$BROWSER`: a person at a real browser. It notes what it was given.
fn opener(folder: &TempDir) -> PathBuf {
    let notes = folder.file("given");
    let text = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$#\" \"$@\" > {notes:?}\n\
         TOOLGATE_INTEROP={:?} exec node {:?} \"{{\\\"url\\\":\\\"$1\\\",\\\"name\\\":\\\"alice\\\"}}\"\n",
        real().unwrap(),
        script("sign_in.mjs")
    );
    let program = folder.write("opener", &text);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program
}

fn state(gate: &Gate, wanted: &str) -> Value {
    until("the server is so", LONG, || {
        let server = gate.state()["servers"][0].clone();
        (server["state"] == wanted).then_some(server)
    })
}

/// Calls a tool and returns the answer as one text.
fn call(gate: &Gate, tool: &str, arguments: Value) -> String {
    let response = Modern::call(gate.port, &json!(1), tool, arguments);
    answer_of(&response, &json!(1)).to_string()
}

fn add(gate: &Gate) -> String {
    call(gate, "far_demo_add", json!({"a": 1, "b": 2}))
}

#[track_caller]
fn adds(gate: &Gate) {
    let answer = add(gate);
    assert!(answer.contains("\"sum\":3"), "{answer}");
}

fn renewals(issuer: &Issuer) -> usize {
    let told = issuer.told();
    let refused = told.iter().find(|one| one["what"] == "refused");
    assert!(refused.is_none(), "{refused:?}");
    let renewed = |one: &&Value| one["what"] == "granted" && one["grant"] == "refresh_token";
    told.iter().filter(renewed).count()
}

/// Holds: AUTH-13, AUTH-29, AUTH-35, AUTH-44, AUTH-45, AUTH-54
#[test]
fn a_person_signs_in_with_a_browser_and_what_was_allowed_is_renewed_and_withdrawn() {
    if browser().is_none() {
        return;
    }
    let Some(issuer) = Issuer::with(&json!({"people": {"life": 3}})) else {
        return;
    };
    let far = far(&issuer);
    let data = Arc::new(TempDir::new("data"));
    let near = || near(&far.endpoint, "");
    let one = near().start_in(data.clone());
    let wants = "run: toolgate login far";
    let shown = state(&one, "sign-in");
    assert!(shown["error"].as_str().unwrap().contains(wants), "{shown}");
    let done = sign_in(&one);
    let words = format!(
        "signed in to far through {}; scopes: demo:read\n",
        issuer.url
    );
    assert_eq!(String::from_utf8_lossy(&done.stdout), words);
    let shown = state(&one, "running");
    assert!(shown["error"].is_null(), "{shown}");
    adds(&one);

    // Each refresh token is good once, and the issuer ends all where one comes twice: two gateways share it.
    let two = near().start_in(data);
    until("the other one has it too", LONG, || {
        add(&two).contains("\"sum\":3").then_some(())
    });
    let before = renewals(&issuer);
    until("it is renewed, and again", LONG, || {
        adds(&one);
        adds(&two);
        (renewals(&issuer) >= before + 3).then_some(())
    });

    issuer.withdraw();
    for gate in [&one, &two] {
        let answer = until("a call says that somebody has to sign in", LONG, || {
            let answer = add(gate);
            answer.contains(wants).then_some(answer)
        });
        assert!(answer.contains(&issuer.url), "{answer}");
    }
    two.stop();
    let shown = state(&one, "sign-in");
    assert!(shown["error"].as_str().unwrap().contains(wants), "{shown}");
    let status = one.run(&["status"]);
    assert_eq!(status.status.code(), Some(1), "a server is down");
    let status = String::from_utf8(status.stdout).unwrap();
    assert!(status.contains(wants), "{status}");

    sign_in(&one);
    until("it works again", LONG, || {
        add(&one).contains("\"sum\":3").then_some(())
    });
    state(&one, "running");
    let config = one.data.file("toolgate.toml");
    let said = one.cli(&["logout", "far", "--config", config.to_str().unwrap()]);
    let words = format!(
        "the credentials for far are deleted; {} revoked them\n",
        issuer.url
    );
    assert_eq!(said, words);
    assert!(issuer.told().iter().any(|one| one["what"] == "revoked"));
}

/// Holds: AUTH-17, AUTH-18, AUTH-19
#[test]
fn a_call_that_needs_more_works_after_a_sign_in_through_a_browser_that_was_named() {
    if browser().is_none() {
        return;
    }
    let Some(issuer) = Issuer::with(&json!({"people": {"opaque": true}})) else {
        return;
    };
    let real = real().unwrap();
    let job = json!({"interop": real, "issuer": issuer.url});
    let mut notes = Script::start(&real, "servers/protected.mjs", &job);
    let url = notes.event("listening")["url"].as_str().unwrap().to_owned();
    // This one does not register: it was given its id.
    let near = near(
        &url,
        &format!("client_id = \"app\"\nissuer = \"{}\"\n", issuer.url),
    )
    .start();
    let folder = TempDir::new("browser");
    let opener = opener(&folder);
    let sign_in = || {
        let mut login = login(&near, &[]);
        let done = login.env("BROWSER", &opener).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        let given = fs::read_to_string(folder.file("given")).unwrap();
        let given: Vec<&str> = given.lines().collect();
        assert_eq!((given.len(), given[0]), (2, "1"), "one word: {given:?}");
        assert!(given[1].starts_with(&format!("{}/auth?", issuer.url)));
        (String::from_utf8(done.stdout).unwrap(), given[1].to_owned())
    };
    let (said, page) = sign_in();
    let words = |scopes: &str| {
        format!(
            "signed in to far through {}; scopes: {scopes}\n",
            issuer.url
        )
    };
    assert_eq!(said, words("demo:read"));
    assert!(
        page.contains("scope=demo%3Aread+offline_access&prompt=consent"),
        "{page}"
    );
    state(&near, "running");
    let read = || call(&near, "far_read_note", json!({}));
    let write = || call(&near, "far_write_note", json!({}));
    assert!(read().contains("read_note for alice"), "{}", read());
    for _ in 0..4 {
        let answer = write();
        let wants = format!(
            "a user has to sign in at {} for {} again, to allow more: demo:write;",
            issuer.url,
            url.trim_end_matches("/mcp")
        );
        assert!(answer.contains("run: toolgate login far"), "{answer}");
        assert!(answer.contains(&wants), "{answer}");
        assert!(read().contains("read_note for alice"), "{}", read());
    }
    let shown = near.state()["servers"][0].clone();
    assert_eq!(shown["state"], "running", "one call is no server: {shown}");
    let (said, page) = sign_in();
    assert_eq!(said, words("demo:read demo:write"));
    assert!(
        page.contains("scope=demo%3Aread+demo%3Awrite+offline_access"),
        "{page}"
    );
    assert!(write().contains("write_note for alice"), "{}", write());
    assert!(read().contains("read_note for alice"), "{}", read());
    let register = |one: &Value| one["client"] != "app";
    assert!(!issuer.told().iter().any(register), "{:?}", issuer.told());

    // What the issuer can be asked about ends at once.
    issuer.withdraw();
    let answer = read();
    assert!(answer.contains("run: toolgate login far"), "{answer}");
    state(&near, "sign-in");
}

/// Holds: AUTH-54
#[test]
fn a_person_who_says_no_is_told_so_and_nothing_is_kept() {
    if browser().is_none() {
        return;
    }
    let Some(issuer) = Issuer::with(&json!({"people": {}})) else {
        return;
    };
    let far = far(&issuer);
    let near = near(&far.endpoint, "").start();
    let mut child = login(&near, &["--no-browser"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let page = lines
        .by_ref()
        .map_while(Result::ok)
        .find(|line| line.starts_with("  http"));
    let job = json!({"url": page.unwrap().trim(), "name": "alice", "refuse": true});
    Script::start(&real().unwrap(), "sign_in.mjs", &job).event("back");
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert!(
        rest.join("\n")
            .contains("refused the sign-in: access_denied"),
        "{rest:?}"
    );
    let config = near.data.file("toolgate.toml");
    let out = near.run(&["logout", "far", "--config", config.to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(1));
}

/// Holds: AUTH-54
#[test]
fn a_person_signs_in_from_the_console_and_what_was_allowed_is_renewed() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let Some(issuer) = Issuer::with(&json!({"people": {"life": 3}})) else {
        return;
    };
    let far = far(&issuer);
    let gate = near(&far.endpoint, "").start();
    state(&gate, "sign-in");
    let steps = json!([
        {"do": "server", "id": "far", "state": "sign-in"},
        {"do": "sign_in", "id": "far", "name": "alice"},
        {"do": "server", "id": "far", "state": "running"},
    ]);
    let job = json!({"link": gate.console(), "steps": steps, "near": true});
    let mut page = Script::start(&real, "browser.mjs", &job);
    let back = page.event("sign_in")["text"].to_string();
    let words = format!(
        "Signed in at {} for the server far, with the scope demo:read",
        issuer.url
    );
    assert!(back.contains(&words), "{back}");
    page.event("done");
    adds(&gate);
    until("it is renewed, and again", LONG, || {
        adds(&gate);
        (renewals(&issuer) >= 2).then_some(())
    });
}

/// A gateway without a person: it asks for its tokens itself, with a secret and with a key.
#[test]
fn a_gateway_signs_in_by_itself() {
    let (key, kept) = SigningKey::generate().unwrap();
    let Some(issuer) = Issuer::with(&json!({"key": key.public_jwk()})) else {
        return;
    };
    let far = far(&issuer);
    let itself = |id: &str, shows: &str| {
        let url = &issuer.url;
        near(
            &far.endpoint,
            &format!(
                "sign_in = \"client\"\nclient_id = \"{id}\"\nissuer = \"{url}\"\nscopes = [\"demo:read\", \"demo:write\"]\n{shows}"
            ),
        )
    };
    let folder = TempDir::new("key");
    let pem = format!(
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
        kept.reveal()
    );
    let pem = folder.write("client.pem", &pem);
    fs::set_permissions(&pem, fs::Permissions::from_mode(0o600)).unwrap();
    for (id, shows) in [
        (
            "agent.ES256",
            "client_secret = { env = \"AGENT\" }\n".to_owned(),
        ),
        (
            "agent.ES256.key",
            format!("client_key = {{ file = {pem:?} }}\n"),
        ),
    ] {
        let gate = itself(id, &shows)
            .env("AGENT", "secret-of-agent.ES256-0123456789")
            .start();
        let shown = state(&gate, "running");
        assert_eq!(shown["signs_in"], false, "{shown}");
        adds(&gate);
        let asked = issuer.told();
        let asked = asked.last().unwrap();
        assert_eq!(
            (&asked["grant"], &asked["client"]),
            (&json!("client_credentials"), &json!(id))
        );
        // More than the server names.
        assert_eq!(asked["scope"], "demo:read demo:write");
        // There is always another token: none is kept.
        assert!(!gate.data.path().join("state/grants/grants.sealed").exists());
        let out = login(&gate, &["--no-browser"]).output().unwrap();
        assert_eq!(out.status.code(), Some(2), "{out:?}");
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(said.contains("so no person has to"), "{said}");
    }
    // A refusal is told as what it is: no person can do anything about it at a page.
    let gate = itself("agent.ES256", "client_secret = { env = \"AGENT\" }\n")
        .env("AGENT", "canary-wrong-secret")
        .start();
    let shown = state(&gate, "backoff");
    let error = shown["error"].as_str().unwrap();
    assert!(
        error.contains("invalid_client") && !error.contains("canary"),
        "{error}"
    );
    assert!(!error.contains("toolgate login"), "{error}");
}
