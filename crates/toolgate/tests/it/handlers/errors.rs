//! Error types of handlers: what the model sees of them, and what the operator sees.

use super::peer::{NEWEST_REVISION, Peer};
use serde_json::json;
use std::{
    error::Error,
    fmt,
    num::ParseIntError,
    sync::{Arc, Mutex},
};
use toolgate::{
    Cx, HandlerExit, Prompt, Resource, ResourceTemplate, Server, Tool, ToolError, prompt, tool,
};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

/// Error with two sources: the text of the last one is the secret of these tests.
#[derive(Debug)]
struct StoreError(ConnectError);

#[derive(Debug)]
struct ConnectError(ParseIntError);

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the store failed")
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot connect to db.internal")
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

impl Error for ConnectError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

fn store() -> Result<String, StoreError> {
    let port = "port".parse::<u16>().map_err(ConnectError);
    port.map(|port| port.to_string()).map_err(StoreError)
}

const CHAIN: &str =
    "the store failed: cannot connect to db.internal: invalid digit found in string";

#[tool]
fn typed() -> Result<String, StoreError> {
    store()
}

#[tool]
async fn propagated() -> Result<String, HandlerExit> {
    Ok(store()?)
}

#[tool]
fn boxed() -> Result<String, Box<dyn Error + Send + Sync>> {
    Ok(store()?)
}

#[tool]
fn boxed_again() -> Result<String, HandlerExit> {
    Ok(boxed::call()?)
}

#[tool]
fn replaced() -> Result<String, ToolError> {
    store().map_err(|error| ToolError::new("try again later").with_source(error))
}

#[tool]
fn shown() -> Result<String, ToolError> {
    store().map_err(ToolError::show_sources)
}

#[tool]
fn text() -> Result<String, String> {
    Err("a text".to_owned())
}

#[tool]
fn literal() -> Result<String, &'static str> {
    Err("a literal")
}

#[prompt]
fn coded() -> Result<String, ToolError> {
    Err(ToolError::code(7001, "there is no greeting today"))
}

#[prompt]
fn coded_boxed() -> Result<String, Box<dyn Error + Send + Sync>> {
    Ok(coded::call()?)
}

#[prompt]
fn coded_exit() -> Result<String, HandlerExit> {
    Ok(coded_boxed::call()?)
}

