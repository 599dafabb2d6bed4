//! Secrets: redacted on every channel, counted in the record, seen on their way out.

use crate::pipeline_fixture::{PipelineFixture, item};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use toolgate_core::{
    CallReporter, Content, Error, ErrorKind, EventSink, InputRequest, InputRequestKind,
    InputRequests, Json, ListRequest, LogMessage, Outcome, Output, Progress, ReporterEvent,
    Service, ToolResult,
};
use toolgate_policy::{OnOutboundSecret, OnSecret, OutboundSecrets, PerServer, SecretRedactor};

/// In two pieces, so that nobody finds one here.
fn token() -> String {
    ["gh", "p_k3R9vQ2mX7bT1nL5wZ8cF4hJ6gP0sYuEAq7K"].concat()
}

/// Characters that must not come through, in the middle of a secret.
fn planted() -> String {
    let token = token();
    format!(
        "\u{1b}[31msee {}\u{200b}{}\u{202e} é 日本語 👩‍👧",
        &token[..9],
        &token[9..]
    )
}

const CLEAN: &str = "see [redacted:github-token] é 日本語 👩‍👧";

fn json_of(text: &str) -> Json {
    Json::from_value(&json!({"type": "text", "text": text, "more": {"list": [text], "n": 1.5}}))
}

#[derive(Default)]
struct Heard(Mutex<Vec<ReporterEvent>>);

impl EventSink for Heard {
    fn report(&self, event: ReporterEvent) {
        self.0.lock().unwrap().push(event);
    }
}

/// Calls a tool and returns its outcome and the reported events.
async fn through(
    fixture: &PipelineFixture,
    name: &str,
) -> (Result<Outcome, Error>, Vec<ReporterEvent>) {
    let heard = Arc::new(Heard::default());
    let mut call = fixture.call(name, json!({}));
    call.reporter = CallReporter::new(heard.clone());
    let outcome = fixture.go(call).await;
    let events = std::mem::take(&mut *heard.0.lock().unwrap());
    (outcome, events)
}

fn told(outcome: &Result<Outcome, Error>) -> Vec<String> {
    match outcome {
        Ok(Outcome::Done(Output::Tool(result))) => {
            let json = [&result.structured, &result.meta];
            let json = json.into_iter().flatten().map(|j| j.to_value().to_string());
            let blocks = result.content.iter().map(|c| c.json.to_value().to_string());
            blocks.chain(json).collect()
        }
        Ok(Outcome::InputRequired(questions)) => {
            let text = |ask: &InputRequest| match &ask.kind {
                InputRequestKind::Elicit(params) | InputRequestKind::Sample(params) => {
                    params.to_value().to_string()
                }
                _ => String::new(),
            };
            questions.requests.iter().map(text).collect()
        }
        Err(error) => {
            let problems = match error.kind() {
                ErrorKind::InvalidArguments(problems) => problems.clone(),
                _ => Vec::new(),
            };
            let problems = problems.iter().map(|p| p.json().to_value().to_string());
            problems
                .chain([error.public_message().to_owned()])
                .collect()
        }
        Ok(other) => panic!("{other:?}"),
    }
}

fn heard(events: &[ReporterEvent]) -> Vec<String> {
    let text = |event: &ReporterEvent| match event {
        ReporterEvent::Progress(p) => p.message.clone().unwrap(),
        ReporterEvent::Log(log) => format!("{:?} {}", log.logger, log.data.to_value()),
    };
    events.iter().map(text).collect()
}

fn assert_clean(texts: &[String]) {
    assert!(!texts.is_empty());
    for text in texts {
        assert!(text.contains(CLEAN), "{text}");
        assert!(
            !text.contains(&token()[4..12]) && !text.contains('\u{1b}'),
            "{text}"
        );
    }
}

