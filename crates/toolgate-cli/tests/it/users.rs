//! Callers that an issuer named: their users show who they are by signing in there, and then sign in for them.

use crate::{
    help::{Gate, Script, browser, raw, real, request, shot},
    oauth::Issuer,
    own_grants::{Far, key, with},
    sign_in_links::{call, json_of, known, page, post},
};
use serde_json::{Value, json};

/// The gateway of a server where each caller has a grant, and of callers of an issuer.
fn gate(far: &Far, issuer: &Issuer, more: &str) -> Gate {
    let gate = far.gate("");
    let config = gate.data.file("toolgate.toml");
    let text = std::fs::read_to_string(config).unwrap();
    let auth = format!(
        "[auth]\nresource = \"http://127.0.0.1:{}/mcp\"\n[auth.issuer.corp]\nurl = \"{}\"\n{more}",
        gate.port, issuer.url
    );
    gate.configure(&format!("{text}{auth}"));
    gate.cli(&["reload"]);
    gate
}

/// A token of a person at the issuer, for the gateway.
fn token(gate: &Gate, issuer: &Issuer, name: &str) -> String {
    let path = format!("/of/{name}?http%3A%2F%2F127.0.0.1%3A{}%2Fmcp", gate.port);
    let said = raw(issuer.port, &request(issuer.port, "GET", &path, &[], b""));
    json_of(&said)["token"].as_str().unwrap().to_owned()
}

const SIGN_IN: &str = "[auth.issuer.corp.sign_in]\nclient_id = \"app\"\nscopes = [\"demo:read\"]\n";

fn one(gate: &Gate, step: &str, body: &Value) -> Value {
    let answer = post(gate, step, &[], body);
    assert_eq!(answer.status, 200, "{answer:?}");
    json_of(&answer)
}

#[test]
fn a_person_signs_in_for_a_program_that_an_issuer_knows() {
    let (Some(real), Some(_), Some(issuer)) =
        (real(), browser(), Issuer::with(&json!({"people": {}})))
    else {
        return;
    };
    let far = Far::new();
    let gate = gate(&far, &issuer, SIGN_IN);
    known(&gate);
    let alice = token(&gate, &issuer, "alice");
    let asked = call(&gate, &alice, &json!({}));
    let said = asked["result"]["inputRequests"]["toolgate.sign-in"]["params"]["message"].clone();
    assert!(
        said.to_string().contains("asks you to sign in at corp"),
        "{said}"
    );
    let (url, link) = page(&gate, &asked, "corp:alice");
    let go = |name: &str| {
        let steps = json!([
            {"do": "own_sign_in_as", "url": url, "name": name, "path": shot("own-sign-in-as.png")},
        ]);
        Script::browser(&real, &gate.console(), steps).event("own_sign_in_as")
    };
    // Somebody else who is handed the link gets no further with it.
    let refused = go("mallory")["refused"].clone();
    assert!(
        refused
            .to_string()
            .contains("you are signed in as corp:mallory"),
        "{refused}"
    );
    assert_eq!(far.seen(|seen| seen.accounts), 1);
    let back = go("alice");
    let told = back["told"].as_str().unwrap();
    assert!(
        told.contains("Only corp:alice will use the credentials, at the server far"),
        "{told}"
    );
    assert_eq!(back["wide"], 375);
    let text = back["text"].as_str().unwrap();
    assert!(
        text.contains("for the server far, only for the caller corp:alice"),
        "{text}"
    );
    let kept = back["kept"].as_str().unwrap();
    for secret in [
        alice.as_str(),
        "code=",
        &link,
        "toolgate.own",
        "toolgate.showing",
    ] {
        assert!(!kept.contains(secret), "{kept}");
    }
    let done = call(&gate, &alice, &json!({})).to_string();
    assert!(done.contains("you are account2"), "{done}");
    let bob = token(&gate, &issuer, "bob");
    let asked = call(&gate, &bob, &json!({}));
    page(&gate, &asked, "corp:bob");
    let signed = gate.audit();
    let signed = signed.iter().rfind(|r| r["ev"] == "sign_in").unwrap();
    assert_eq!(
        (&signed["caller"], &signed["by"], &signed["who"]),
        (&json!("corp:alice"), &json!("client"), &json!("corp:alice"))
    );
    for place in [
        gate.cli(&["audit", "tail", "-n", "1000"]),
        gate.said().join("\n"),
    ] {
        for secret in ["canary", &link, &alice, "eyJ"] {
            assert!(!place.contains(secret), "{place}");
        }
    }
}

