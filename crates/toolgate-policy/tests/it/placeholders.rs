//! Placeholders of this program in arguments: they would replace what they stand for.

use crate::pipeline_fixture::PipelineFixture;
use serde_json::{Value, json};
use toolgate_core::{Error, InputRequestKind, Outcome};
use toolgate_policy::{OnPlaceholder, PerServer};
use toolgate_protocol::placeholder;

async fn write(
    found: OnPlaceholder,
    arguments: Value,
) -> (PipelineFixture, Result<Outcome, Error>) {
    let mut fixture = PipelineFixture::new();
    fixture.route.sanitizers.placeholders.found = PerServer::all(found);
    fixture.route.arguments.allow_unknown = PerServer::all(true);
    let outcome = fixture.go(fixture.call("look", arguments)).await;
    (fixture, outcome)
}

fn reasons(outcome: Result<Outcome, Error>) -> String {
    let Ok(Outcome::InputRequired(questions)) = outcome else {
        panic!("{outcome:?}")
    };
    let InputRequestKind::Approve(approval) = &questions.requests[0].kind else {
        panic!("{questions:?}")
    };
    approval.reasons.join(" ")
}

#[tokio::test]
async fn a_placeholder_that_would_be_written_back_asks() {
    for (arguments, at) in [
        (
            json!({"text": "user = \"me\"\npassword = [redacted:password]\n"}),
            "/text ([redacted:",
        ),
        (
            json!({"a": {"list": ["x", placeholder::omitted(70_000)]}}),
            "/a/list/1 ([omitted: ",
        ),
        (
            json!({"edits": [{"new": placeholder::withheld("it is no PNG")}]}),
            "/edits/0/new ([withheld",
        ),
        (
            json!({"text": placeholder::untrusted("web", "c-1", "x")}),
            "/text ([text of the server",
        ),
        (
            json!({"text": placeholder::unsupported_audio("audio/wav")}),
            "/text ([audio of type",
        ),
        (
            json!({"text": placeholder::EDITED}),
            "/text ([a person changed",
        ),
        (
            json!({"[redacted:github-token]": 1}),
            "the name of an argument ([redacted:",
        ),
    ] {
        let (fixture, outcome) = write(OnPlaceholder::Ask, arguments.clone()).await;
        let reasons = reasons(outcome);
        assert!(reasons.contains(at), "{arguments}: {reasons}");
        assert_eq!(fixture.reached(), 0);
    }
}

/// The bracket may be escaped in the text of the message.
#[tokio::test]
async fn an_escape_does_not_hide_a_placeholder() {
    let mut fixture = PipelineFixture::new();
    fixture.route.arguments.allow_unknown = PerServer::all(true);
    let mut call = fixture.call("look", json!({}));
    let raw = br#"{"text": "\u005bredacted\u003apassword]"}"#.to_vec();
    let json = toolgate_core::Json::read(raw, &Default::default()).unwrap();
    call.invocation.arguments = toolgate_core::CallArguments::new(json);
    assert!(reasons(fixture.go(call).await).contains("/text"));
}

#[tokio::test]
async fn the_setting_denies_or_allows_placeholders() {
    let arguments = || json!({"text": "[redacted:password]"});
    let (fixture, outcome) = write(OnPlaceholder::Deny, arguments()).await;
    let text = outcome.unwrap_err().public_message().to_owned();
    assert!(
        text.starts_with("refused: the arguments contain redaction placeholders"),
        "{text}"
    );
    assert!(text.contains("setting `placeholders`"), "{text}");
    assert_eq!(fixture.reached(), 0);
    let (fixture, outcome) = write(OnPlaceholder::Allow, arguments()).await;
    assert!(outcome.is_ok() && fixture.reached() == 1);
}

#[tokio::test]
async fn ordinary_brackets_pass() {
    let text =
        "a[0] = 1; [omitted: for brevity] [link to the docs](https://example.com) [REDACTED]";
    let (fixture, outcome) = write(OnPlaceholder::Ask, json!({ "text": text })).await;
    assert!(outcome.is_ok() && fixture.reached() == 1);
}
