//! Sign-in links: an input request leads the user of a caller without a sign-in to a page. The page first asks for the
//! caller's API key.

use crate::{
    help::{Client, Gate, Modern, Response, Script, answer_of, browser, real, send, shot},
    login::get,
    own_grants::{Far, key, sign_in, who, with},
};
use serde_json::{Value, json};
use std::thread;
use toolgate_testkit::NEWEST_REVISION;

/// Signs in a first caller, whose call makes the server's tools known to the gateway.
pub(crate) fn known(gate: &Gate) {
    let first = key(gate, "first");
    sign_in(gate, "key:first");
    assert!(who(gate, &first, "").contains("you are account"));
}

/// A call of a client that opens pages for its user; `more` is what a later round brings along.
pub(crate) fn call(gate: &Gate, key: &str, more: &Value) -> Value {
    let mut params = json!({"name": "far_who", "arguments": {"i_am": "x"}});
    for (name, value) in more.as_object().unwrap() {
        params[name] = value.clone();
    }
    let mut body = Modern::body(&json!(1), "tools/call", params);
    body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({"elicitation": {"url": {}}});
    let lines = [Modern::headers("tools/call", Some("far_who")), with(key)].concat();
    let body = body.to_string();
    answer_of(
        &send(gate.port, "POST", "/mcp", &lines, body.as_bytes()),
        &json!(1),
    )
}

/// The page to which a caller's user is led, and the link in it.
pub(crate) fn page(gate: &Gate, answer: &Value, caller: &str) -> (String, String) {
    let asked = &answer["result"]["inputRequests"]["toolgate.sign-in"];
    assert_eq!(asked["method"], "elicitation/create", "{answer}");
    let params = &asked["params"];
    assert_eq!(params["mode"], "url", "{answer}");
    let said = params["message"].as_str().unwrap();
    assert!(said.contains("the server far"), "{said}");
    assert!(said.contains(&format!("far for {caller}")), "{said}");
    let url = params["url"].as_str().unwrap().to_owned();
    let (base, link) = url.split_once('#').unwrap();
    assert_eq!(base, format!("http://127.0.0.1:{}/sign-in/", gate.port));
    (url.clone(), link.to_owned())
}

/// Returns the client's answer after its user opened the page or declined.
fn answered(answer: &Value, action: &str) -> Value {
    json!({
        "requestState": answer["result"]["requestState"],
        "inputResponses": {"toolgate.sign-in": {"action": action}},
    })
}

pub(crate) fn post(gate: &Gate, step: &str, lines: &[String], body: &Value) -> Response {
    let path = format!("/sign-in/{step}");
    let lines = &[lines, &["Content-Type: application/json".to_owned()]].concat();
    send(gate.port, "POST", &path, lines, body.to_string().as_bytes())
}

fn begin(gate: &Gate, key: &str, link: &str) -> Response {
    post(gate, "begin", &with(key), &json!({"link": link}))
}

pub(crate) fn json_of(response: &Response) -> Value {
    serde_json::from_str(&response.body).unwrap_or_else(|_| panic!("{response:?}"))
}

/// Does at the authorization server what a person would, and gives what the browser comes back with.
fn at_the_page(gate: &Gate, begun: &Value) -> String {
    let led = get(begun["page"].as_str().unwrap());
    let back = led.header("location").unwrap();
    let (to, query) = back.split_once('?').unwrap();
    assert_eq!(to, format!("http://127.0.0.1:{}/sign-in/back", gate.port));
    query.to_owned()
}

fn end(gate: &Gate, query: &str, key: &Value) -> Response {
    post(gate, "end", &[], &json!({"query": query, "key": key}))
}

