//! Arguments and results in the audit log.

use crate::pipeline_fixture::{PipelineFixture, item};
use serde_json::{Value, json};
use toolgate_core::{Outcome, Output};
use toolgate_policy::{
    AuditContentForm, OnOutboundSecret, OnSecret, OutboundSecrets, PerServer, SecretRedactor,
};

/// In two pieces, so that nobody finds one here.
fn token() -> String {
    ["gh", "p_k3R9vQ2mX7bT1nL5wZ8cF4hJ6gP0sYuEAq7K"].concat()
}

/// All that secrets could pass through lets them pass: what is not in the record is taken out for the record alone.
fn fixture(
    of_arguments: PerServer<AuditContentForm>,
    of_results: PerServer<AuditContentForm>,
) -> PipelineFixture {
    let mut fixture = PipelineFixture::new();
    let mut secrets = OutboundSecrets::default();
    secrets.found = PerServer::all(OnOutboundSecret::Pass);
    fixture.route.sanitizers.outbound_secrets = secrets;
    let mut redactor = SecretRedactor::default();
    redactor.on_secret = PerServer::all(OnSecret::Pass);
    fixture.route.sanitizers.secrets = redactor;
    fixture.route.audit_contents.arguments = of_arguments;
    fixture.route.audit_contents.results = of_results;
    fixture.handle(|_| {
        let text = format!("the token is {}, take care", token());
        Box::pin(async move { Ok(Outcome::Done(Output::text(&text))) })
    });
    fixture
}

async fn look(fixture: &PipelineFixture, arguments: Value) -> (Value, Value) {
    fixture.go(fixture.call("look", arguments)).await.unwrap();
    let last = |ev| fixture.events(ev).pop().unwrap();
    (last("call.begin"), last("call.end"))
}

#[tokio::test]
async fn only_digests_unless_it_is_asked_for() {
    let fixture = fixture(PerServer::default(), PerServer::default());
    let (begin, end) = look(&fixture, json!({"q": "plain"})).await;
    assert_eq!((&begin["args"], &end["res"]), (&Value::Null, &Value::Null));
    assert_eq!(begin["args_len"], json!(13));
    for mac in [&begin["args_mac"], &end["res_mac"]] {
        assert_eq!(mac.as_str().unwrap().len(), 64);
    }
    assert!(end["res_len"].as_u64().unwrap() > 60);
}

#[tokio::test]
async fn arguments_and_results_are_held_without_their_secrets() {
    let all = || PerServer::all(AuditContentForm::Redacted);
    let fixture = fixture(all(), all());
    let (begin, end) = look(&fixture, json!({"q": format!("find {}", token()), "n": 1})).await;
    assert_eq!(
        begin["args"],
        "{\"n\":1,\"q\":\"find [redacted:github-token]\"}"
    );
    let result: Value = serde_json::from_str(end["res"].as_str().unwrap()).unwrap();
    assert_eq!(
        result["content"][0]["text"],
        "the token is [redacted:github-token], take care"
    );
    // The service got it all, and no file has it.
    assert!(fixture.script.reached.lock().unwrap()[0].contains(&token()));
    let mut found = 0;
    for file in files(&fixture.dir) {
        let text = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
        assert!(!text.contains(&token()), "{}", file.display());
        found += text.matches("[redacted:github-token]").count();
    }
    assert_eq!(found, 2);
}

#[tokio::test]
async fn each_server_may_have_it_its_own_way() {
    let all = PerServer::all(AuditContentForm::Redacted);
    let fixture = fixture(
        all.clone().with("demo", AuditContentForm::Digest),
        PerServer::all(AuditContentForm::Digest).with("demo", AuditContentForm::Redacted),
    );
    let (begin, end) = look(&fixture, json!({"q": "plain"})).await;
    assert_eq!(begin["args"], Value::Null);
    assert!(end["res"].as_str().unwrap().starts_with("{\"content\":["));
}

#[tokio::test]
async fn a_refused_call_says_what_it_wanted() {
    let fixture = fixture(
        PerServer::all(AuditContentForm::Redacted),
        PerServer::default(),
    );
    fixture
        .go(fixture.call("add", json!({"a": "many"})))
        .await
        .unwrap_err();
    let deny = fixture.events("deny").pop().unwrap();
    assert_eq!(
        (&deny["srv"], &deny["tool"], &deny["args"]),
        (
            &json!("demo"),
            &json!("demo.add"),
            &json!("{\"a\":\"many\"}")
        )
    );
    assert_eq!(deny["args_mac"].as_str().unwrap().len(), 64);
    // What nobody offers has no schema that could say what is secret.
    fixture
        .go(fixture.call("nothing", json!({"a": 1})))
        .await
        .unwrap_err();
    let deny = fixture.events("deny").pop().unwrap();
    assert_eq!(
        (&deny["args"], &deny["args_len"]),
        (&Value::Null, &json!(7))
    );
}

#[tokio::test]
async fn what_a_schema_marks_and_what_is_too_long_is_not_held() {
    let mut fixture = fixture(
        PerServer::all(AuditContentForm::Redacted),
        PerServer::default(),
    );
    fixture.route.audit_contents.max_bytes = 64;
    let schema =
        json!({"type": "object", "properties": {"pin": {"type": "integer", "writeOnly": true}}});
    let look = |schema: &Value| json!({"name": "look", "inputSchema": schema, "annotations": {"readOnlyHint": true}});
    fixture.tools(vec![item(look(&schema))]);
    let (begin, _) = self::look(&fixture, json!({"pin": 4711})).await;
    assert_eq!(begin["args"], "{\"pin\":\"[redacted:schema]\"}");
    fixture.tools(vec![item(look(&json!({"type": "object"})))]);
    let (begin, _) = self::look(&fixture, json!({"q": "x".repeat(57)})).await;
    assert_eq!(begin["args"], "[omitted: 65 bytes]");
}

fn files(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(files(&path)),
            false => all.push(path),
        }
    }
    all
}