/// T46, T49: what is planted on a channel comes through on none.
#[tokio::test]
async fn no_channel_lets_a_secret_through() {
    let problem = || toolgate_core::SchemaViolation::new(planted(), planted(), planted());
    type Make = Box<dyn Fn() -> Result<Outcome, Error> + Send + Sync>;
    let made: [Make; 4] = [
        Box::new(|| {
            Ok(Outcome::Done(Output::Tool(ToolResult {
                content: vec![Content::read(json_of(&planted())).unwrap()],
                structured: Some(json_of(&planted())),
                is_error: false,
                meta: Some(json_of(&planted())),
                ..ToolResult::default()
            })))
        }),
        Box::new(|| Ok(Outcome::Done(Output::error(&planted())))),
        Box::new(move || {
            Err(Error::new(
                ErrorKind::InvalidArguments(vec![problem()]),
                planted(),
            ))
        }),
        Box::new(|| {
            let ask = |key: &str, kind: fn(Json) -> InputRequestKind| InputRequest {
                key: key.into(),
                kind: kind(json_of(&planted())),
            };
            let asks = vec![
                ask("a", InputRequestKind::Elicit),
                ask("b", InputRequestKind::Sample),
            ];
            Ok(Outcome::InputRequired(InputRequests::new(asks)))
        }),
    ];
    let mut channels = 0;
    for make in made {
        let fixture = PipelineFixture::new();
        fixture.handle(move |call| {
            let progress = Progress {
                progress: 1.0,
                total: None,
                message: Some(planted()),
            };
            call.reporter.send(ReporterEvent::Progress(progress));
            let data = json_of(&planted());
            let mut log = LogMessage::new("info", data);
            log.logger = Some(planted());
            call.reporter.send(ReporterEvent::Log(log));
            let made = make();
            Box::pin(async { made })
        });
        let (outcome, events) = through(&fixture, "look").await;
        assert_clean(&told(&outcome));
        assert_clean(&heard(&events));
        channels += told(&outcome).len() + heard(&events).len();
        let record = fixture
            .records()
            .iter()
            .map(Value::to_string)
            .collect::<String>();
        assert!(!record.contains(&token()[4..12]), "{record}");
        assert!(
            fixture
                .events("call.end")
                .iter()
                .all(|r| r["redactions"]["github-token"].as_u64() > Some(3))
        );
    }
    println!("T46: {channels} places on every channel, 0 planted strings came through");
}

#[tokio::test]
async fn definitions_hold_no_secret() {
    let fixture = PipelineFixture::new();
    let tool = |name: &str, schema: Value| {
        item(json!({"name": name, "description": planted(), "inputSchema": schema}))
    };
    let plain = json!({"type": "object", "properties": {"password": {"type": "string", "default": token()}}});
    let fixed = json!({"type": "object", "properties": {"key": {"const": token()}}});
    fixture.tools(vec![tool("plain", plain), tool("fixed", fixed)]);
    let list = ListRequest::all(fixture.caller.clone(), toolgate_core::ItemKind::Tool);
    let catalog = fixture.pipeline().list(list).await.unwrap();
    let names: Vec<&str> = catalog.items().iter().map(|i| i.def.name()).collect();
    assert_eq!(names, ["plain"], "what decides must not be changed");
    let text = catalog.items()[0].def.json().as_str();
    assert!(text.contains("see [redacted:github-token]") && !text.contains(&token()));
}

#[tokio::test]
async fn each_server_has_its_setting() {
    for (found, passes, counted) in [
        (OnSecret::Redact, false, 1),
        (OnSecret::Warn, true, 1),
        (OnSecret::Pass, true, 0),
    ] {
        let mut fixture = PipelineFixture::new();
        let mut redactor = SecretRedactor::default();
        redactor.on_secret = PerServer::all(OnSecret::Redact).with("demo", found);
        fixture.route.sanitizers.secrets = redactor;
        fixture.handle(|_| Box::pin(async { Ok(Outcome::Done(Output::text(&token()))) }));
        let (outcome, _) = through(&fixture, "look").await;
        assert_eq!(told(&outcome)[0].contains(&token()), passes, "{found:?}");
        let count = fixture.events("call.end")[0]["redactions"]["github-token"].as_u64();
        assert_eq!(count.unwrap_or_default(), counted, "{found:?}");
    }
}

