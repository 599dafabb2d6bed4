//! No text planted upstream reaches the caller uncleaned, on any channel.

use crate::pipeline_fixture::{PipelineFixture, item};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use toolgate_core::{
    CallReporter, Content, Error, ErrorKind, EventSink, InputRequest, InputRequestKind,
    InputRequests, Json, ListRequest, LogMessage, Outcome, Output, Progress, ReporterEvent,
    Service, ToolResult,
};

const DIRTY: &str = "a\u{1b}[31mb\u{200b}c\u{202e}d\u{e0041}e\r";
const CLEAN: &str = "abcde\n";

fn dirty() -> Json {
    Json::from_value(&json!({"text": DIRTY, "type": "text"}))
}

fn is_clean(json: &Json) -> bool {
    json.get("text").and_then(|t| t.string()).as_deref() == Some(CLEAN)
}

async fn outcome(
    make: impl Fn() -> Result<Outcome, Error> + Send + Sync + 'static,
) -> Result<Outcome, Error> {
    let fixture = PipelineFixture::new();
    fixture.handle(move |_| {
        let made = make();
        Box::pin(async { made })
    });
    fixture.go(fixture.call("look", json!({}))).await
}

/// Holds: TOOL-44, PROM-05
#[tokio::test]
async fn results() {
    let made = || {
        let content = vec![Content::read(dirty()).unwrap()];
        Ok(Outcome::Done(Output::Tool(ToolResult {
            content,
            structured: Some(dirty()),
            is_error: false,
            meta: Some(dirty()),
            ..ToolResult::default()
        })))
    };
    let Ok(Outcome::Done(output)) = outcome(made).await else {
        panic!()
    };
    let output = output.into_tool().unwrap();
    assert!(is_clean(&output.content[0].json));
    assert!(is_clean(&output.structured.unwrap()) && is_clean(&output.meta.unwrap()));
}

#[tokio::test]
async fn errors_and_problems() {
    let problem = || toolgate_core::SchemaViolation::new(DIRTY, DIRTY, DIRTY);
    let error = outcome(move || {
        Err(Error::new(
            ErrorKind::InvalidArguments(vec![problem()]),
            DIRTY,
        ))
    })
    .await
    .unwrap_err();
    assert_eq!(error.public_message(), CLEAN);
    let ErrorKind::InvalidArguments(problems) = error.kind() else {
        panic!()
    };
    assert_eq!(
        (
            problems[0].path.as_str(),
            problems[0].expected.as_str(),
            problems[0].received.as_str()
        ),
        (CLEAN, CLEAN, CLEAN)
    );
}

#[tokio::test]
async fn questions() {
    let made = || {
        let asks = vec![
            InputRequest {
                key: "k".into(),
                kind: InputRequestKind::Elicit(dirty()),
            },
            InputRequest {
                key: "s".into(),
                kind: InputRequestKind::Sample(dirty()),
            },
        ];
        Ok(Outcome::InputRequired(InputRequests::new(asks)))
    };
    let Ok(Outcome::InputRequired(questions)) = outcome(made).await else {
        panic!()
    };
    for ask in &questions.requests {
        let (InputRequestKind::Elicit(params) | InputRequestKind::Sample(params)) = &ask.kind
        else {
            panic!()
        };
        assert!(is_clean(params));
    }
    let named = || {
        let asks = vec![InputRequest {
            key: "k\u{200b}".into(),
            kind: InputRequestKind::Roots,
        }];
        Ok(Outcome::InputRequired(InputRequests::new(asks)))
    };
    outcome(named).await.unwrap_err();
}

#[derive(Default)]
struct Heard(Mutex<Vec<ReporterEvent>>);

impl EventSink for Heard {
    fn report(&self, event: ReporterEvent) {
        self.0.lock().unwrap().push(event);
    }
}

#[tokio::test]
async fn progress_and_log() {
    let fixture = PipelineFixture::new();
    fixture.handle(|call| {
        Box::pin(async move {
            call.reporter.send(ReporterEvent::Progress(Progress {
                progress: 1.0,
                total: None,
                message: Some(DIRTY.into()),
            }));
            let mut log_message = LogMessage::new(DIRTY, dirty());
            log_message.logger = Some(DIRTY.into());
            call.reporter.send(ReporterEvent::Log(log_message));
            Ok(Outcome::Done(Output::text("x")))
        })
    });
    let heard = Arc::new(Heard::default());
    let mut call = fixture.call("look", json!({}));
    call.reporter = CallReporter::new(heard.clone());
    fixture.go(call).await.unwrap();
    let events = heard.0.lock().unwrap();
    let ReporterEvent::Progress(progress) = &events[0] else {
        panic!()
    };
    assert_eq!(progress.message.as_deref(), Some(CLEAN));
    let ReporterEvent::Log(log) = &events[1] else {
        panic!()
    };
    assert_eq!(
        (log.level.as_str(), log.logger.as_deref()),
        (CLEAN, Some(CLEAN))
    );
    assert!(is_clean(&log.data));
}