#[prompt]
fn greeting() -> Result<String, StoreError> {
    store()
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct NoArguments {}

/// Tools made with [`Tool::new`] and [`Tool::dynamic`] that fail as the functions above.
fn closures() -> [Tool; 5] {
    let schema = || json!({"type": "object"});
    [
        Tool::new("new_typed", |_: NoArguments, _: Cx| async { store() }),
        Tool::new("new_boxed", |_: NoArguments, _: Cx| async { boxed::call() }),
        Tool::new("new_exit", |_: NoArguments, _: Cx| async {
            Ok::<_, HandlerExit>(store()?)
        }),
        Tool::dynamic("new_text", schema(), |_, _| async { text::call() }),
        Tool::dynamic("new_literal", schema(), |_, _| async { literal::call() }),
    ]
}

async fn peer() -> Peer {
    let mut server = Server::new("errors", "1")
        .tool(typed)
        .tool(propagated)
        .tool(boxed)
        .tool(boxed_again)
        .tool(replaced)
        .tool(shown)
        .tool(text)
        .tool(literal)
        .prompt(coded)
        .prompt(coded_boxed)
        .prompt(coded_exit)
        .prompt(Prompt::new("coded_new", |_, _| async { coded::call() }))
        .prompt(greeting)
        .prompt(Prompt::new("late", |_, _| async { store() }))
        .resource(Resource::new("note:///a", "a", |_| async { store() }))
        .template(ResourceTemplate::new("note:///b/{id}", "b", |_, _| async {
            store()
        }));
    for tool in closures() {
        server = server.tool(tool);
    }
    Peer::open(&server.build().unwrap(), NEWEST_REVISION, json!({})).await
}

/// Calls a tool and returns the text of its tool error.
async fn failure(peer: &mut Peer, name: &str) -> String {
    let params = json!({"name": name, "arguments": {}});
    let result = peer.result("tools/call", params).await;
    assert_eq!(result["isError"], true, "{name}: {result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn sources_of_an_error_do_not_reach_the_model() {
    let mut peer = peer().await;
    for name in [
        "typed",
        "propagated",
        "boxed",
        "boxed_again",
        "new_typed",
        "new_boxed",
        "new_exit",
    ] {
        let text = failure(&mut peer, name).await;
        assert_eq!(text, "the store failed", "{name}");
    }
    assert_eq!(failure(&mut peer, "replaced").await, "try again later");
    for (method, params) in [
        ("prompts/get", json!({"name": "greeting"})),
        ("prompts/get", json!({"name": "late"})),
        ("resources/read", json!({"uri": "note:///a"})),
        ("resources/read", json!({"uri": "note:///b/1"})),
    ] {
        let error = peer.error(method, params).await;
        assert_eq!(error["message"], "the store failed", "{method}");
    }
    let all = peer.texts().concat();
    assert!(all.contains("the store failed"));
    assert!(!all.contains("db.internal") && !all.contains("invalid digit"));
}

#[tokio::test]
async fn show_sources_adds_them_to_the_text() {
    assert_eq!(failure(&mut peer().await, "shown").await, CHAIN);
}

#[tokio::test]
async fn texts_are_error_types() {
    let mut peer = peer().await;
    assert_eq!(failure(&mut peer, "text").await, "a text");
    assert_eq!(failure(&mut peer, "literal").await, "a literal");
    assert_eq!(failure(&mut peer, "new_text").await, "a text");
    assert_eq!(failure(&mut peer, "new_literal").await, "a literal");
}

#[tokio::test]
async fn a_tool_error_keeps_its_kind() {
    let mut peer = peer().await;
    for name in ["coded", "coded_boxed", "coded_exit", "coded_new"] {
        let error = peer.error("prompts/get", json!({"name": name})).await;
        assert_eq!(error["code"], 7001, "{name}");
        assert_eq!(error["message"], "there is no greeting today", "{name}");
    }
}

/// Events of handlers, as their fields in text.
#[derive(Clone, Default)]
struct HandlerEvents(Arc<Mutex<Vec<String>>>);

struct FieldWriter(String);

impl Visit for FieldWriter {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0 += &format!("{}={value:?} ", field.name());
    }
}

impl Subscriber for HandlerEvents {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "toolgate::handlers"
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut writer = FieldWriter(String::new());
        event.record(&mut writer);
        self.0.lock().unwrap().push(writer.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[tokio::test]
async fn sources_are_logged_for_the_operator() {
    let events = HandlerEvents::default();
    let _guard = tracing::subscriber::set_default(events.clone());
    let mut peer = peer().await;
    failure(&mut peer, "typed").await;
    failure(&mut peer, "replaced").await;
    failure(&mut peer, "text").await;
    let logged = events.0.lock().unwrap().clone();
    let [typed, replaced] = &logged[..] else {
        panic!("one event for each error with sources: {logged:?}");
    };
    let (_, sources) = CHAIN.split_once(": ").unwrap();
    assert!(typed.contains(&format!("sources=\"{sources}\"")), "{typed}");
    assert!(replaced.contains(CHAIN), "{replaced}");
}

/// Type whose schema is a string of any kind, but which accepts only colors.
struct Color;

impl<'de> serde::Deserialize<'de> for Color {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Color, D::Error> {
        let text = String::deserialize(from)?;
        let received = serde::de::Unexpected::Str(&text);
        Err(serde::de::Error::invalid_value(received, &"a color"))
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Paint {
    #[schemars(with = "String")]
    #[serde(rename = "color")]
    _color: Color,
}

/// `serde` quotes the received value, which may be a secret.
#[tokio::test]
async fn an_argument_of_the_wrong_type_is_not_quoted() {
    let paint = Tool::new("paint", |_: Paint, _| async {
        Ok::<_, HandlerExit>("done")
    });
    let draw = Prompt::typed("draw", |_: Paint, _| async {
        Ok::<_, HandlerExit>("done".to_owned())
    });
    let server = Server::new("paint", "1").tool(paint).prompt(draw);
    let mut peer = Peer::open(&server.build().unwrap(), NEWEST_REVISION, json!({})).await;
    for (method, name) in [("tools/call", "paint"), ("prompts/get", "draw")] {
        let params = json!({"name": name, "arguments": {"color": "ghp_0123456789abcdef"}});
        let reply = peer.request(method, params).await.to_string();
        assert!(reply.contains("expected a color, got a string"), "{reply}");
        assert!(!reply.contains("ghp_"), "{reply}");
    }
}