/// Holds: ELIC-14
#[test]
fn t37_nobody_shows_that_he_is_another() {
    let Some(issuer) = Issuer::with(&json!({"people": {}})) else {
        return;
    };
    let far = Far::new();
    let gate = gate(&far, &issuer, SIGN_IN);
    known(&gate);
    let [alice, bob] = ["alice", "bob"].map(|name| token(&gate, &issuer, name));
    let (_, link) = page(&gate, &call(&gate, &alice, &json!({})), "corp:alice");
    let ann = key(&gate, "ann");
    let (_, of_key) = page(&gate, &call(&gate, &ann, &json!({})), "key:ann");
    assert_eq!(
        one(&gate, "who", &json!({"link": of_key})),
        json!({"by": "key"})
    );
    assert_eq!(
        one(&gate, "who", &json!({"link": link})),
        json!({"by": "issuer", "issuer": "corp"})
    );
    let begun = one(&gate, "show", &json!({"link": link}));
    assert!(
        begun["page"].as_str().unwrap().starts_with(&issuer.url),
        "{begun}"
    );
    let page_of = begun["page"].as_str().unwrap();
    // Whom a server names cannot have this issuer send anybody back to where its own answers are taken.
    let own = format!(
        "redirect_uri=http%3A%2F%2F127.0.0.1%3A{}%2Fsign-in%2Fshown&",
        gate.port
    );
    assert!(page_of.contains(&own), "{page_of}");
    let state = page_of.split("state=").nth(1).unwrap();
    let state = state.split('&').next().unwrap();
    let query = format!("code=x&state={state}&iss={}", issuer.url);
    let mut refused = 0;
    // Not with a link that is none or a key's; not with an answer of somebody else; a token is no key, and none of it
    // ends a sign-in at the server.
    for (step, lines, body) in [
        ("who", vec![], json!({"link": ""})),
        ("show", vec![], json!({"link": &link[1..]})),
        ("show", vec![], json!({"link": of_key})),
        (
            "shown",
            vec![],
            json!({"link": link, "query": query, "key": "x"}),
        ),
        (
            "shown",
            vec![],
            json!({"link": link, "query": "code=x", "key": begun["key"]}),
        ),
        ("end", vec![], json!({"query": query, "key": begun["key"]})),
    ] {
        let answer = post(&gate, step, &lines, &body);
        assert_eq!(answer.status, 409, "{step} {answer:?}");
        assert!(!answer.body.contains("\"page\""), "{answer:?}");
        refused += 1;
    }
    for token in [&alice, &bob] {
        let answer = post(&gate, "begin", &with(token), &json!({"link": link}));
        assert_eq!(answer.status, 401, "{answer:?}");
        refused += 1;
    }
    // A code that the issuer did not give brings nothing.
    let body = json!({"link": link, "query": query, "key": begun["key"]});
    let answer = post(&gate, "shown", &[], &body);
    assert_eq!(answer.status, 409, "{answer:?}");
    assert!(answer.body.contains("invalid_grant"), "{answer:?}");
    far.seen(|seen| assert_eq!((seen.accounts, seen.calls.len()), (1, 1)));
    println!(
        "T37, users of issuers: {} wrong uses refused, 0 sign-ins",
        refused + 1
    );
}

#[test]
fn without_a_client_at_the_issuer_its_callers_are_told_who_signs_in() {
    let Some(issuer) = Issuer::with(&json!({"people": {}})) else {
        return;
    };
    let far = Far::new();
    let gate = gate(&far, &issuer, "");
    known(&gate);
    let alice = token(&gate, &issuer, "alice");
    let told = call(&gate, &alice, &json!({})).to_string();
    assert!(
        told.contains("toolgate login far --caller corp:alice"),
        "{told}"
    );
}