#[test]
fn a_call_leads_its_user_to_a_sign_in_and_goes_on_after_it() {
    let far = Far::new();
    let gate = far.gate("question_seconds = 30\n");
    known(&gate);
    let [ann, bob] = ["ann", "bob"].map(|name| key(&gate, name));
    let asked = call(&gate, &ann, &json!({}));
    let (url, link) = page(&gate, &asked, "key:ann");
    // The link has neither the key nor anything that a page of the authorization server would take.
    assert!(!url.contains("tg_") && !url.contains("state="), "{url}");
    let shown = get(url.split('#').next().unwrap());
    assert_eq!(shown.status, 200);
    let policy = shown.header("content-security-policy").unwrap();
    for part in ["script-src 'self'", "frame-ancestors 'none'"] {
        assert!(policy.contains(part), "{policy}");
    }
    // The client says that the page is open, and waits with its call until somebody signed in.
    let done = thread::scope(|scope| {
        let waits = scope.spawn(|| call(&gate, &ann, &answered(&asked, "accept")));
        let begun = json_of(&begin(&gate, &ann, &link));
        assert_eq!(
            (&begun["server"], &begun["caller"]),
            (&json!("far"), &json!("key:ann"))
        );
        let query = at_the_page(&gate, &begun);
        let ended = end(&gate, &query, &begun["key"]);
        assert_eq!(ended.status, 200, "{ended:?}");
        assert_eq!(json_of(&ended)["caller"], "key:ann");
        waits.join().unwrap()
    });
    assert!(done.to_string().contains("you are account2"), "{done}");
    assert!(who(&gate, &ann, "").contains("account2"));
    // Nobody else has it; who is not led to a page is told as before.
    assert!(who(&gate, &bob, "").contains("sign in for key:bob"));
    let asked = call(&gate, &bob, &json!({}));
    assert_ne!(page(&gate, &asked, "key:bob").1, link);
    let no = call(&gate, &bob, &answered(&asked, "decline")).to_string();
    assert!(
        no.contains("the user did not open the sign-in page"),
        "{no}"
    );
    far.seen(|seen| {
        let own = |(said, account): &(String, String)| said != "x" || account == "account2";
        assert!(seen.calls.iter().all(own), "{:?}", seen.calls);
        assert_eq!(seen.accounts, 2);
    });
    let signed: Vec<Value> = gate.audit();
    let signed = signed.iter().rfind(|r| r["ev"] == "sign_in").unwrap();
    assert_eq!(
        (&signed["caller"], &signed["by"], &signed["who"]),
        (&json!("key:ann"), &json!("client"), &json!("key:ann"))
    );
    for place in [
        gate.cli(&["audit", "tail", "-n", "1000"]),
        gate.said().join("\n"),
    ] {
        for secret in ["canary", &link, &ann] {
            assert!(!place.contains(secret), "{place}");
        }
    }
}

#[test]
fn a_call_that_needs_more_than_was_granted_leads_to_the_page_too() {
    let far = Far::new();
    let gate = far.gate("question_seconds = 30\n");
    known(&gate);
    let ann = key(&gate, "ann");
    sign_in(&gate, "key:ann");
    assert!(
        call(&gate, &ann, &json!({}))
            .to_string()
            .contains("account2")
    );
    far.seen(|seen| seen.narrow.insert("account2".to_owned()));
    let asked = call(&gate, &ann, &json!({}));
    let (_, link) = page(&gate, &asked, "key:ann");
    let done = thread::scope(|scope| {
        let waits = scope.spawn(|| call(&gate, &ann, &answered(&asked, "accept")));
        let begun = json_of(&begin(&gate, &ann, &link));
        let more = begun["page"].as_str().unwrap();
        assert!(more.contains("scope=write"), "{more}");
        let ended = end(&gate, &at_the_page(&gate, &begun), &begun["key"]);
        assert_eq!(ended.status, 200, "{ended:?}");
        waits.join().unwrap()
    });
    assert!(done.to_string().contains("you are account3"), "{done}");
}

#[test]
fn who_has_not_shown_who_he_is_is_brief() {
    let gate = Far::new().gate("");
    let own = ["Content-Type: application/json", "X-Toolgate-Console: 1"].map(str::to_owned);
    for path in [
        "/console/login",
        "/sign-in/who",
        "/sign-in/show",
        "/sign-in/shown",
        "/sign-in/end",
    ] {
        let of = |length: usize| {
            let body = json!({"link": "x".repeat(length)}).to_string();
            send(gate.port, "POST", path, &own, body.as_bytes())
        };
        // A short one is read, and is of no use.
        assert!([401, 409].contains(&of(16_000).status), "{path}");
        let long = of(17_000);
        assert_eq!(long.status, 400, "{path}");
        assert!(long.body.contains("is longer than"), "{path} {}", long.body);
    }
}