async fn listed(definition: Value) -> Option<String> {
    let fixture = PipelineFixture::new();
    fixture.tools(vec![item(definition)]);
    let catalog = fixture
        .pipeline()
        .list(ListRequest::all(
            fixture.caller.clone(),
            toolgate_core::ItemKind::Tool,
        ))
        .await
        .unwrap();
    catalog
        .items()
        .first()
        .map(|item| item.def.json().as_str().to_owned())
}

#[tokio::test]
async fn definitions() {
    let plain = |name: &str, description: &str, schema: Value| json!({"name": name, "description": description, "inputSchema": schema});
    let object = || json!({"type": "object"});
    let described =
        json!({"type": "object", "properties": {"a": {"type": "string", "description": DIRTY}}});
    let clean = listed(plain("t", DIRTY, described)).await.unwrap();
    assert!(!clean.contains('\u{202e}') && clean.contains("abcde"));
    assert_eq!(listed(plain("t\u{200b}", "x", object())).await, None);
    assert_eq!(
        listed(plain(
            "t",
            "x",
            json!({"type": "object", "properties": {"a\u{200b}": {}}})
        ))
        .await,
        None
    );
    assert_eq!(
        listed(plain(
            "t",
            "x",
            json!({"type": "object", "properties": {"a": {"enum": ["b\u{200b}"]}}})
        ))
        .await,
        None
    );
    assert_eq!(
        listed(plain(
            "t",
            "x",
            json!({"type": "object", "properties": {"a": {"pattern": "\u{202e}"}}})
        ))
        .await,
        None
    );
}

#[tokio::test]
async fn keys_of_results() {
    let fixture = PipelineFixture::new();
    for (structured, expected) in [
        (json!({"\u{feff}id": 1}), Some("{\"id\":1}")),
        (json!({"\u{feff}id": 1, "id": 2}), None),
    ] {
        fixture.handle(move |_| {
            let output = Output::Tool(ToolResult {
                structured: Some(Json::from_value(&structured)),
                ..ToolResult::text("x")
            });
            Box::pin(async { Ok(Outcome::Done(output)) })
        });
        match (fixture.go(fixture.call("look", json!({}))).await, expected) {
            (Ok(Outcome::Done(output)), Some(text)) => {
                assert_eq!(
                    output.into_tool().unwrap().structured.unwrap().as_str(),
                    text
                )
            }
            (Err(error), None) => assert!(error.public_message().contains("invisible characters")),
            (other, _) => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn instructions() {
    let catalog = toolgate_core::Catalog::with_missing_servers(
        Vec::new(),
        Vec::new(),
        Some(DIRTY.to_owned()),
    );
    struct Fixed(toolgate_core::Catalog);
    impl Service for Fixed {
        fn list(
            &self,
            _: ListRequest,
        ) -> toolgate_core::BoxFuture<'_, Result<toolgate_core::Catalog, Error>> {
            Box::pin(async { Ok(self.0.clone()) })
        }
        fn call(
            &self,
            _: toolgate_core::Call,
        ) -> toolgate_core::BoxFuture<'_, Result<Outcome, Error>> {
            unreachable!()
        }
        fn changes(
            &self,
            _: toolgate_core::ChangeFilter,
        ) -> toolgate_core::BoxFuture<'_, Result<toolgate_core::ChangeStream, Error>> {
            unreachable!()
        }
    }
    let fixture = PipelineFixture::new();
    let pipeline = fixture.route.over(Arc::new(Fixed(catalog)));
    let listed = pipeline
        .list(ListRequest::all(
            fixture.caller.clone(),
            toolgate_core::ItemKind::Tool,
        ))
        .await
        .unwrap();
    assert_eq!(listed.instructions().as_deref(), Some(CLEAN));
}

/// An agent that writes back what it read must not convert a file.
#[tokio::test]
async fn the_line_ends_of_a_file_come_back_and_the_record_counts_what_does_not() {
    for (text, clean, removed) in [
        ("a\r\nb\u{c}\r\n", "a\r\nb\u{c}\r\n", None),
        ("\u{feff}a\r\n\u{e0b0}", "\u{feff}a\r\n\u{e0b0}", None),
        ("a\u{200b}\r\n\u{1b}[31mb", "a\r\nb", Some(6)),
    ] {
        let fixture = PipelineFixture::new();
        fixture.handle(move |_| Box::pin(async move { Ok(Outcome::Done(Output::text(text))) }));
        let Ok(Outcome::Done(output)) = fixture.go(fixture.call("look", json!({}))).await else {
            panic!()
        };
        let block = output
            .into_tool()
            .unwrap()
            .content
            .remove(0)
            .json
            .to_value();
        assert_eq!(block["text"], clean);
        let end = fixture.events("call.end")[0].clone();
        assert_eq!(
            end.get("removed_chars").and_then(|n| n.as_u64()),
            removed,
            "{end}"
        );
    }
}