#[tokio::test]
async fn a_redaction_that_breaks_a_schema_is_named_as_ours() {
    let fixture = PipelineFixture::new();
    let schema =
        json!({"type": "object", "properties": {"key": {"type": "string", "pattern": "^gh"}}});
    let mut def =
        json!({"name": "look", "inputSchema": {"type": "object"}, "outputSchema": schema});
    def["annotations"] = json!({"readOnlyHint": true});
    fixture.tools(vec![item(def)]);
    fixture.handle(|_| {
        let structured = Some(Json::from_value(&json!({"key": token()})));
        let result = ToolResult {
            structured,
            ..ToolResult::default()
        };
        Box::pin(async { Ok(Outcome::Done(Output::Tool(result))) })
    });
    let error = through(&fixture, "look").await.0.unwrap_err();
    assert!(
        error.public_message().contains("Toolgate redacted"),
        "{}",
        error.public_message()
    );
    assert!(!error.public_message().contains(&token()));
}

/// Calls a tool with these arguments under a policy for outbound secrets.
async fn out(
    found: OnOutboundSecret,
    arguments: Value,
) -> (PipelineFixture, Result<Outcome, Error>) {
    let mut fixture = PipelineFixture::new();
    let mut secrets = OutboundSecrets::default();
    secrets.found = PerServer::all(found);
    fixture.route.sanitizers.outbound_secrets = secrets;
    fixture.route.arguments.allow_unknown = PerServer::all(true);
    let call = fixture.call("look", arguments);
    let outcome = fixture.go(call).await;
    (fixture, outcome)
}

#[tokio::test]
async fn secrets_do_not_leave_unasked() {
    let arguments = || json!({"a": {"list": ["x", token()]}, "password": "hunter2!"});
    let (fixture, outcome) = out(OnOutboundSecret::Ask, arguments()).await;
    let Ok(Outcome::InputRequired(questions)) = outcome else {
        panic!("{outcome:?}")
    };
    let InputRequestKind::Approve(approval) = &questions.requests[0].kind else {
        panic!()
    };
    let reason = approval.reasons.join(" ");
    assert!(reason.contains("/a/list/1 (github-token)"), "{reason}");
    assert!(reason.contains("/password (secret-field)"), "{reason}");
    assert!(
        !reason.contains(&token()) && !reason.contains("hunter2"),
        "{reason}"
    );
    assert_eq!(fixture.reached(), 0);

    let (fixture, outcome) = out(OnOutboundSecret::Deny, arguments()).await;
    let text = outcome.unwrap_err().public_message().to_owned();
    assert!(
        text.starts_with("refused: the arguments contain a possible secret"),
        "{text}"
    );
    assert_eq!(fixture.reached(), 0);

    let (fixture, outcome) = out(OnOutboundSecret::Warn, arguments()).await;
    assert!(outcome.is_ok());
    let trail =
        fixture.events("call.end")[0].to_string() + &fixture.events("call.begin")[0].to_string();
    assert!(
        trail.contains("/a/list/1 (github-token)") && !trail.contains(&token()),
        "{trail}"
    );

    let (fixture, outcome) = out(OnOutboundSecret::Pass, arguments()).await;
    assert!(outcome.is_ok() && fixture.reached() == 1);
}

#[tokio::test]
async fn a_secret_as_a_name_is_not_named() {
    let (_, outcome) = out(OnOutboundSecret::Deny, json!({ token(): 1 })).await;
    let text = outcome.unwrap_err().public_message().to_owned();
    assert!(
        text.contains("github-token") && !text.contains(&token()),
        "{text}"
    );
}