/// The way of an SDK, which only says that its user agreed: over a session the question comes inside the call, in
/// 2026-07-28 as its result.
#[test]
fn real_clients_lead_their_users_to_the_page() {
    let Some(real) = real() else {
        return;
    };
    let far = Far::new();
    let gate = far.gate("question_seconds = 60\n");
    known(&gate);
    let clients = [
        (Client::TypeScript1, "legacy", "2025-11-25"),
        (Client::TypeScript2, "legacy", "2025-11-25"),
        (Client::TypeScript2, "modern", NEWEST_REVISION),
    ];
    for (n, (client, mode, revision)) in clients.into_iter().enumerate() {
        let name = format!("ann{n}");
        let key = key(&gate, &name);
        let job = json!({
            "http": format!("http://127.0.0.1:{}/mcp", gate.port), "mode": mode,
            "headers": {"Authorization": format!("Bearer {key}")},
            "elicit": [{"action": "accept"}], "pages": true,
            "steps": [{"do": "call", "name": "far_who", "arguments": {"i_am": "x"}}],
        });
        let mut script = client.start(&real, &job);
        assert_eq!(script.event("connected")["revision"], revision);
        let asked = script.event("asked");
        let (_, link) = asked["url"].as_str().unwrap().split_once('#').unwrap();
        let begun = json_of(&begin(&gate, &key, link));
        let ended = end(&gate, &at_the_page(&gate, &begun), &begun["key"]);
        assert_eq!(ended.status, 200, "{ended:?}");
        let result = script.event("result");
        let account = format!("you are account{}", n + 2);
        assert!(
            result["text"].as_str().unwrap().contains(&account),
            "{result}"
        );
        script.event("done");
        assert_eq!(script.seen("asked").len(), 1, "{revision}");
    }
}

/// Holds: ELIC-14
#[test]
fn t37_a_link_helps_nobody_but_the_user_of_its_caller() {
    let far = Far::new();
    let gate = far.gate("");
    known(&gate);
    let [ann, bob] = ["ann", "bob"].map(|name| key(&gate, name));
    let asked = call(&gate, &ann, &json!({}));
    let (_, link) = page(&gate, &asked, "key:ann");
    let (_, other) = page(&gate, &call(&gate, &bob, &json!({})), "key:bob");
    let mut refused = 0;
    // With the link of another caller, with none, and without the key of a caller.
    for (lines, link, status) in [
        (with(&bob), link.as_str(), 409),
        (with(&ann), other.as_str(), 409),
        (with(&ann), "", 409),
        (with(&ann), &link[1..], 409),
        (with(&format!("tg_{}", "0".repeat(64))), &link, 401),
        (with("x"), &link, 401),
        (Vec::new(), &link, 401),
        ([with(&ann), with(&ann)].concat(), &link, 400),
    ] {
        let answer = post(&gate, "begin", &lines, &json!({"link": link}));
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(!answer.body.contains("page"), "{answer:?}");
        refused += 1;
    }
    // A page of another origin can neither ask nor be answered.
    let foreign = [with(&ann), vec!["Origin: https://evil.test".to_owned()]].concat();
    assert_eq!(
        post(&gate, "begin", &foreign, &json!({"link": link})).status,
        403
    );
    // Bob begins, and sends Ann to the page: she comes back with an answer that nothing of hers fits, nor Ann's own.
    let bobs = json_of(&begin(&gate, &bob, &other));
    let anns = json_of(&begin(&gate, &ann, &link));
    let query = at_the_page(&gate, &bobs);
    for key in [&anns["key"], &json!(""), &json!(null), &json!("x")] {
        let answer = end(&gate, &query, key);
        assert_eq!(answer.status, 409, "{answer:?}");
        refused += 1;
    }
    // At the console it is no answer either, and an answer to the console is none here.
    let login = gate.log_in("");
    let with_query = json!({"query": query}).to_string();
    let at_console = send(
        gate.port,
        "POST",
        "/console/api/sign-in/end",
        login.lines(),
        with_query.as_bytes(),
    );
    assert_eq!(at_console.status, 409);
    // A link is good once.
    assert_eq!(begin(&gate, &ann, &link).status, 409);
    refused += 3;
    assert!(who(&gate, &ann, "").contains("sign in for key:ann"));
    assert!(who(&gate, &bob, "").contains("sign in for key:bob"));
    // What was begun with a key ends with it, also for a new key of that name.
    let query = at_the_page(&gate, &anns);
    gate.cli(&["keys", "revoke", "ann"]);
    let next = key(&gate, "ann");
    let late = end(&gate, &query, &anns["key"]);
    assert_eq!(late.status, 409, "{late:?}");
    assert!(late.body.contains("revoked"), "{late:?}");
    assert!(who(&gate, &next, "").contains("sign in for key:ann"));
    far.seen(|seen| assert_eq!((seen.accounts, seen.calls.len()), (1, 1)));
    println!(
        "T37, links of callers: {} wrong uses refused, 0 sign-ins",
        refused + 1
    );
}

