//! Callers behind one address, as a proxy makes them, and what each is told who is refused where an issuer is.

use crate::help::{Gate, Setup};
use crate::keys::created;
use crate::many_tokens::Issuer;
use crate::oauth::{RESOURCE, bearer, call};
use serde_json::json;
use std::sync::atomic::Ordering::Relaxed;

fn gate(issuer: &Issuer, limits: &str) -> Gate {
    let program = env!("CARGO_BIN_EXE_toolgate");
    let config = format!(
        "[limits]\n{limits}[server.demo]\ncommand = [{program:?}, \"demo-server\"]\ntrust_annotations = true\n\
         [auth]\nresource = \"{RESOURCE}\"\n\
         [auth.issuer.corp]\nurl = \"{}\"\nintrospect = true\nclient_id = \"gateway\"\nclient_secret = {{ env = \"CORP_SECRET\" }}\n\
         [[auth.scope]]\ntools = [\"demo.slow_count\"]\nscopes = [\"demo:write\"]\n",
        issuer.url
    );
    let gate = Setup::config(config).env("CORP_SECRET", "secret-of-gateway-0123456789");
    gate.start()
}

fn add(gate: &Gate, lines: &[String]) -> crate::help::Response {
    call(gate.port, lines, "demo_add", json!({"a": 1, "b": 2}))
}

/// One who shows wrong tokens takes from others of his address only what makes us ask an issuer.
#[test]
fn one_who_shows_wrong_tokens_does_not_shut_out_those_behind_his_address() {
    let issuer = Issuer::start();
    let gate = gate(&issuer, "auth_failures = 3\nintrospection_seconds = 300\n");
    let signed = |n| bearer(&issuer.token(n));
    let status = |lines: &[String]| add(&gate, lines).status;
    assert_eq!(status(&bearer("good-1")), 200);
    assert_eq!(issuer.asked.load(Relaxed), 1);
    for expected in [401, 401, 401, 429, 429] {
        assert_eq!(status(&bearer(&format!("{}A", issuer.token(1)))), expected);
    }
    assert_eq!(status(&signed(2)), 200, "what is checked here");
    assert_eq!(
        status(&bearer("good-1")),
        200,
        "what the issuer said lately"
    );
    for _ in 0..3 {
        let unasked = add(&gate, &bearer("good-2"));
        assert_eq!(unasked.status, 429, "{unasked:?}");
        assert_eq!(unasked.header("retry-after"), Some("60"));
        assert!(unasked.body.contains("try again in a minute"));
    }
    assert_eq!(issuer.asked.load(Relaxed), 1, "nobody was asked");
    assert_eq!(status(&bearer(&created(&gate, "ci"))), 200);
    let denied = gate.audit();
    let denied = denied.iter().filter(|r| r["ev"] == "deny").count();
    assert_eq!(denied, 4, "three wrong ones, and that there were too many");
}

/// Holds: AUTH-05, AUTH-14
#[test]
fn every_refusal_says_where_to_get_a_token_where_there_is_an_issuer() {
    let issuer = Issuer::start();
    let gate = gate(&issuer, "");
    let key = created(&gate, "ci");
    let challenge = |error: &str| {
        format!(
            "Bearer resource_metadata=\"https://tools.example.com/.well-known/oauth-protected-resource/mcp\"{error}, scope=\"demo:write\""
        )
    };
    let invalid = challenge(", error=\"invalid_token\"");
    let wrong = |lines: &[String], challenge: &str, told: &str| {
        let response = add(&gate, lines);
        let malformed = challenge.contains("invalid_request");
        assert_eq!(
            response.status,
            if malformed { 400 } else { 401 },
            "{response:?}"
        );
        assert_eq!(response.header("www-authenticate"), Some(challenge));
        assert!(response.body.contains(told), "{response:?}");
    };
    wrong(&[], &challenge(""), "a token is required");
    wrong(&bearer("x"), &invalid, "sign in again");
    wrong(
        &bearer(&format!("tg_{}", "0".repeat(64))),
        &invalid,
        "this key is unknown",
    );
    let two = [bearer(&key), bearer(&key)].concat();
    wrong(
        &two,
        &challenge(", error=\"invalid_request\""),
        "send it once",
    );
    // What is ours is shown to no issuer, however it comes.
    let asked = issuer.asked.load(Relaxed);
    assert_eq!(asked, 1);
    for other in ["DPoP", "dpop  ", "Token"] {
        let with = [format!("Authorization: {other} {key}")];
        let known = other.eq_ignore_ascii_case("token");
        let challenge = if known {
            challenge("")
        } else {
            invalid.clone()
        };
        wrong(
            &with,
            &challenge,
            if known {
                "a token is required"
            } else {
                "Bearer KEY"
            },
        );
    }
    assert_eq!(issuer.asked.load(Relaxed), asked);
    gate.cli(&["keys", "revoke", "ci"]);
    wrong(&bearer(&key), &invalid, "this key was revoked");
}