#[test]
fn pages_are_for_callers_that_can_be_told_apart_and_servers_that_may_lead_to_them() {
    let far = Far::new();
    for (more, base) in [
        ("", None),
        (
            "[auth]\nresource = \"http://127.0.0.1:1/x/mcp\"\n",
            Some("http://127.0.0.1:1/x/sign-in/"),
        ),
    ] {
        let gate = far.gate(more);
        known(&gate);
        let asked = call(&gate, &key(&gate, "ann"), &json!({}));
        let url = &asked["result"]["inputRequests"]["toolgate.sign-in"]["params"]["url"];
        let url = url.as_str().unwrap_or_else(|| panic!("{asked}"));
        let own = format!("http://127.0.0.1:{}/sign-in/", gate.port);
        assert_eq!(url.split('#').next(), Some(base.unwrap_or(&own)));
        // Nobody is told apart by the name that all without a key have.
        let anonymous = call(&gate, "", &json!({})).to_string();
        assert!(!anonymous.contains("inputRequests"), "{anonymous}");
    }
    // Where others reach the gateway by a name and its address is not said, or the server may lead to no pages.
    for setup in [
        far.setup("").top("allowed_hosts = [\"tools.test\"]"),
        far.setup_with("", "elicitation_urls = \"off\"\n"),
    ] {
        let gate = setup.start();
        known(&gate);
        let told = call(&gate, &key(&gate, "ann"), &json!({})).to_string();
        assert!(
            told.contains("run: toolgate login far --caller key:ann"),
            "{told}"
        );
    }
}

#[test]
fn a_person_signs_in_for_a_program_in_the_browser() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let far = Far::new();
    let gate = far.gate("");
    known(&gate);
    let [ann, bob] = ["ann", "bob"].map(|name| key(&gate, name));
    let asked = call(&gate, &bob, &json!({}));
    let (url, _) = page(&gate, &asked, "key:bob");
    let steps = json!([
        {"do": "own_sign_in", "url": url, "wrong": ann, "key": bob, "path": shot("own-sign-in.png")},
    ]);
    let mut page = Script::browser(&real, &gate.console(), steps);
    let back = page.event("own_sign_in");
    let wrong = back["wrong"].as_str().unwrap();
    assert!(
        wrong.contains("this link is not valid for this key"),
        "{wrong}"
    );
    let told = back["told"].as_str().unwrap();
    assert!(
        told.contains("Only key:bob will use the credentials, at the server far"),
        "{told}"
    );
    assert_eq!(back["wide"], 375);
    let text = back["text"].as_str().unwrap();
    assert!(
        text.contains("for the server far, only for the caller key:bob"),
        "{text}"
    );
    // Neither the key nor the code stays in the page or its history.
    let kept = back["kept"].as_str().unwrap();
    for secret in [bob.as_str(), ann.as_str(), "code=", "toolgate.own"] {
        assert!(!kept.contains(secret), "{kept}");
    }
    page.event("done");
    // One answer of the gateway was a refusal, which the browser tells of.
    let errors = page.seen("page_error");
    assert!(errors.len() <= 1, "{errors:?}");
    assert!(who(&gate, &bob, "").contains("account2"));
    assert!(who(&gate, &ann, "").contains("sign in for key:ann"));
}
